//! A receipt in plain words: what an auditor reads first.

use lychgate_core::State;
use lychgate_core::digest::b64;
use lychgate_core::display::escape;
use lychgate_core::evidence::Predicates;
use lychgate_core::receipt::{Approver, Enforcement, Isolation, Receipt, ReceiptKind};
use lychgate_ledger::proof::CommittedField;
use serde_json::Value;

use crate::terminal::{Style, Terminal, dim, styled, text};

/// One sentence that says what the receipt records.
pub(crate) fn sentence(receipt: &Receipt) -> &'static str {
    match (receipt.kind, receipt.state) {
        (ReceiptKind::Allowed, _) => "the gate allowed this call; it had not run yet",
        (ReceiptKind::Denied, _) => "the gate refused this call: nothing ran for it",
        (ReceiptKind::Escalated, _) => "the gate asked a person about this call; it had not run",
        (ReceiptKind::Approved, _) => "the approver said yes to this call",
        (ReceiptKind::ApprovalCounted, _) => "one of several approvers said yes to this call",
        (ReceiptKind::Disapproved, _) => "the approver said no to this call: it did not run",
        (ReceiptKind::Lapsed, Some(State::Withdrawn)) => {
            "this call's caller went away: it did not run"
        }
        (ReceiptKind::Lapsed, _) => "this call's time ran out: it did not run",
        (ReceiptKind::Dispatched, _) => {
            "this call was let through, once; a later receipt says what came of it"
        }
        (ReceiptKind::Outcome, Some(state)) => outcome(state),
        (ReceiptKind::Reconciled, Some(State::ReconciledEffect)) => {
            "after doubt it was settled that this call had its effect"
        }
        (ReceiptKind::Reconciled, Some(State::ReconciledNoEffect)) => {
            "after doubt it was settled that this call had no effect"
        }
        (ReceiptKind::Applied, _) => "a configuration began to hold",
        (ReceiptKind::Revoked, _) => "something was revoked",
        (ReceiptKind::EnvelopeOpened, _) => {
            "calls of one kind were let go by one decision for a while"
        }
        (ReceiptKind::EnvelopeClosed, _) => "calls of one kind are decided one by one again",
        (ReceiptKind::Restored, _) => "a revocation was taken back",
        (ReceiptKind::Consented, _) => "a consent was granted",
        (ReceiptKind::ConsentWithdrawn, _) => "a consent was withdrawn",
        (ReceiptKind::ControlDelivered, _) => {
            "how far a change of the rules, a revocation, a withdrawal or a new key had come at one end"
        }
        (ReceiptKind::KeyChanged, _) => "a key was made, rotated or retired",
        (ReceiptKind::AnchorAccepted, _) => {
            "the approver went on with a record that its anchor contradicts"
        }
        (ReceiptKind::Started, _) => "the gate started",
        (ReceiptKind::Pruned, _) => {
            "the bytes of archived receipts were dropped; their hashes stay"
        }
        (ReceiptKind::Stopped, _) => "the gate stopped",
        _ => "the gate noted this",
    }
}

fn outcome(state: State) -> &'static str {
    match state {
        State::Effected => "this call ran, and its destination answered",
        State::Failed => "this call certainly had no effect",
        State::InputRequired => "this call has not acted: its destination wants more input first",
        State::Indeterminate => "this call may or may not have had an effect: the answer was lost",
        _ => "what became of this call",
    }
}

/// `tool/function`, as far as it is known.
pub(crate) fn function(receipt: &Receipt) -> Option<String> {
    let act = receipt.act.as_ref()?;
    match (&act.tool_id, &act.function_id) {
        (Some(tool), Some(function)) => Some(format!("{}/{}", escape(tool), escape(function))),
        (Some(tool), None) => Some(format!("{}/?", escape(tool))),
        _ => None,
    }
}

