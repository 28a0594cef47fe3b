//! Revocation: what is revoked runs no more from the commit on, whatever was allowed or asked for before (PROFILE §6
//! EF-062). To stop things wants no key; to let them go on does.

use std::sync::Arc;

use lychgate_core::act::CandidateAct;
use lychgate_core::digest::b64;
use lychgate_core::id::TicketId;
use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::{Approver, Commitment, ReceiptKind};
use lychgate_core::signed::KeyId;
use lychgate_core::{Code, Subject};
use lychgate_keys::Role;
use lychgate_keys::verdict::{MOST_SUBJECTS, Reason, RestorationVerdict};
use lychgate_policy::{Reach, Scope};
use lychgate_store::{self as store, ActRow, TicketQuery, TicketState};

use super::consent::because;
use super::{ControlRefused, refused};
use crate::approval::MOST_OPEN;
use crate::current::Current;
use crate::gate::{Gate, revocation_subjects};
use crate::hold::HeldAct;

/// What a revocation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// The control's number, by which its delivery is followed.
    pub number: u64,
    /// Questions to a person that were withdrawn with it.
    pub withdrawn: usize,
}

impl Gate {
    /// Revokes subjects: effective on the next decision and inside the consuming transaction. What waits for a person and
    /// falls under them ends at once (EF-062), and its ticket is withdrawn. Wants no key.
    ///
    /// # Errors
    /// A sentence: too many, or it is the approver's own key, which only its holder can give up.
    pub async fn revoke(
        self: &Arc<Self>,
        subjects: Vec<Subject>,
        reason: Option<&Reason>,
    ) -> Result<Revoked, ControlRefused> {
        bounded(&subjects)?;
        let _alone = self.one_control().await;
        let current = self.current();
        if subjects.iter().any(|subject| self.is_approvers(subject)) {
            return Err(refused(
                "this is the approver's key: nobody could take that back; keep the agent away from it, and make a new \
                 folder with `lychgate init` if it is lost",
            ));
        }
        if current.revoked.len().saturating_add(subjects.len()) > MOST_REVOKED {
            return Err(refused(format!(
                "{MOST_REVOKED} things are revoked already; `lychgate revoke --all` stops everything"
            )));
        }
        let number = current.epochs.control().saturating_add(1);
        let draft = self
            .draft(ReceiptKind::Revoked, &current)
            .policy(current.policy_digest)
            .detail(self.told(&subjects, reason)?);
        let add: Vec<String> = subjects.iter().map(ToString::to_string).collect();
        let txn = store::Revoke {
            add: add.clone(),
            remove: Vec::new(),
            now: self.now(),
            receipts: self.emission(draft, number, &current)?,
        };
        self.commit_control(store::Txn::Revoke(txn)).await?;
        self.refresh(Arc::clone(&current.applied))?;
        self.emitted(ReceiptKind::Revoked, number, add.join(" "));
        // Whoever waits ends his own wait; what nobody waits for ends here.
        self.approvals().announce();
        let withdrawn = self.withdraw_tickets().await?;
        Ok(Revoked { number, withdrawn })
    }

    /// Takes revocations back, which lets more happen: it wants the approver.
    ///
    /// # Errors
    /// A sentence: the signature does not hold.
    pub async fn restore(
        self: &Arc<Self>,
        verdict: &RestorationVerdict,
    ) -> Result<u64, ControlRefused> {
        if !self.verify_live(Role::Approver, verdict) {
            return Err(refused(
                "the undoing is not signed by the approver key of this gate",
            ));
        }
        if !self.challenges().take(&verdict.challenge, self.now()) {
            return Err(refused(
                "the approver's signature is too old or was used before",
            ));
        }
        let key = Some(verdict.mark.key_id.clone());
        self.restore_by(&verdict.subjects, Some(&verdict.reason), key)
            .await
    }

