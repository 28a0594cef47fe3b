//! Consent: the session's authorization context (draft §4.5, PROFILE §11). Given by a person with the approver's key,
//! withdrawn by whoever wants less to happen.

use std::collections::BTreeSet;
use std::sync::Arc;

use lychgate_core::act::CandidateAct;
use lychgate_core::id::ConsentId;
use lychgate_core::json::{self, Limits};
use lychgate_core::receipt::{Approver, ReceiptKind};
use lychgate_core::{Digest, Timestamp};
use lychgate_keys::verdict::{ConsentGrant, ConsentTerms, Reason};
use lychgate_keys::{Role, TrustBundle};
use lychgate_store::{self as store, ConsentRow, Store, StoreFault};
use serde::de::DeserializeOwned;

use super::{ControlRefused, refused};
use crate::current::Current;
use crate::gate::Gate;
use crate::hold::HeldAct;

/// The consents that hold at a moment: granted, not withdrawn, in time, and believed.
#[derive(Debug, Default)]
pub struct Consents(Vec<ConsentTerms>);

impl Consents {
    /// Reads them. What the store holds is believed only as far as an approver's signature bears it out.
    pub(crate) fn read(
        store: &dyn Store,
        trust: &TrustBundle,
        revoked: &BTreeSet<String>,
        now: Timestamp,
    ) -> Result<Self, StoreFault> {
        let rows = store.consents(Some(now), MOST_LIVE)?;
        let believed = rows.iter().filter_map(|row| believed(row, trust, revoked));
        Ok(Self(believed.collect()))
    }

    /// The one that covers an act for the longest time.
    pub(crate) fn covering(
        &self,
        (principal, agent): (&str, &str),
        (server, function): (&str, &str),
        purpose: &str,
        now: Timestamp,
    ) -> Option<ConsentId> {
        let fitting = self.0.iter().filter(|terms| {
            terms.principal_id.as_str() == principal
                && terms.agent_id.as_str() == agent
                && terms.cover(server, function, purpose)
                && now < terms.expires_at
        });
        let longest = fitting.max_by_key(|terms| terms.expires_at)?;
        Some(longest.consent_id)
    }

    fn find(&self, id: &str) -> Option<&ConsentTerms> {
        let id = id.parse().ok()?;
        self.0.iter().find(|terms| terms.consent_id == id)
    }
}

fn believed(
    row: &ConsentRow,
    trust: &TrustBundle,
    revoked: &BTreeSet<String>,
) -> Option<ConsentTerms> {
    let terms: ConsentTerms = read(&row.terms)?;
    if terms.consent_id != row.id || terms.expires_at != row.expires_at {
        return None;
    }
    let Some(bytes) = &row.grant else {
        // Only where there never was anybody to sign one.
        return trust.current(Role::Approver).is_none().then_some(terms);
    };
    let grant: ConsentGrant = read(bytes)?;
    let signed = trust.verify_at(Role::Approver, &grant, grant.at).is_ok();
    let taken_back = revoked.contains(&format!("key:{}", grant.mark.key_id.0));
    (signed && !taken_back && grant.terms == terms).then_some(terms)
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value = json::parse(bytes, &Limits::OBJECT).ok()?;
    json::from_value(&value).ok()
}

/// A consent as a person is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRecord {
    /// To what.
    pub terms: ConsentTerms,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// When it was withdrawn.
    pub withdrawn_at: Option<Timestamp>,
    /// Whether it holds now.
    pub holds: bool,
}

