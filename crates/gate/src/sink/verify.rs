//! The sink's checks, each against the live invocation, in the order of draft §8.3 (PROFILE §4.2).

use lychgate_core::act::CandidateAct;
use lychgate_core::authority::FinalityAuthority;
use lychgate_core::id::HolderId;
use lychgate_core::signed::{Unsigned, leaf_of, unsigned};
use lychgate_core::verification::{Check, Checks};
use lychgate_core::{Code, Digest, json};
use lychgate_store::{Grant, Rejected, Which};

use super::{FinalitySink, LiveInvocation, Origin, Presented};
use crate::current::Current;
use crate::gate::Gate;

/// What the sink knows once every check that needs no transaction holds.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) act_digest: Digest,
    pub(super) holder: HolderId,
    pub(super) grant: Grant,
    pub(super) checks: CheckList,
    /// The authority as it was presented, and its leaf.
    pub(super) authority: Unsigned,
}

/// The first check that failed.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: Code,
    pub(super) why: &'static str,
    pub(super) checks: CheckList,
}

/// The checks so far; what was not reached says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckList(pub(super) Checks);

impl CheckList {
    fn none() -> Self {
        let not = Check::NotReached;
        Self(Checks {
            authority_signature: not,
            candidate_act_binding: not,
            tool_scope: not,
            args_digest: not,
            destination: not,
            consequence_class: not,
            holder: not,
            nonce: not,
            policy_epoch: not,
            authority_epoch: not,
            revocation_epoch: not,
            expiry: not,
            consumption_state: not,
            sink_binding: not,
        })
    }

    /// The transaction compares consumption, nonce and epochs again; its rejection corrects the list.
    pub(super) fn after_rejection(mut self, why: &Rejected) -> Self {
        let place = match why {
            Rejected::SeenNonce | Rejected::NonceUnusable => &mut self.0.nonce,
            Rejected::Expired => &mut self.0.expiry,
            Rejected::HolderMismatch => &mut self.0.holder,
            Rejected::EpochMismatch {
                which: Which::Authority,
            } => &mut self.0.authority_epoch,
            Rejected::EpochMismatch {
                which: Which::Revocation,
            }
            | Rejected::Revoked { .. } => &mut self.0.revocation_epoch,
            Rejected::EpochMismatch { .. } => &mut self.0.policy_epoch,
            // A budget that is used up is not a check of its own: the authority is not consumed.
            _ => &mut self.0.consumption_state,
        };
        *place = Check::Failed;
        self
    }
}

/// Which member of the list a check fills.
type Place = fn(&mut Checks) -> &mut Check;

/// One check after the other; the first that fails ends it.
struct Checking {
    list: CheckList,
}

impl Checking {
    fn hold(
        &mut self,
        holds: bool,
        place: Place,
        code: Code,
        why: &'static str,
    ) -> Result<(), Refused> {
        *place(&mut self.list.0) = if holds { Check::Held } else { Check::Failed };
        if holds {
            Ok(())
        } else {
            Err(Refused {
                code,
                why,
                checks: self.list,
            })
        }
    }
}

impl Gate {
    pub(super) fn verify(
        &self,
        sink: &FinalitySink,
        live: &LiveInvocation<'_>,
        presented: &Presented,
        current: &Current,
    ) -> Result<Verified, Refused> {
        let mut check = Checking {
            list: CheckList::none(),
        };
        let act = &presented.act;
        let Some(authority) = &presented.authority else {
            check.hold(
                false,
                |c| &mut c.authority_signature,
                Code::NoFinalityAuthority,
                "no authority was presented",
            )?;
            return Err(Refused {
                code: Code::NoFinalityAuthority,
                why: "no authority",
                checks: check.list,
            });
        };
        let integrity = self.integrity(presented, authority);
        check.hold(
            integrity.is_some(),
            |c| &mut c.authority_signature,
            Code::InvalidAuthority,
            "the authority is not the one that was signed",
        )?;
        hold_binding(&mut check, sink, live, presented, authority)?;
        self.hold_freshness(&mut check, live, presented, authority)?;
        self.hold_epochs(&mut check, authority, presented, current)?;
        hold_aim(&mut check, live, act, authority)?;
        let binding = &authority.binding;
        check.list.0.consumption_state = Check::Held;
        let Some(said) = integrity else {
            return Err(Refused {
                code: Code::InvalidAuthority,
                why: "no integrity",
                checks: check.list,
            });
        };
        Ok(Verified {
            authority: said,
            act_digest: binding.candidate_act_digest,
            holder: live.holder,
            grant: Grant {
                authority: authority.authority_id,
                holder: binding.holder_id,
                nonce: binding.nonce,
                expires_at: authority.lifetime.expires_at,
                epochs: binding.epochs(),
                policy_digest: binding.policy_digest,
            },
            checks: check.list,
        })
    }

    /// What was presented, when it is what a PED signed, or signs with the commit group.
    fn integrity(&self, presented: &Presented, authority: &FinalityAuthority) -> Option<Unsigned> {
        match &presented.origin {
            Origin::Fresh(fresh) => unsigned(authority)
                .ok()
                .filter(|said| said.leaf == fresh.authority),
            Origin::Stored if self.verify_authority(authority) => Some(Unsigned {
                body: json::to_canonical(authority).ok()?,
                leaf: leaf_of(authority).ok()?,
            }),
            Origin::Stored => None,
        }
    }

