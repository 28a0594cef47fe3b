//! Several approvers: how many must say yes, who counts, and what one no does.

use lychgate_core::id::TicketId;
use lychgate_core::signed::Signed as _;
use lychgate_core::{Code, State};
use lychgate_gate::{End, Ruled};
use lychgate_keys::SigningKey;
use lychgate_keys::verdict::{ApproverChange, Membership, PublicKey, Verdict as Ruling};
use lychgate_store::TicketState;

use crate::kit::{Kit, MAIL, denied};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

impl Kit {
    fn approver_change(&self, whose: &SigningKey, change: Membership) -> ApproverChange {
        let mut change = ApproverChange {
            version: Default::default(),
            object_type: Default::default(),
            public: PublicKey(whose.public()),
            change,
            at: self.gate.now(),
            challenge: self.gate.challenge().unwrap(),
            mark: self.mark(),
        };
        self.approver.sign(&mut change).unwrap();
        change
    }

    async fn change_approver(&mut self, whose: &SigningKey, how: Membership) -> Result<(), String> {
        let change = self.approver_change(whose, how);
        let done = self.gate.change_approver(&change, |_| Ok(())).await;
        self.trust_what_the_gate_trusts();
        done.map(drop).map_err(|why| why.to_string())
    }

    async fn says(
        &self,
        who: &SigningKey,
        ticket: TicketId,
        ruling: Ruling,
    ) -> Result<Ruled, String> {
        let mut verdict = self.verdict(ticket, ruling);
        who.sign(&mut verdict).unwrap();
        self.gate.rule(&verdict).await
    }

