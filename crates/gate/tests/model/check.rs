//! What holds at every moment.

use lychgate_core::State;
use lychgate_store::{ActQuery, Store, TicketState};

use super::Running;

impl Running {
    /// What holds at every moment.
    pub fn check(&self) {
        let kit = self.kit();
        let store = kit.store.inner();
        let query = ActQuery {
            state: None,
            after: None,
            newest_first: false,
            limit: 10_000,
        };
        let rows = store.acts(&query).unwrap();
        let dispatched = rows.iter().filter(|row| row.effect.is_some());
        assert_eq!(dispatched.count(), kit.effects.count() + self.not_sent);
        for row in &rows {
            let effects = kit.effects.of(row.id);
            assert!(effects <= 1, "{}: two effects", row.id);
            let consumed = matches!(
                row.state,
                State::Dispatched
                    | State::Effected
                    | State::Failed
                    | State::InputRequired
                    | State::Indeterminate
                    | State::ReconciledEffect
                    | State::ReconciledNoEffect
            );
            assert_eq!(row.effect.is_some(), consumed, "{}", row.id);
            assert!(
                effects == 0 || consumed,
                "{}: an effect of an act that is {:?}",
                row.id,
                row.state
            );
            if row.function.as_deref() == Some("send_mail") && row.effect.is_some() {
                let ticket = kit.ticket(row.ticket.expect("a person's yes"));
                assert_eq!(
                    (ticket.state, ticket.consumed_by),
                    (TicketState::Consumed, Some(row.id))
                );
            }
        }
        let used = store
            .tickets(&lychgate_store::TicketQuery::newest(
                Some(TicketState::Consumed),
                10_000,
            ))
            .unwrap()
            .len();
        assert!(used <= self.approvals);
        let mut open = self.open.iter().map(|(_, act, _)| *act).collect::<Vec<_>>();
        open.extend(self.flying.iter().map(|(_, act, _)| *act));
        assert_eq!(kit.gate.twins().len(), open.len(), "{open:?}");
    }
}