impl Gate {
    //= draft §4.5, PROFILE §11: the session's consent record, with expiry
    /// Why a held act has no valid authorization context now; `None` when it has one, or needs none. The gate's own agent
    /// looks acts up for the operator and needs none.
    pub(crate) fn unconsented(&self, held: &HeldAct, now: &Current) -> Option<&'static str> {
        if !now.applied.consent_required() || held.session.is_own() {
            return None;
        }
        let act = &held.act;
        let named = act.initiating_principal.authorization_context_id.as_deref();
        let Some(named) = named else {
            return Some("no consent covers it");
        };
        match now.consents.find(named) {
            None => Some("the consent was withdrawn or has expired"),
            Some(terms) if self.now() >= terms.expires_at => Some("the consent has expired"),
            Some(terms) if !covers(terms, act) => Some("the consent is for something else"),
            Some(_) => None,
        }
    }

    /// An authority never outlives the consent it rests on: the consuming transaction compares its end.
    pub(crate) fn within_consent(&self, held: &HeldAct, until: Timestamp) -> Timestamp {
        let context = &held.act.initiating_principal.authorization_context_id;
        let terms = context
            .as_deref()
            .and_then(|named| held.current.consents.find(named));
        terms.map_or(until, |terms| until.min(terms.expires_at))
    }

    /// Takes a person's consent. `grant` is the signed one; without an approver there is none to sign it.
    ///
    /// # Errors
    /// A sentence: it is not signed by the approver's key, is for another principal, or expires too soon or too late.
    pub async fn consent(
        self: &Arc<Self>,
        terms: ConsentTerms,
        grant: Option<&ConsentGrant>,
    ) -> Result<ConsentId, ControlRefused> {
        let _alone = self.one_control().await;
        let current = self.current();
        let now = self.now();
        terms.check().map_err(refused)?;
        match grant {
            Some(grant) if !self.verify_live(Role::Approver, grant) => {
                return Err(refused(
                    "the consent is not signed by the approver key of this gate",
                ));
            }
            Some(grant) if grant.terms != terms => {
                return Err(refused("the approver's signature is for another consent"));
            }
            Some(grant) if !self.challenges().take(&grant.challenge, now) => {
                return Err(refused(
                    "the approver's signature is too old or was used before",
                ));
            }
            None if self.standing().approver == Approver::Key => {
                return Err(refused(
                    "a consent lets more happen and needs the approver's key",
                ));
            }
            Some(_) | None => {}
        }
        let until = terms.expires_at;
        if until <= now || until > now.after(LONGEST) {
            return Err(refused(
                "a consent ends within 366 days, and not before now",
            ));
        }
        let live = self
            .store()
            .consents(Some(now), MOST_LIVE)
            .map_err(refused)?;
        if live.len() >= MOST_LIVE {
            return Err(refused(format!(
                "{MOST_LIVE} consents hold already; withdraw some"
            )));
        }
        let bytes = |object: Result<Vec<u8>, json::ShapeFault>| object.map_err(refused);
        let id = terms.consent_id;
        let receipt = self
            .draft(ReceiptKind::Consented, &current)
            .policy(current.policy_digest)
            .approver(grant.map(|grant| grant.mark.key_id.clone()))
            .detail(format!("consent:{id} until:{until}"))
            .entry()
            .map_err(refused)?;
        let txn = store::Consent {
            id,
            expires_at: until,
            terms: bytes(json::to_canonical(&terms))?,
            grant: grant
                .map(|grant| bytes(json::to_canonical(grant)))
                .transpose()?,
            now,
            receipts: vec![receipt],
        };
        self.commit_control(store::Txn::Consent(txn)).await?;
        self.refresh(Arc::clone(&current.applied))?;
        Ok(id)
    }

    //= PROFILE §11: withdrawing it moves authority_epoch
    /// Withdraws consents: what rests on them and is not dispatched is not dispatched any more. Wants no key.
    ///
    /// # Errors
    /// A sentence: there is none of that id, or it is withdrawn already.
    pub async fn withdraw_consents(
        self: &Arc<Self>,
        consents: Vec<ConsentId>,
        reason: Option<&Reason>,
    ) -> Result<u64, ControlRefused> {
        if consents.is_empty() || consents.len() > MOST_LIVE {
            return Err(refused("name the consents to withdraw"));
        }
        let _alone = self.one_control().await;
        let current = self.current();
        let number = current.epochs.control().saturating_add(1);
        let names: Vec<String> = consents.iter().map(ToString::to_string).collect();
        let draft = self
            .draft(ReceiptKind::ConsentWithdrawn, &current)
            .policy(current.policy_digest)
            .detail(format!("consent:{}{}", names.join(" "), because(reason)));
        let txn = store::WithdrawConsent {
            consents,
            now: self.now(),
            receipts: self.emission(draft, number, &current)?,
        };
        self.commit_control(store::Txn::WithdrawConsent(txn))
            .await?;
        self.refresh(Arc::clone(&current.applied))?;
        self.emitted(ReceiptKind::ConsentWithdrawn, number, names.join(" "));
        self.approvals().announce();
        Ok(number)
    }

    /// The consents there are, newest first.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub fn consents(&self, all: bool) -> Result<Vec<ConsentRecord>, StoreFault> {
        let now = self.now();
        let live_at = (!all).then_some(now);
        let current = self.current();
        let rows = self.store().consents(live_at, MOST_LIVE)?.into_iter();
        let record = |row: ConsentRow| {
            let terms: ConsentTerms = read(&row.terms)?;
            let known = current.consents.find(&row.id.to_string()).is_some();
            Some(ConsentRecord {
                holds: known && now < row.expires_at,
                terms,
                granted_at: row.granted_at,
                withdrawn_at: row.withdrawn_at,
            })
        };
        Ok(rows.filter_map(record).collect())
    }
}

fn covers(terms: &ConsentTerms, act: &CandidateAct) -> bool {
    let tool = &act.tool;
    terms.principal_id.as_str() == act.initiating_principal.principal_id
        && terms.agent_id.as_str() == act.agent.agent_id
        && terms.cover(&tool.tool_id, &tool.function_id, &act.purpose.purpose_id)
}

/// A person's reason as the record keeps it: its digest.
pub(super) fn because(reason: Option<&Reason>) -> String {
    reason.map_or_else(String::new, |reason| {
        let digest = Digest::sha256(reason.as_str().as_bytes()).to_base64url();
        format!("; reason:{digest}")
    })
}

/// Consents that may hold at a time.
const MOST_LIVE: usize = 1024;
/// The longest consent.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(366 * 24 * 3600);