    /// Time, holder, nonce.
    fn hold_freshness(
        &self,
        check: &mut Checking,
        live: &LiveInvocation<'_>,
        presented: &Presented,
        authority: &FinalityAuthority,
    ) -> Result<(), Refused> {
        let (act, binding) = (&presented.act, &authority.binding);
        let now = self.now();
        let in_time = now < authority.lifetime.expires_at && now < act.expires_at;
        check.hold(
            in_time,
            |c| &mut c.expiry,
            Code::StaleAuthority,
            "the authority or its act has expired",
        )?;
        check.hold(
            binding.holder_id == live.holder,
            |c| &mut c.holder,
            Code::HolderMismatch,
            "the presenter is not the holder",
        )?;
        let fresh = binding.nonce == act.freshness.nonce && binding.nonce.holder == live.holder;
        check.hold(
            fresh,
            |c| &mut c.nonce,
            Code::NonceFailure,
            "the nonce is not the act's or not the holder's",
        )
    }

    fn hold_epochs(
        &self,
        check: &mut Checking,
        authority: &FinalityAuthority,
        presented: &Presented,
        current: &Current,
    ) -> Result<(), Refused> {
        let bound = authority.binding.epochs();
        let minted = presented.act.policy_state.epochs();
        let now = current.epochs;
        let policy = bound.policy_epoch == now.policy_epoch
            && minted.policy_epoch == now.policy_epoch
            && authority.binding.policy_digest == current.policy_digest;
        check.hold(
            policy,
            |c| &mut c.policy_epoch,
            Code::PolicyEpochMismatch,
            "the policy epoch moved",
        )?;
        let authorized = bound.authority_epoch == now.authority_epoch
            && minted.authority_epoch == now.authority_epoch;
        check.hold(
            authorized,
            |c| &mut c.authority_epoch,
            Code::AuthorityEpochMismatch,
            "the authority epoch moved",
        )?;
        let revocation = bound.revocation_epoch == now.revocation_epoch
            && minted.revocation_epoch == now.revocation_epoch;
        check.hold(
            revocation,
            |c| &mut c.revocation_epoch,
            Code::RevocationStateMismatch,
            "the revocation epoch moved",
        )
    }
}

/// Act, arguments, sink, tool.
fn hold_binding(
    check: &mut Checking,
    sink: &FinalitySink,
    live: &LiveInvocation<'_>,
    presented: &Presented,
    authority: &FinalityAuthority,
) -> Result<(), Refused> {
    let act = &presented.act;
    let live_digest = match lychgate_core::digest::Algorithm::Sha256 {
        sha256 if act.arguments_digest.algorithm == sha256 => Digest::sha256(live.arguments),
        _ => Digest::of(act.arguments_digest.algorithm, live.arguments),
    };
    let binding = &authority.binding;
    let scope = &authority.scope;
    let digest = act.digest().ok();
    let bound = digest == Some(binding.candidate_act_digest)
        && authority.candidate_act_id == act.candidate_act_id;
    check.hold(
        bound,
        |c| &mut c.candidate_act_binding,
        Code::ActMismatch,
        "the act is not the one bound",
    )?;
    let same = live_digest.to_base64url() == act.arguments_digest.value
        && live_digest == binding.arguments_digest
        && live.continuation == binding.continuation_digest;
    check.hold(
        same,
        |c| &mut c.args_digest,
        Code::ArgsSubstitution,
        "the live arguments are not the ones bound",
    )?;
    let here = binding.finality_sink_id == sink.id() && act.finality_sink.sink_id == sink.id();
    check.hold(
        here,
        |c| &mut c.sink_binding,
        Code::SinkMismatch,
        "the authority is for another sink",
    )?;
    check.hold(
        same_tool(authority, live),
        |c| &mut c.tool_scope,
        Code::ToolSubstitution,
        "the live tool is not the one bound",
    )?;
    check.hold(
        scope.act_type == act.act_type,
        |c| &mut c.tool_scope,
        Code::ScopeMismatch,
        "the act's type is not the one bound",
    )
}
/// Destination and class.
fn hold_aim(
    check: &mut Checking,
    live: &LiveInvocation<'_>,
    act: &CandidateAct,
    authority: &FinalityAuthority,
) -> Result<(), Refused> {
    let scope = &authority.scope;
    let there = act.destination.as_ref() == Some(&scope.permitted_destination)
        && live.destination == scope.permitted_destination;
    check.hold(
        there,
        |c| &mut c.destination,
        Code::DestinationMismatch,
        "the live destination is not the one bound",
    )?;
    let class = act.consequence_class == scope.permitted_consequence_class
        && live.class == scope.permitted_consequence_class;
    check.hold(
        class,
        |c| &mut c.consequence_class,
        Code::ConsequenceClassMismatch,
        "the live class is not the one bound",
    )
}

fn same_tool(authority: &FinalityAuthority, live: &LiveInvocation<'_>) -> bool {
    let scope = &authority.scope;
    scope.tool_id == live.tool_id
        && scope.function_id == live.function_id
        && scope.tool_endpoint == live.endpoint
        && scope.tool_definition_digest == live.definition
}

/// The receipt's phrase for a rejection inside the consuming transaction.
pub(super) fn phrase(why: &Rejected) -> &'static str {
    match why {
        Rejected::NotIssued => "the store never issued this authority",
        Rejected::AlreadyUsed => "the authority was used before",
        Rejected::Expired => "the authority expired before it was consumed",
        Rejected::SeenNonce | Rejected::SeenAct => "the nonce or the act was seen before",
        Rejected::NonceUnusable => "the nonce is not the one issued",
        Rejected::HolderMismatch => "the presenter is not the holder",
        Rejected::EpochMismatch { .. } => "an epoch moved between allow and consume",
        Rejected::Revoked { .. } => "something the act needs was revoked between allow and consume",
        Rejected::TicketConsumed => "the approval was used before",
        Rejected::OverBudget { .. } => "a budget was used up between allow and consume",
        _ => "the act's state does not allow it",
    }
}