    /// Mail wants two of three; payments also one of another group.
    async fn with_quorum() -> Self {
        let mut kit = Self::new().await;
        for seed in [21, 22, 23, 24] {
            kit.change_approver(&key(seed), Membership::Add)
                .await
                .unwrap();
        }
        let id = |seed| key(seed).key_id().0.clone();
        let tables = format!(
            "[approvers.senders]\nkeys = [\"{}\", \"{}\", \"{}\"]\nquorum = 2\ntools = [\"box/send_mail\"]\n\
             [approvers.payers]\nkeys = [\"{}\", \"{}\"]\nquorum = 1\nclasses = [\"FINANCIAL\"]\n\
             [approvers.tellers]\nkeys = [\"{}\"]\ntools = [\"box/pay\"]\n",
            id(21),
            id(22),
            id(23),
            id(23),
            id(24),
            id(21),
        );
        kit.apply(move |text| format!("{text}\n{tables}"))
            .await
            .unwrap();
        kit
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_three_are_two_different_ones_of_them() {
    let kit = Kit::with_quorum().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let shown = kit.gate.pending_ticket(asked.ticket).unwrap().unwrap();
    assert_eq!(
        (shown.wanted[0].group.as_str(), shown.wanted[0].quorum),
        ("senders", 2)
    );
    // The first approver of the gate is none of them, nor is the payers' own.
    for outsider in [&kit.approver, &key(24)] {
        assert!(
            kit.says(outsider, asked.ticket, Ruling::Approve)
                .await
                .is_err()
        );
    }
    let first = kit
        .says(&key(21), asked.ticket, Ruling::Approve)
        .await
        .unwrap();
    assert!(matches!(first, Ruled::Counted(still) if still[0].yes == 1));
    for _ in 0..3 {
        let again = kit.says(&key(21), asked.ticket, Ruling::Approve).await;
        assert!(again.is_err(), "one key counts once");
    }
    assert_eq!(kit.ticket_state(asked.ticket), TicketState::Pending);
    assert_eq!(kit.effects.count(), 0);
    let second = kit
        .says(&key(23), asked.ticket, Ruling::Approve)
        .await
        .unwrap();
    assert_eq!(second, Ruled::Approved);
    kit.finish(asked.done().await, End::Effected).await.ran();
    let receipts = kit.receipts();
    let of = |kind| receipts.iter().filter(|one| one.kind == kind).count();
    use lychgate_core::receipt::ReceiptKind::{ApprovalCounted, Approved};
    assert_eq!(
        (of(ApprovalCounted), of(Approved)),
        (1, 1),
        "each verdict is a line"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_no_ends_it_whoever_has_said_yes() {
    let kit = Kit::with_quorum().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    kit.says(&key(21), asked.ticket, Ruling::Approve)
        .await
        .unwrap();
    assert_eq!(
        kit.says(&key(22), asked.ticket, Ruling::Deny).await,
        Ok(Ruled::Denied)
    );
    assert!(
        kit.says(&key(23), asked.ticket, Ruling::Approve)
            .await
            .is_err()
    );
    let act = asked.act;
    assert_eq!(denied(asked.done().await).code, Code::ApprovalDenied);
    assert_eq!(
        (kit.state(act), kit.effects.count()),
        (Some(State::Refused), 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_group_an_act_is_for_must_say_yes() {
    let kit = Kit::with_quorum().await;
    let pay = r#"{"to":"bob","amount":1}"#;
    let asked = kit.ask(&kit.session(), "pay", pay).await;
    let first = kit
        .says(&key(24), asked.ticket, Ruling::Approve)
        .await
        .unwrap();
    assert!(matches!(first, Ruled::Counted(still) if still.len() == 2));
    assert_eq!(
        kit.says(&key(21), asked.ticket, Ruling::Approve).await,
        Ok(Ruled::Approved)
    );
    kit.finish(asked.done().await, End::Effected).await.ran();
}

/// Two clicks of one person, and of two persons, at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_verdicts_count_once_a_key() {
    let kit = std::sync::Arc::new(Kit::with_quorum().await);
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let mut race = tokio::task::JoinSet::new();
    for seed in [21, 21, 21, 22, 22, 23, 23, 21] {
        let mut verdict = kit.verdict(asked.ticket, Ruling::Approve);
        key(seed).sign(&mut verdict).unwrap();
        let kit = std::sync::Arc::clone(&kit);
        race.spawn(async move { kit.gate.rule(&verdict).await });
    }
    let said = race.join_all().await;
    let taken: Vec<_> = said.into_iter().filter_map(Result::ok).collect();
    assert_eq!(taken.len(), 2, "{taken:?}");
    assert_eq!(
        taken.iter().filter(|one| **one == Ruled::Approved).count(),
        1
    );
    kit.finish(asked.done().await, End::Effected).await.ran();
    assert_eq!(kit.effects.count(), 1);
}

/// Half a quorum outlives the gate as half a quorum, whatever the file says in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_quorum_is_none_across_a_restart() {
    let kit = Kit::with_quorum().await;
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    kit.says(&key(21), asked.ticket, Ruling::Approve)
        .await
        .unwrap();
    asked.give_up().await;
    let kit = kit
        .reopened(|path| {
            let file = rusqlite::Connection::open(path).unwrap();
            let sql = "UPDATE tickets SET state = 1 WHERE id = ?1";
            assert_eq!(file.execute(sql, [ticket.as_bytes()]).unwrap(), 1);
        })
        .await;
    let again = kit.ask(&kit.session(), "send_mail", MAIL).await;
    assert_ne!(again.ticket, ticket, "those who are asked are asked anew");
    assert_eq!(kit.effects.count(), 0);
    again.give_up().await;
}

/// A yes is worth what its key is worth when it is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_retired_approver_approved_is_void() {
    let mut kit = Kit::new().await;
    kit.change_approver(&key(21), Membership::Add)
        .await
        .unwrap();
    let asked = kit.ask(&kit.session(), "send_mail", MAIL).await;
    let ticket = asked.ticket;
    asked.give_up().await;
    kit.says(&key(21), ticket, Ruling::Approve).await.unwrap();
    kit.change_approver(&key(21), Membership::Retire)
        .await
        .unwrap();
    let told = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!((told.code, kit.effects.count()), (Code::FailClosed, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_approver_makes_an_approver() {
    let mut kit = Kit::new().await;
    let new = key(21);
    let good = kit.approver_change(&new, Membership::Add);
    let mut own = good.clone();
    new.sign(&mut own).unwrap();
    let mut gates = good.clone();
    kit.sign_as_ped(&mut gates);
    let mut other = good.clone();
    other.public = PublicKey(key(22).public());
    let mut unsigned = good.clone();
    unsigned.mark_mut().signature = None;
    for change in [own, gates, other, unsigned] {
        let said = kit.gate.change_approver(&change, |_| panic!("put")).await;
        assert!(said.is_err(), "{change:?}");
    }
    assert!(kit.gate.change_approver(&good, |_| Ok(())).await.is_ok());
    assert!(
        kit.gate.change_approver(&good, |_| Ok(())).await.is_err(),
        "used"
    );
    // The last one stays: nobody could ever say yes again.
    kit.change_approver(&new, Membership::Retire).await.unwrap();
    let own = SigningKey::from_seed(&[7; 32]).unwrap();
    assert!(kit.change_approver(&own, Membership::Retire).await.is_err());
    assert!(
        kit.change_approver(&new, Membership::Add).await.is_err(),
        "known"
    );
}

/// A group that could never come to its quorum is refused when it is applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_nobody_could_satisfy_is_not_applied() {
    let kit = Kit::new().await;
    let table = format!(
        "[approvers.x]\nkeys = [\"{}\", \"{}\"]\nquorum = 2\ntools = [\"box\"]\n",
        kit.approver.key_id().0,
        key(21).key_id().0
    );
    let applied = kit.apply(|text| format!("{text}\n{table}")).await;
    assert!(applied.unwrap_err().contains("wants 2"));
}