    /// As [`Gate::restore`], for a gate without an approver.
    ///
    /// # Errors
    /// A sentence: this gate has an approver.
    pub async fn restore_unsigned(
        self: &Arc<Self>,
        subjects: &[Subject],
        reason: Option<&Reason>,
    ) -> Result<u64, ControlRefused> {
        if self.standing().approver != Approver::None {
            return Err(refused(
                "taking a revocation back lets more happen and needs the approver's key",
            ));
        }
        self.restore_by(subjects, reason, None).await
    }

    async fn restore_by(
        self: &Arc<Self>,
        subjects: &[Subject],
        reason: Option<&Reason>,
        approver: Option<KeyId>,
    ) -> Result<u64, ControlRefused> {
        bounded(subjects)?;
        let _alone = self.one_control().await;
        let current = self.current();
        let remove: Vec<String> = subjects.iter().map(ToString::to_string).collect();
        let not = remove.iter().find(|text| !current.revoked.contains(*text));
        if let Some(not) = not {
            let shown = lychgate_core::display::escape_within(not, 200);
            return Err(refused(format!("`{shown}` is not revoked")));
        }
        let number = current.epochs.control().saturating_add(1);
        let draft = self
            .draft(ReceiptKind::Restored, &current)
            .policy(current.policy_digest)
            .approver(approver)
            .detail(self.told(subjects, reason)?);
        let txn = store::Revoke {
            add: Vec::new(),
            remove: remove.clone(),
            now: self.now(),
            receipts: self.emission(draft, number, &current)?,
        };
        self.commit_control(store::Txn::Revoke(txn)).await?;
        self.refresh(Arc::clone(&current.applied))?;
        self.emitted(ReceiptKind::Restored, number, remove.join(" "));
        Ok(number)
    }

    /// Why a held act may not go on although nobody has asked it: something it needs was revoked, or its consent is gone.
    /// A comparison of two numbers while nothing has moved.
    pub fn stopped(&self, held: &HeldAct) -> Option<(Code, &'static str)> {
        let now = self.current();
        if now.epochs == held.current.epochs {
            return None;
        }
        if self.is_revoked(&held.revocation_subjects(), &now) {
            return Some((Code::RevocationActive, "what it needs was revoked"));
        }
        let why = self.unconsented(held, &now)?;
        Some((Code::PrincipalNotAuthorized, why))
    }

    /// Whether any of an act's subjects, or a key of this gate, is revoked.
    pub(crate) fn is_revoked(&self, subjects: &[String], now: &Current) -> bool {
        !now.revoked.is_empty()
            && (subjects.iter().any(|subject| now.revoked.contains(subject))
                || self.own_keys().any(|key| now.is_key_revoked(key)))
    }

    fn is_approvers(&self, subject: &Subject) -> bool {
        let Subject::Key(key) = subject else {
            return false;
        };
        let trust = self.trust();
        trust
            .current(Role::Approver)
            .is_some_and(|approver| approver.key_id() == key)
    }

    /// Tickets that nobody waits for and whose act falls under a revocation.
    async fn withdraw_tickets(self: &Arc<Self>) -> Result<usize, ControlRefused> {
        let current = self.current();
        let mut over = Vec::new();
        for state in [TicketState::Pending, TicketState::Approved] {
            let live = self
                .store()
                .tickets(&TicketQuery::newest(Some(state), MOST_OPEN))
                .map_err(refused)?;
            for ticket in live {
                let row = self.store().act(ticket.act).map_err(refused)?;
                let hit = row.is_some_and(|row| self.is_revoked(&self.subjects_of(&row), &current));
                let by = ticket.approver.as_ref();
                if hit || by.is_some_and(|key| current.is_key_revoked(key)) {
                    over.push(ticket.id);
                }
            }
        }
        let mut withdrawn = 0;
        for ticket in over {
            // One that its waiter has ended meanwhile is no fault.
            withdrawn += usize::from(self.withdraw_ticket(ticket).await);
        }
        Ok(withdrawn)
    }

