//! Whoever can write the store's file while the gate is down writes what a ticket says. A ticket is worth what its
//! approvers signed, and nothing more.

use std::time::Duration;

use lychgate_core::Code;
use lychgate_core::id::TicketId;
use lychgate_core::json;
use lychgate_gate::End;
use lychgate_keys::SigningKey;
use lychgate_keys::verdict::{ApprovalVerdict, Verdict as Ruling};
use lychgate_store::{Store, TicketState};
use rusqlite::{Connection, params};

use crate::kit::{Kit, MAIL, denied};

const PAY: &str = r#"{"to":"bob","amount":1}"#;

/// Makes a ticket whose caller has gone, and what a person says to it.
async fn ticket(kit: &Kit, ruling: Option<Ruling>, function: &str, arguments: &str) -> TicketId {
    let asked = kit.ask(&kit.session(), function, arguments).await;
    let ticket = asked.ticket;
    match ruling {
        // Heard first, so that the caller is told no and not that it has gone.
        Some(Ruling::Deny) => {
            kit.deny(ticket).await;
            drop(asked.done().await);
        }
        Some(Ruling::Approve) => {
            asked.give_up().await;
            kit.approve(ticket).await;
        }
        None => drop(asked.give_up().await),
    }
    ticket
}

/// Ends the gate, edits its file as its disk's owner can, and starts the next one.
async fn edited(kit: Kit, edit: impl FnOnce(&Connection)) -> Kit {
    kit.reopened(|path| {
        let file = Connection::open(path).unwrap();
        edit(&file);
    })
    .await
}

fn put(file: &Connection, sql: &str, parameters: impl rusqlite::Params) {
    assert_eq!(file.execute(sql, parameters).unwrap(), 1, "{sql}");
}

fn approve_row(file: &Connection, ticket: TicketId) {
    let sql = "UPDATE tickets SET state = 1, live = 1, consumed_by = NULL WHERE id = ?1";
    put(file, sql, params![ticket.as_bytes()]);
}

fn keep(file: &Connection, ticket: TicketId, verdict: &ApprovalVerdict) {
    let sql = "INSERT INTO verdicts (ticket, approver, bytes) VALUES (?1, ?2, ?3)";
    let bytes = json::to_canonical(verdict).unwrap();
    let approver = &verdict.mark.key_id.0;
    put(file, sql, params![ticket.as_bytes(), approver, bytes]);
}

/// Whatever the file says, an equal call does not run.
async fn refused(kit: &Kit, case: &str) -> Code {
    let told = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!(kit.effects.count(), 0, "{case}");
    told.code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_that_no_approver_approved_licenses_nothing() {
    type Edit = fn(&Connection, TicketId, &Kept);
    struct Kept {
        other: TicketId,
        other_yes: ApprovalVerdict,
        forged: ApprovalVerdict,
    }
    let cases: [(&str, Option<Ruling>, Edit); 8] = [
        ("a pending one set to approved", None, |file, ticket, _| {
            approve_row(file, ticket);
        }),
        (
            "a denied one set to approved",
            Some(Ruling::Deny),
            |file, ticket, _| {
                approve_row(file, ticket);
            },
        ),
        (
            "a no turned into a yes",
            Some(Ruling::Deny),
            |file, ticket, _| {
                approve_row(file, ticket);
                let sql = "UPDATE verdicts SET bytes = CAST(replace(CAST(bytes AS TEXT), '\"deny\"', '\"approve\"') AS BLOB)
                       WHERE ticket = ?1";
                put(file, sql, params![ticket.as_bytes()]);
            },
        ),
        (
            "the verdict taken away",
            Some(Ruling::Approve),
            |file, ticket, _| {
                put(
                    file,
                    "DELETE FROM verdicts WHERE ticket = ?1",
                    params![ticket.as_bytes()],
                );
            },
        ),
        ("the yes to another ticket", None, |file, ticket, kept| {
            approve_row(file, ticket);
            keep(file, ticket, &kept.other_yes);
        }),
        (
            "another subject's ticket, its yes and all",
            None,
            |file, ticket, kept| {
                put(
                    file,
                    "DELETE FROM tickets WHERE id = ?1",
                    params![ticket.as_bytes()],
                );
                let sql = "UPDATE tickets SET subject = ?2 WHERE id = ?1";
                let subject = kept.forged.subject.bytes();
                put(file, sql, params![kept.other.as_bytes(), subject]);
            },
        ),
        (
            "a stretched end",
            Some(Ruling::Approve),
            |file, ticket, _| {
                let sql = "UPDATE tickets SET expires_at = expires_at + 3600000 WHERE id = ?1";
                put(file, sql, params![ticket.as_bytes()]);
            },
        ),
        (
            "a yes of a key that nobody believes",
            None,
            |file, ticket, kept| {
                approve_row(file, ticket);
                keep(file, ticket, &kept.forged);
            },
        ),
    ];
    for (case, ruling, edit) in cases {
        let kit = Kit::new().await;
        let ticket = ticket(&kit, ruling, "send_mail", MAIL).await;
        let other = self::ticket(&kit, Some(Ruling::Approve), "pay", PAY).await;
        let kept = kit.store.verdicts(other).unwrap().remove(0).bytes;
        let value = json::parse(&kept, &json::Limits::OBJECT).unwrap();
        let mut forged = kit.verdict(ticket, Ruling::Approve);
        SigningKey::generate().unwrap().sign(&mut forged).unwrap();
        let kept = Kept {
            other,
            other_yes: json::from_value(&value).unwrap(),
            forged,
        };
        let kit = edited(kit, |file| edit(file, ticket, &kept)).await;
        let code = refused(&kit, case).await;
        assert_eq!(code, Code::FailClosed, "{case}");
        if case == "a stretched end" {
            kit.clock.advance(Duration::from_secs(16 * 60));
            let code = refused(&kit, "after the end that was signed").await;
            assert_eq!(code, Code::FailClosed);
        }
    }
}

/// A used approval set back to unused: the record says that it was used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_approval_that_is_set_back_stays_used() {
    let kit = Kit::new().await;
    let ticket = ticket(&kit, Some(Ruling::Approve), "send_mail", MAIL).await;
    let session = kit.session();
    let act = kit
        .run(&session, "send_mail", MAIL, End::Effected)
        .await
        .ran();
    kit.gate.delivered(act);
    kit.all_noted(0).await;
    let kit = edited(kit, |file| approve_row(file, ticket)).await;
    assert_eq!(kit.ticket_state(ticket), TicketState::Expired);
    let again = kit.ask(&kit.session(), "send_mail", MAIL).await;
    assert_ne!(again.ticket, ticket, "a person is asked anew");
    again.give_up().await;
    assert_eq!(kit.effects.count(), 1);
}

