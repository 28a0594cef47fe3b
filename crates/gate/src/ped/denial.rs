//! Denials: committed before they are given (PROFILE §4).

use std::borrow::Cow;
use std::sync::Arc;

use lychgate_core::id::ActId;
use lychgate_core::receipt::ReceiptKind;
use lychgate_core::{Code, State};
use lychgate_store as store;

use super::{Denied, Judgement};
use crate::gate::Gate;
use crate::hold::HeldAct;
use crate::observe::Door;
use crate::receipts::{Draft, part_of_nothing};
use crate::session::Session;

/// A denial in the making.
pub(super) struct No {
    pub(super) code: Code,
    /// For the receipt; from our own closed set of phrases.
    pub(super) why: Cow<'static, str>,
    /// The equal act whose kept answer is given in its place.
    pub(super) answered_by: Option<ActId>,
}

impl Gate {
    /// Commits a denial and gives it. The row of an act that was escalated moves on; a new act gets its row here.
    pub(crate) async fn deny(
        self: &Arc<Self>,
        held: HeldAct,
        code: Code,
        why: &'static str,
        judged: Judgement,
    ) -> Denied {
        let no = No {
            code,
            why: Cow::Borrowed(why),
            answered_by: None,
        };
        self.deny_as(held, no, judged).await
    }

    pub(super) async fn deny_as(
        self: &Arc<Self>,
        held: HeldAct,
        no: No,
        judged: Judgement,
    ) -> Denied {
        let No {
            code,
            why,
            answered_by,
        } = no;
        self.give_back(&held);
        held.session.denial_turn(self.now()).await;
        let draft = self
            .draft(ReceiptKind::Denied, &held.current)
            .act(held.part(), State::Refused)
            .code(Some(code))
            .predicates(judged.predicates)
            .policy(held.current.policy_digest)
            .retry_of(held.predecessor.act())
            .ticket(held.escalated)
            .detail(why);
        self.note_denial(&held.act.agent.agent_id).await;
        let act = held.act.candidate_act_id;
        let whose = match held.escalated {
            Some(_) => store::Whose::Existing(act),
            None => store::Whose::New(Box::new(held.new_act())),
        };
        let code = match draft.entry() {
            Ok(receipt) => {
                let refuse = store::Refuse {
                    whose,
                    to: State::Refused,
                    code: Some(code),
                    answered_by,
                    now: self.now(),
                    receipts: vec![receipt],
                };
                self.commit_denial(refuse, code).await
            }
            Err(_) => Code::FailClosed,
        };
        let pointer = if code.may_name_pointer() {
            judged.pointer
        } else {
            None
        };
        Denied {
            code,
            pointer,
            act: Some(act),
            ticket: held.escalated,
            state: State::Refused,
        }
    }

    pub(crate) async fn commit_refusal(
        self: &Arc<Self>,
        draft: Draft,
        whose: store::Whose,
        to: State,
        code: Code,
    ) -> Code {
        let Ok(receipt) = draft.entry() else {
            return Code::FailClosed;
        };
        let refuse = store::Refuse {
            whose,
            to,
            code: Some(code),
            answered_by: None,
            now: self.now(),
            receipts: vec![receipt],
        };
        self.commit_denial(refuse, code).await
    }

    /// Commits a denial. An act that was to get its first row here and has one already is a replay: its row stays as it
    /// is, and the denial is a line in the record all the same.
    pub(crate) async fn commit_denial(self: &Arc<Self>, refuse: store::Refuse, code: Code) -> Code {
        let note = match refuse.whose {
            store::Whose::New(_) => Some(store::Note {
                now: refuse.now,
                receipts: refuse.receipts.clone(),
            }),
            store::Whose::Existing(_) => None,
        };
        match (self.store().commit(store::Txn::Refuse(refuse)).await, note) {
            (Ok(store::Committed::Done(_)), _) => code,
            (Ok(store::Committed::Rejected(_)), Some(note)) => self.commit_note(note, code).await,
            //= PROFILE §4: if that commit fails the answer is DENY EF-080
            (Ok(store::Committed::Rejected(_)), None) => Code::FailClosed,
            (Err(fault), _) => self.store_fault(&fault),
        }
    }

    /// Commits a denial that moves no row.
    pub(crate) async fn commit_note(self: &Arc<Self>, note: store::Note, code: Code) -> Code {
        match self.store().commit(store::Txn::Note(note)).await {
            Ok(store::Committed::Done(_)) => code,
            Ok(store::Committed::Rejected(_)) => Code::FailClosed,
            Err(fault) => self.store_fault(&fault),
        }
    }

    /// Records and denies a request that never became an act (EF-001 and the like).
    pub async fn deny_request(
        self: &Arc<Self>,
        session: &Session,
        code: Code,
        why: &'static str,
    ) -> Denied {
        session.denial_turn(self.now()).await;
        let current = self.current();
        let (Ok(random), Ok(salt)) = (self.ten(), self.fresh_salt()) else {
            return Denied {
                code: Code::FailClosed,
                pointer: None,
                act: None,
                ticket: None,
                state: State::Refused,
            };
        };
        let now = self.now();
        let id = ActId::new(now, random);
        let agent = session.agent(&current.applied.agent().id).to_owned();
        let draft = self
            .draft(ReceiptKind::Denied, &current)
            .act(part_of_nothing(id, &agent, session), State::Refused)
            .code(Some(code))
            .policy(current.policy_digest)
            .detail(why);
        let new_act = store::NewAct {
            id,
            created_at: now,
            twin: None,
            act_digest: None,
            arguments_digest: None,
            destination: None,
            salt,
            agent,
            depth: session.depth(),
            delegation: session.delegation(),
            tool: Some(session.server().to_owned()),
            function: None,
            class: None,
            source: None,
            vouched: false,
            retry_of: None,
        };
        let code = self
            .commit_refusal(
                draft,
                store::Whose::New(Box::new(new_act)),
                State::Refused,
                code,
            )
            .await;
        self.observer().refused(Door::Adapter, code);
        Denied {
            code,
            pointer: None,
            act: Some(id),
            ticket: None,
            state: State::Refused,
        }
    }
}