/// What the receipt says, a line for each thing it says.
pub(crate) fn show(
    receipt: &Receipt,
    opened: &[(CommittedField, Vec<u8>)],
    terminal: &mut Terminal,
) {
    for (label, value) in rows(receipt, opened) {
        let before = [dim(format!("{label:>12}")), text("  ")];
        terminal.wrapped(&before, &text(value));
    }
    if receipt.enforcement == Enforcement::Advisory {
        let warning = "advisory only: another way to the effect stood open beside this gate";
        terminal.line(&[text("              "), styled(Style::Red, warning)]);
    }
}

fn rows(receipt: &Receipt, opened: &[(CommittedField, Vec<u8>)]) -> Vec<(&'static str, String)> {
    let act = receipt.act.as_ref();
    let code = receipt.code;
    let standing = [
        (receipt.isolation == Isolation::SameUser).then_some("gate and agent run as one user"),
        (receipt.approver == Approver::None).then_some("there is no approver"),
        act.is_some_and(|act| act.vouched)
            .then_some("who asked is only vouched for"),
    ];
    let standing = standing.into_iter().flatten().collect::<Vec<_>>();
    [
        ("when", Some(receipt.at.to_string())),
        ("call", function(receipt)),
        (
            "class",
            act.and_then(|act| act.consequence_class)
                .map(|class| class.name().to_owned()),
        ),
        ("agent", act.map(|act| escape(&act.agent_id))),
        (
            "code",
            code.map(|code| format!("{} {}", code.number(), code.name())),
        ),
        ("because", receipt.detail.as_deref().map(escape)),
        ("to", seen(CommittedField::Destination, receipt, opened)),
        (
            "arguments",
            seen(CommittedField::ArgumentsDigest, receipt, opened),
        ),
        ("checks", receipt.predicates.as_ref().map(checks)),
        ("act", act.map(|act| act.candidate_act_id.to_string())),
        (
            "authority",
            receipt.authority_id.as_ref().map(ToString::to_string),
        ),
        (
            "policy",
            receipt
                .policy_digest
                .as_ref()
                .map(|digest| digest.to_base64url()),
        ),
        ("note", (!standing.is_empty()).then(|| standing.join(" · "))),
    ]
    .into_iter()
    .filter_map(|(label, value)| Some((label, value?)))
    .collect()
}

/// What the PED looked at, and what of it did not hold.
fn checks(predicates: &Predicates) -> String {
    let all = serde_json::to_value(predicates).unwrap_or_default();
    let all = all.as_object().cloned().unwrap_or_default();
    let failed = all.iter().filter(|(_, holds)| **holds != Value::Bool(true));
    let failed = failed.map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    if failed.is_empty() {
        format!("{} of {} held", all.len(), all.len())
    } else {
        format!("did not hold: {}", failed.join(", "))
    }
}

/// A committed value: as opened, or that it stays closed.
fn seen(
    field: CommittedField,
    receipt: &Receipt,
    opened: &[(CommittedField, Vec<u8>)],
) -> Option<String> {
    let act = receipt.act.as_ref()?;
    let committed = match field {
        CommittedField::ArgumentsDigest => act.arguments_commitment.is_some(),
        CommittedField::Destination => act.destination_commitment.is_some(),
    };
    let value = opened.iter().find(|(other, _)| *other == field);
    match value {
        Some((_, value)) => Some(plain(field, value)),
        None => committed.then(|| "(committed to, not opened in this file)".to_owned()),
    }
}

fn plain(field: CommittedField, value: &[u8]) -> String {
    match field {
        CommittedField::ArgumentsDigest => format!("digest {}", b64::encode(value)),
        // JSON: the backslashes are its own.
        CommittedField::Destination => {
            escape(&String::from_utf8_lossy(value)).replace("\\\\", "\\")
        }
    }
}

/// An opened value for a program: a destination's object, a digest's base64url.
pub(crate) fn opened_value(field: CommittedField, value: &[u8]) -> Value {
    let object = match field {
        CommittedField::ArgumentsDigest => None,
        CommittedField::Destination => serde_json::from_slice(value).ok(),
    };
    object.unwrap_or_else(|| Value::String(b64::encode(value)))
}
