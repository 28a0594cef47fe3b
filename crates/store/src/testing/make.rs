//! Small acts, tickets and transactions, numbered.

use lychgate_core::act::SourceType;
use lychgate_core::id::{
    ActId, AuthorityId, ConsentId, DelegationId, EffectId, HolderId, Nonce, TicketId,
};
use lychgate_core::receipt::Salt;
use lychgate_core::signed::KeyId;
use lychgate_core::{Code, ConsequenceClass, Digest, Epochs, State, Timestamp};

use std::sync::Arc;

use lychgate_keys::SigningKey;
use lychgate_ledger::{Checkpoint, Hash, KeyName, SignedCheckpoint, VerifierKey};

use lychgate_core::delegation::Budget;

use crate::budget::{Account, Charge};
use crate::ledger::{GroupSigner, SignRefused, Signatory};
use crate::row::Grant;
use crate::txn::*;
use crate::{Committed, Rejected, Store, StoreFault};

/// Milliseconds into the test.
pub fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis)
}

fn bytes(n: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    bytes
}

pub fn act(n: u64) -> ActId {
    ActId::from_bytes(bytes(n))
}

pub fn authority(n: u64) -> AuthorityId {
    AuthorityId::from_bytes(bytes(n))
}

pub fn holder(n: u64) -> HolderId {
    HolderId::from_bytes(bytes(n))
}

pub fn delegation(n: u64) -> DelegationId {
    DelegationId::from_bytes(bytes(n))
}

pub fn ticket(n: u64) -> TicketId {
    TicketId::from_bytes(bytes(n))
}

pub fn digest(text: &str) -> Digest {
    Digest::sha256(text.as_bytes())
}

/// The digest of the configuration that [`ready`] applies.
pub fn policy() -> Digest {
    digest("policy")
}

/// The epochs after [`ready`].
pub const EPOCHS: Epochs = Epochs {
    policy_epoch: 1,
    authority_epoch: 0,
    revocation_epoch: 0,
};

/// The log of the test stores.
pub const ORIGIN: &str = "lychgate/test";

/// Signs heads as the gate's own signer does, with a key everybody knows.
#[derive(Debug)]
pub struct TestSigner(SigningKey);

impl GroupSigner for TestSigner {
    fn sign_head(&self, size: u64, root: Hash) -> Result<Vec<u8>, SignRefused> {
        let head = Checkpoint::new(ORIGIN, size, root).unwrap();
        let signed = SignedCheckpoint::sign(head, &self.0).unwrap();
        Ok(signed.to_string().into_bytes())
    }

    fn sign_batch(&self, by: Signatory, root: &Hash, size: u32) -> Result<[u8; 64], SignRefused> {
        let key = SigningKey::from_seed(&[by as u8; 32]).unwrap();
        Ok(key.sign_batch(root, size).unwrap())
    }
}

/// The signer of the test stores.
pub fn signer() -> Arc<dyn GroupSigner> {
    Arc::new(TestSigner(SigningKey::from_seed(&[5; 32]).unwrap()))
}

/// Believes what [`signer`] signs.
pub fn log_key() -> VerifierKey {
    let public = SigningKey::from_seed(&[5; 32]).unwrap().public();
    let kind = lychgate_ledger::note::SignatureKind::Ed25519;
    VerifierKey::new(KeyName::new(ORIGIN).unwrap(), kind, public).unwrap()
}

/// A leaf that no other act has.
pub fn leaf(n: u64, which: u8) -> LeafHash {
    lychgate_ledger::leaf_hash(format!("{n} {which}").as_bytes())
}

pub fn entry(text: &str) -> Entry {
    Entry {
        bytes: text.as_bytes().to_vec(),
        leaf: lychgate_ledger::leaf_hash(text.as_bytes()),
    }
}

