//! Forged authorities: every leaf of every field, and every byte of the canonical form, changed.

use lychgate_core::authority::FinalityAuthority;
use lychgate_core::json::{self, Value};
use lychgate_core::{Code, State};
use lychgate_gate::{End, Presented};
use lychgate_keys::SigningKey;

use crate::kit::{Kit, Prepared, value_of};

async fn ready() -> (Kit, Prepared) {
    let kit = Kit::new().await;
    let note = kit.note("work", "a", "x");
    let prepared = kit.prepared(&kit.session(), "write_note", &note).await;
    kit.issue(&prepared).await;
    (kit, prepared)
}

/// Presents an authority for the act as it is, and expects a refusal.
async fn refused(kit: &Kit, prepared: &Prepared, authority: FinalityAuthority, what: &str) {
    let presented = Presented::from_outside(prepared.act.clone(), Some(authority));
    let done = kit
        .gate
        .present(&kit.sink(), &prepared.live.view(), presented)
        .await;
    let refusal = done.err().unwrap_or_else(|| panic!("{what} was believed"));
    assert_eq!(refusal.code, Code::InvalidAuthority, "{what}");
    assert_eq!(
        kit.state(prepared.act.candidate_act_id),
        Some(State::Allowed),
        "{what}"
    );
}

/// Every place of a value that holds a text, a number or a truth.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter() {
                leaves(member, &format!("{at}/{key}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// The value with the leaf at `pointer` replaced.
fn with(value: &Value, pointer: &str, leaf: &Value) -> Value {
    let Some(rest) = pointer.strip_prefix('/') else {
        return leaf.clone();
    };
    let (key, rest) = rest
        .split_once('/')
        .map_or((rest, String::new()), |(key, rest)| {
            (key, format!("/{rest}"))
        });
    let Value::Object(members) = value else {
        panic!()
    };
    let mut changed = members.clone();
    let member = members.get(key).unwrap();
    changed.insert(key.to_owned(), with(member, &rest, leaf));
    Value::Object(changed)
}

/// What a leaf could be instead: its characters changed one by one, or another number.
fn others(leaf: &Value) -> Vec<Value> {
    match leaf {
        Value::String(text) => {
            let mut out = vec![Value::from(format!("{text}x")), Value::from("")];
            for (at, old) in text.char_indices() {
                let new = if old == 'a' { 'b' } else { 'a' };
                let mut changed = text.clone();
                changed.replace_range(at..at + old.len_utf8(), &new.to_string());
                out.push(Value::from(changed));
            }
            out
        }
        Value::Number(number) => {
            let text = format!("{}", number.get() + 1.0);
            vec![value_of(text.as_bytes()), value_of(b"0")]
        }
        _ => vec![value_of(b"false"), value_of(b"null")],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_character_of_every_field_mutated_is_refused() {
    let (kit, prepared) = ready().await;
    let whole = json::to_value(&prepared.authority).unwrap();
    let mut pointers = Vec::new();
    leaves(&whole, "", &mut pointers);
    assert!(pointers.len() > 25, "{pointers:?}");
    let (mut read, mut unread) = (0, 0);
    for pointer in &pointers {
        let leaf = whole.pointer(pointer).unwrap();
        for other in others(leaf) {
            let forged = with(&whole, pointer, &other);
            if forged == whole {
                continue;
            }
            match json::from_value::<FinalityAuthority>(&forged) {
                Ok(authority) => {
                    read += 1;
                    refused(
                        &kit,
                        &prepared,
                        authority,
                        &format!("{pointer} = {other:?}"),
                    )
                    .await;
                }
                // Closed and strict: it never becomes an authority at all.
                Err(_) => unread += 1,
            }
        }
    }
    assert!(read > 300 && unread > 100, "{read} read, {unread} not");
    assert_eq!(kit.effects.count(), 0);
    // None of that has touched the true one.
    let done = kit
        .gate
        .present(&kit.sink(), &prepared.live.view(), prepared.stolen())
        .await;
    let begun = kit.effects.begin(done.unwrap()).unwrap();
    kit.gate.settle(begun.end(End::Effected), None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_of_another_key_or_another_kind_is_refused() {
    let (kit, prepared) = ready().await;
    // A stranger's key, under its own id and under the PED's.
    let mut strange = prepared.authority.clone();
    SigningKey::generate().unwrap().sign(&mut strange).unwrap();
    refused(&kit, &prepared, strange.clone(), "a stranger's key").await;
    strange.issuer.mark.key_id = prepared.authority.issuer.mark.key_id.clone();
    refused(
        &kit,
        &prepared,
        strange,
        "a stranger's key under the PED's id",
    )
    .await;
    // The approver's key may not allow, and evidence is no authority.
    let mut approved = prepared.authority.clone();
    kit.approver.sign(&mut approved).unwrap();
    refused(&kit, &prepared, approved, "the approver's key").await;
    let allowed = kit
        .allowed(&kit.session(), "write_note", &kit.note("work", "b", "x"))
        .await;
    let mut swapped = prepared.authority.clone();
    let mut evidence = allowed.evidence().clone();
    kit.sign_as_ped(&mut evidence);
    swapped.issuer.mark = evidence.protector.mark;
    refused(&kit, &prepared, swapped, "the evidence's signature").await;
    let mut unsigned = prepared.authority.clone();
    unsigned.issuer.mark.signature = None;
    refused(&kit, &prepared, unsigned, "no signature").await;
}

/// Even what the PED's own key signed is worth nothing unless the store issued exactly that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_authority_that_the_store_did_not_issue_is_refused() {
    let (kit, prepared) = ready().await;
    let (sink, live) = (kit.sink(), prepared.live.clone());
    let later = prepared
        .authority
        .lifetime
        .expires_at
        .after(std::time::Duration::from_secs(3600));
    let mut longer = prepared.authority.clone();
    longer.lifetime.expires_at = later;
    kit.sign_as_ped(&mut longer);
    // The store compares its own row's time, not the presented one.
    kit.clock.advance(std::time::Duration::from_secs(10));
    let presented = Presented::from_outside(prepared.act.clone(), Some(longer));
    let done = kit.gate.present(&sink, &live.view(), presented).await;
    assert_eq!(done.unwrap_err().code, Code::StaleAuthority);
    let mut other = prepared.authority.clone();
    other.lifetime.expires_at = later;
    other.authority_id = lychgate_core::id::AuthorityId::from_bytes([3; 16]);
    kit.sign_as_ped(&mut other);
    let presented = Presented::from_outside(prepared.act.clone(), Some(other));
    let done = kit.gate.present(&sink, &live.view(), presented).await;
    assert_eq!(done.unwrap_err().code, Code::NoFinalityAuthority);
    assert_eq!(kit.effects.count(), 0);
}