/// An approval that was given and not used is still worth something after a restart: nothing was edited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unused_approval_outlives_a_restart() {
    let kit = Kit::new().await;
    let ticket = ticket(&kit, Some(Ruling::Approve), "send_mail", MAIL).await;
    let kit = edited(kit, |_| {}).await;
    let session = kit.session();
    let act = kit
        .run(&session, "send_mail", MAIL, End::Effected)
        .await
        .ran();
    assert_eq!(kit.ticket(ticket).consumed_by, Some(act));
}

/// What a person is shown belongs to its ticket, its subject and its end: beside another one it opens to nothing, so
/// nobody is shown one call and signs another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_display_is_not_shown_beside_what_it_was_not_made_for() {
    let moves = [
        "UPDATE tickets SET subject = (SELECT subject FROM tickets WHERE id = ?2) WHERE id = ?1",
        "UPDATE tickets SET expires_at = expires_at + 1 WHERE id = ?1 AND ?2 IS NOT NULL",
        "UPDATE tickets SET display = (SELECT display FROM tickets WHERE id = ?2),
                            summary = (SELECT summary FROM tickets WHERE id = ?2) WHERE id = ?1",
    ];
    for sql in moves {
        let kit = Kit::new().await;
        let one = ticket(&kit, None, "send_mail", MAIL).await;
        let other = ticket(&kit, None, "pay", PAY).await;
        let kit = edited(kit, |file| {
            put(file, sql, params![one.as_bytes(), other.as_bytes()]);
        })
        .await;
        assert_eq!(kit.gate.pending_ticket(one).unwrap(), None, "{sql}");
        let listed = kit.gate.pending().unwrap();
        assert!(listed.iter().all(|summary| summary.id != one), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_approver_nothing_is_approvable() {
    let kit = Kit::without_approver().await;
    let told = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!(told.code, Code::InstructionProvenanceFailure);
    let ticket = TicketId::from_bytes([5; 16]);
    let kit = edited(kit, |file| {
        let sql = "INSERT INTO tickets (id, state, live, subject, act, created_at, expires_at)
                   VALUES (?1, 1, 1, ?2, ?1, 0, 9999999999999)";
        put(file, sql, params![ticket.as_bytes(), [1_u8; 32]]);
    })
    .await;
    let told = denied(kit.pass(&kit.session(), "send_mail", MAIL).await);
    assert_eq!(told.code, Code::InstructionProvenanceFailure);
    assert_eq!(kit.effects.count(), 0);
}