pub fn new_act(n: u64) -> NewAct {
    NewAct {
        id: act(n),
        created_at: at(0),
        twin: Some(digest(&format!("twin {n}"))),
        act_digest: Some(digest(&format!("act {n}"))),
        arguments_digest: Some(digest("arguments")),
        destination: Some(b"files:notes, sealed".to_vec()),
        salt: Salt(bytes(n)),
        agent: "local-agent".to_owned(),
        depth: 1,
        delegation: Some(delegation(7)),
        tool: Some("fs".to_owned()),
        function: Some("write".to_owned()),
        class: Some(ConsequenceClass::PersistentStateChange),
        source: Some(SourceType::User),
        vouched: true,
        retry_of: None,
    }
}

/// An authority for act `n`, good until ten seconds in, with the nonce `n + 1` of holder 1.
pub fn grant(n: u64) -> Grant {
    Grant {
        authority: authority(n),
        holder: holder(1),
        nonce: Nonce {
            holder: holder(1),
            count: n + 1,
        },
        expires_at: at(10_000),
        epochs: EPOCHS,
        policy_digest: policy(),
    }
}

pub fn issue(n: u64) -> Issue {
    let receipts = vec![entry(&format!("allowed {n}"))];
    Issue {
        act: new_act(n),
        grant: grant(n),
        now: at(1),
        receipts,
    }
}

/// Consumes what [`issue`] issued.
pub fn consume(n: u64) -> Dispatch {
    let grant = grant(n);
    Dispatch {
        issue: None,
        act: act(n),
        authority: grant.authority,
        holder: grant.holder,
        nonce: grant.nonce,
        expected_epochs: grant.epochs,
        policy_digest: grant.policy_digest,
        revocation_subjects: vec!["server:fs".to_owned()],
        charges: Vec::new(),
        effect: EffectId::from_bytes(bytes(n)),
        idempotency_key: Some(format!("key {n}")),
        approval: None,
        read_back: Some(b"read back".to_vec()),
        said: Some(Said {
            objects: b"evidence, authority, verification".to_vec(),
            ped: Some([leaf(n, 0), leaf(n, 1)]),
            sink: leaf(n, 2),
        }),
        now: at(2),
        receipts: vec![entry(&format!("dispatched {n}"))],
    }
}

/// Issues and consumes at once.
pub fn dispatch(n: u64) -> Dispatch {
    Dispatch {
        issue: Some(issue(n)),
        ..consume(n)
    }
}

pub fn settle(n: u64, to: State) -> Settle {
    Settle {
        act: act(n),
        to,
        answer: Some(b"answer".to_vec()),
        undelivered: true,
        code: None,
        refund: Vec::new(),
        now: at(3),
        receipts: vec![entry(&format!("outcome {n}"))],
    }
}

pub fn refuse(n: u64, to: State) -> Refuse {
    let receipts = vec![entry(&format!("denied {n}"))];
    let code = Some(Code::ScopeMismatch);
    Refuse {
        whose: Whose::New(Box::new(new_act(n))),
        to,
        code,
        answered_by: None,
        now: at(1),
        receipts,
    }
}

pub fn refuse_existing(n: u64, to: State) -> Refuse {
    Refuse {
        whose: Whose::Existing(act(n)),
        ..refuse(n, to)
    }
}

/// Act `n` waits for the new ticket `n`, for one minute.
pub fn escalate(n: u64, subject: &str) -> Escalate {
    let new = NewTicket {
        id: ticket(n),
        subject: digest(subject),
        summary: b"what a list shows".to_vec(),
        display: b"what is shown".to_vec(),
        expires_at: at(60_000),
    };
    let receipts = vec![entry(&format!("escalated {n}"))];
    Escalate {
        act: new_act(n),
        ticket: Awaited::New(new),
        now: at(1),
        receipts,
    }
}

pub fn decide(n: u64, approve: bool) -> Decide {
    let ruling = if approve {
        Ruling::Approved
    } else {
        Ruling::Denied
    };
    ruled(n, ruling, "approver")
}