    /// Ends a ticket whose act was revoked; false when it had ended.
    pub(crate) async fn withdraw_ticket(self: &Arc<Self>, ticket: TicketId) -> bool {
        let receipt = self
            .draft(ReceiptKind::Lapsed, &self.current())
            .ticket(Some(ticket))
            .code(Some(Code::RevocationActive))
            .detail("what the ticket asks for was revoked")
            .entry();
        let Ok(receipt) = receipt else { return false };
        let lapse = store::Lapse {
            withdrawn: vec![ticket],
            receipts: vec![receipt],
            ..store::Lapse::at(self.now())
        };
        self.approvals().give_back(ticket);
        match self.store().commit(store::Txn::Lapse(lapse)).await {
            Ok(committed) => committed.done().is_ok(),
            Err(fault) => {
                self.store_fault(&fault);
                false
            }
        }
    }

    /// What the record says of the subjects: names in the clear where receipts have them in the clear, a salted commitment
    /// to a destination, with its salt under seal.
    fn told(
        &self,
        subjects: &[Subject],
        reason: Option<&Reason>,
    ) -> Result<String, ControlRefused> {
        let mut told = Vec::with_capacity(subjects.len());
        for subject in subjects {
            let Subject::Destination(destination) = subject else {
                told.push(subject.to_string());
                continue;
            };
            let salt = self.fresh_salt().map_err(refused)?;
            let commitment =
                String::from(Commitment::to(&salt, DESTINATION, destination.as_bytes()));
            let label = format!("{DESTINATION}:{commitment}");
            let sealed = self
                .sealer()
                .seal(label.as_bytes(), &salt.0)
                .map_err(refused)?;
            told.push(format!("{label} salt:{}", b64::encode(&sealed)));
        }
        Ok(format!("{}{}", told.join(" "), because(reason)))
    }

    /// What must not be revoked for an act that is in the store alone.
    fn subjects_of(&self, row: &ActRow) -> Vec<String> {
        let mut subjects = vec![
            Subject::All.to_string(),
            format!("agent:{}", row.agent),
            format!("principal:{}", self.current().applied.principal().id),
            format!("act:{}", row.id),
        ];
        if let Some(tool) = &row.tool {
            subjects.push(format!("server:{tool}"));
            let function = row.function.as_deref().unwrap_or_default();
            subjects.push(format!("tool:{tool}/{function}"));
        }
        let there = self.destinations_of(row).into_iter();
        subjects.extend(there.map(|id| format!("destination:{id}")));
        subjects
    }

    /// Destination and recipient of an act that is in the store, by name.
    pub(super) fn destinations_of(&self, row: &ActRow) -> Vec<String> {
        let there = self.destination_of(row);
        let there = there.and_then(|text| json::parse(text.as_bytes(), &Limits::CANON).ok());
        let id = |key| Some(there.as_ref()?.get(key)?.as_str()?.to_owned());
        let ids = [id("destination_id"), id("recipient_id")];
        ids.into_iter().flatten().collect()
    }
}

/// What must not be revoked for an act in hand: the act's own, and each of several targets, recipients and hosts.
pub(crate) fn subjects_in_hand(act: &CandidateAct, reach: Option<&Reach>) -> Vec<String> {
    let mut subjects = revocation_subjects(act);
    let Some(reach) = reach else { return subjects };
    let several = reach.targets.len() > 1;
    for target in &reach.targets {
        if several {
            subjects.push(format!("destination:{}", target.canonical));
        }
        match &target.scope {
            Scope::External { host, .. } if !host.is_empty() && *host != target.canonical => {
                subjects.push(format!("destination:{host}"));
            }
            _ => {}
        }
    }
    // One alone is the act's own, and named already.
    let recipients = reach
        .recipients
        .iter()
        .filter(|_| reach.recipients.len() > 1);
    subjects.extend(recipients.map(|recipient| format!("destination:{recipient}")));
    subjects
}

fn bounded(subjects: &[Subject]) -> Result<(), ControlRefused> {
    if subjects.is_empty() {
        return Err(refused("name what is to be revoked"));
    }
    if subjects.len() > MOST_SUBJECTS {
        return Err(refused(format!("at most {MOST_SUBJECTS} things at a time")));
    }
    Ok(())
}

/// Things that may be revoked at a time.
const MOST_REVOKED: usize = 10_000;
/// Label of the commitment.
const DESTINATION: &str = "destination";