pub fn ruled(n: u64, ruling: Ruling, approver: &str) -> Decide {
    let approver = KeyId(approver.to_owned());
    Decide {
        ticket: ticket(n),
        ruling,
        verdict: approver.0.clone().into_bytes(),
        approver,
        now: at(2),
        receipts: vec![entry("decided")],
    }
}

pub fn approval(n: u64, subject: &str) -> Approval {
    Approval {
        ticket: ticket(n),
        subject: digest(subject),
    }
}

pub fn apply(expected: Option<Digest>, next: &str) -> Apply {
    Apply {
        expected,
        digest: digest(next),
        snapshot: next.as_bytes().to_vec(),
        purposes_moved: false,
        authority_moved: false,
        now: at(0),
        receipts: vec![entry("applied")],
    }
}

pub fn revoke(add: &[&str], remove: &[&str]) -> Revoke {
    let texts = |of: &[&str]| of.iter().map(|text| (*text).to_owned()).collect();
    Revoke {
        add: texts(add),
        remove: texts(remove),
        now: at(1),
        receipts: vec![entry("revoked")],
    }
}

pub fn consent_id(n: u64) -> ConsentId {
    ConsentId::from_bytes(bytes(n))
}

/// A consent until half a minute in.
pub fn consent(n: u64) -> Consent {
    Consent {
        id: consent_id(n),
        expires_at: at(30_000),
        terms: b"terms".to_vec(),
        grant: n.is_multiple_of(2).then(|| b"signed".to_vec()),
        now: at(1),
        receipts: vec![entry("consented")],
    }
}

pub fn withdraw_consent(consents: &[u64]) -> WithdrawConsent {
    WithdrawConsent {
        consents: consents.iter().copied().map(consent_id).collect(),
        now: at(2),
        receipts: vec![entry("consent withdrawn")],
    }
}

pub fn contradict(n: u64) -> Contradict {
    Contradict {
        act: act(n),
        now: at(4),
        receipts: vec![entry(&format!("contradicted {n}"))],
    }
}

/// What an act draws on an account with these limits.
pub fn charge(account: Account, limits: Budget) -> Charge {
    Charge {
        account,
        limits,
        every: None,
        high_risk: true,
        spend: Some(("EUR".to_owned(), "0.1".parse().unwrap())),
    }
}

/// Act `n` makes delegation `n`.
pub fn delegate(n: u64) -> Txn {
    Txn::Delegate(Box::new(Delegate {
        settle: settle(n, State::Effected),
        new: NewDelegation {
            id: delegation(n),
            expires_at: at(60_000),
            body: b"signed".to_vec(),
        },
    }))
}

/// Commits, and must be allowed to.
pub fn done(store: &dyn Store, txn: Txn) {
    match store.commit(txn).wait() {
        Ok(Committed::Done(_)) => {}
        other => panic!("not done: {other:?}"),
    }
}

/// Commits, and must not be allowed to.
pub fn rejected(store: &dyn Store, txn: Txn) -> Rejected {
    match store.commit(txn).wait() {
        Ok(Committed::Rejected(why)) => why,
        other => panic!("not rejected: {other:?}"),
    }
}

/// Commits, and must fail.
pub fn faulted(store: &dyn Store, txn: Txn) -> StoreFault {
    match store.commit(txn).wait() {
        Err(fault) => fault,
        Ok(other) => panic!("not a fault: {other:?}"),
    }
}

/// Applies the first configuration.
pub fn ready(store: &dyn Store) {
    done(store, Txn::Apply(apply(None, "policy")));
}

/// Where act `n` stands.
pub fn state(store: &dyn Store, n: u64) -> State {
    store.act(act(n)).unwrap().expect("the act has a row").state
}

/// Short for the boxed variant.
pub fn boxed(dispatch: Dispatch) -> Txn {
    Txn::Dispatch(Box::new(dispatch))
}
