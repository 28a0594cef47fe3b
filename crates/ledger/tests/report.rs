//! A record with a violation of each kind, and one without: each is named, with its act and its receipts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lychgate_core::id::{ActId, AuthorityId, EffectId, EvidenceId, GateId, TicketId};
use lychgate_core::json::{self, Limits, Value};
use lychgate_core::{Code, ConsequenceClass, Digest, State, Timestamp};
use lychgate_ledger::report::{
    Breach, CONTRADICTS, Examiner, Happened, Question, Report, Test, Verdict,
};

/// A record in the making. Every line is a receipt's JSON with some members changed.
#[derive(Default)]
struct Lines(Vec<Option<Vec<u8>>>);

const PIECES: &str =
    "evidence_id evidence_digest authority_id authority_digest verification_digest effect_id";

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + second * 1000)
}

fn act(n: u8) -> ActId {
    ActId::new(at(u64::from(n)), [n; 10])
}

fn digest(n: u8) -> String {
    let digest = json::to_value(&Digest::sha256(&[n])).unwrap();
    String::from_utf8(lychgate_core::jcs::to_bytes(&digest)).unwrap()
}

impl Lines {
    fn push(&mut self, kind: &str, second: u64, more: &str) -> u64 {
        let gate = GateId::new(at(0), [1; 10]);
        self.of_gate(gate, kind, second, more)
    }

    fn of_gate(&mut self, gate: GateId, kind: &str, second: u64, more: &str) -> u64 {
        let comma = if more.is_empty() { "" } else { "," };
        let text = format!(
            r#"{{"version":"1.0","object_type":"validation_receipt","kind":"{kind}","at":"{}","gate_id":"{gate}",
            "epochs":{{"policy_epoch":1,"authority_epoch":0,"revocation_epoch":0}},"policy_digest":{},
            "enforcement":"finality","isolation":"same-user","approver":"key"{comma}{more}}}"#,
            at(second),
            digest(200),
        );
        self.text(&text)
    }

    fn text(&mut self, text: &str) -> u64 {
        self.0.push(Some(text.as_bytes().to_vec()));
        self.0.len() as u64 - 1
    }

    fn step(&mut self, kind: &str, n: u8, state: &str, more: &str) -> u64 {
        let comma = if more.is_empty() { "" } else { "," };
        let more = format!("{},\"state\":\"{state}\"{comma}{more}", part(n, 0));
        self.push(kind, u64::from(n), &more)
    }

    fn denied(&mut self, n: u8, code: Code) -> u64 {
        self.step(
            "denied",
            n,
            "refused",
            &format!("\"code\":\"{}\"", code.number()),
        )
    }

    /// A dispatch without some of its pieces.
    fn dispatched_without(&mut self, n: u8, without: &str, more: &str) -> u64 {
        let comma = if more.is_empty() { "" } else { "," };
        let more = format!("{}{comma}{more}", pieces(n, without));
        self.step("dispatched", n, "dispatched", &more)
    }

    fn dispatched(&mut self, n: u8) -> u64 {
        self.dispatched_without(n, "", "")
    }

    fn outcome(&mut self, n: u8, state: &str) -> u64 {
        self.step("outcome", n, state, &named(n))
    }

    fn whole(&mut self, n: u8) -> (u64, u64) {
        (self.dispatched(n), self.outcome(n, "effected"))
    }

    fn report(&self) -> Report {
        self.asked(Question::default())
    }

    fn asked(&self, question: Question) -> Report {
        let mut examiner = Examiner::new(question);
        for (index, bytes) in (0..).zip(&self.0) {
            examiner.record(index, bytes.as_deref());
        }
        examiner.finish(None)
    }
}

fn part(n: u8, depth: u32) -> String {
    format!(
        r#""act":{{"candidate_act_id":"{}","agent_id":"agent","delegation_depth":{depth},"tool_id":"bank",
        "function_id":"transfer","consequence_class":"FINANCIAL","vouched":false}}"#,
        act(n)
    )
}

fn named(n: u8) -> String {
    pieces(
        n,
        "evidence_id evidence_digest authority_digest verification_digest",
    )
}

fn pieces(n: u8, without: &str) -> String {
    let (time, random) = (at(u64::from(n)), [n; 10]);
    let pieces = PIECES.split(' ').filter(|piece| !without.contains(piece));
    let value = |piece: &str| match piece {
        "evidence_id" => format!("\"{}\"", EvidenceId::new(time, random)),
        "authority_id" => format!("\"{}\"", AuthorityId::new(time, random)),
        "effect_id" => format!("\"{}\"", EffectId::new(time, random)),
        _ => digest(n),
    };
    let pieces = pieces.map(|piece| format!("\"{piece}\":{}", value(piece)));
    pieces.collect::<Vec<_>>().join(",")
}

/// What was found, each with its receipts.
fn found(report: &Report) -> Vec<(Breach, Vec<u64>)> {
    let all = report.violations.iter();
    all.map(|one| (one.breach, one.records.clone())).collect()
}

fn ticket(n: u8) -> String {
    format!(
        "\"ticket_id\":\"{}\"",
        TicketId::new(at(u64::from(n)), [n; 10])
    )
}

#[test]
fn an_act_that_asked_ran_on_its_own_yes_alone() {
    let mut lines = Lines::default();
    lines.step("escalated", 1, "escalated", &ticket(1));
    lines.push("approved", 2, &ticket(1));
    lines.dispatched_without(1, "", &ticket(1));
    lines.outcome(1, "effected");
    assert!(found(&lines.report()).is_empty());
    // The same yes once more, a no, and silence.
    let again = lines.dispatched_without(2, "", &ticket(1));
    lines.outcome(2, "effected");
    lines.step("escalated", 3, "escalated", &ticket(3));
    lines.push("disapproved", 4, &ticket(3));
    let denied = lines.dispatched_without(4, "", &ticket(3));
    lines.outcome(4, "effected");
    let never = lines.dispatched_without(5, "", &ticket(5));
    lines.outcome(5, "effected");
    assert_eq!(
        found(&lines.report()),
        [
            (Breach::NotApproved, vec![again]),
            (Breach::NotApproved, vec![denied]),
            (Breach::NotApproved, vec![never]),
        ]
    );
}

#[test]
fn a_clean_record_is_clean_and_what_was_not_measured_is_not_claimed() {
    let mut lines = Lines::default();
    lines.push("started", 0, "");
    lines.whole(1);
    lines.denied(2, Code::ArgsSubstitution);
    lines.whole(3);
    lines.push("stopped", 9, "");
    let report = lines.report();
    assert!(report.is_clean(), "{:?}", report.violations);
    assert_eq!(report.verdicts.authority, Verdict::Held);
    assert_eq!(report.verdicts.mismatch, Verdict::Held);
    assert_eq!(report.verdicts.depth, Verdict::Held);
    assert!(matches!(
        report.verdicts.second_path,
        Verdict::NotMeasured(_)
    ));
    assert_eq!(
        (
            report.counts.invoked,
            report.counts.high_risk,
            report.counts.acts
        ),
        (2, 2, 3)
    );
    assert_eq!(report.counts.in_state(State::Effected), 2);
    assert_eq!(report.counts.of_class(Some(ConsequenceClass::Financial)), 3);
    assert_eq!(report.counts.codes.get(&Code::ArgsSubstitution), Some(&1));

    let report = Lines::default().report();
    assert_eq!(report.verdicts.authority, Verdict::Nothing);
    assert_eq!(report.verdicts.depth, Verdict::Nothing);
}

#[test]
fn a_dispatch_that_lacks_a_piece_of_its_chain_is_named() {
    for (without, breach) in [
        ("evidence_id", Breach::NoEvidence),
        ("evidence_digest", Breach::NoEvidence),
        ("authority_digest", Breach::NoAuthority),
        ("verification_digest", Breach::NoVerification),
    ] {
        let mut lines = Lines::default();
        lines.whole(1);
        let index = lines.dispatched_without(2, without, "");
        lines.outcome(2, "effected");
        let report = lines.report();
        assert_eq!(found(&report), [(breach, vec![index])], "{without}");
        assert_eq!(report.verdicts.authority, Verdict::Violated(1));
        assert_eq!(report.violations[0].act, Some(act(2)));
        assert_eq!(
            report.violations[0].function.as_deref(),
            Some("bank/transfer")
        );
    }
    let mut lines = Lines::default();
    let index = lines.dispatched_without(2, "effect_id", "");
    let one = lines.dispatched_without(3, "", "\"code\":\"EF-080\"");
    let failed = json::to_value(&lychgate_core::evidence::Predicates {
        purpose_valid: false,
        ..lychgate_core::evidence::Predicates::HOLD
    });
    let failed = String::from_utf8(lychgate_core::jcs::to_bytes(&failed.unwrap())).unwrap();
    let two = lines.dispatched_without(4, "", &format!("\"predicates\":{failed}"));
    let expected = [
        (Breach::NoEffectId, vec![index]),
        (Breach::NotDispatched, vec![one]),
        (Breach::PredicateFailed, vec![two]),
    ];
    assert_eq!(found(&lines.report()), expected);
}

#[test]
fn no_act_and_no_authority_is_used_twice() {
    let mut lines = Lines::default();
    let (first, _) = lines.whole(1);
    let again = lines.dispatched(1);
    let report = lines.report();
    let expected = [
        (Breach::ActTwice, vec![first, again]),
        (Breach::AuthorityTwice, vec![first, again]),
    ];
    assert_eq!(found(&report), expected);

    let mut lines = Lines::default();
    let (first, _) = lines.whole(1);
    let more = pieces(1, "");
    let stolen = lines.step("dispatched", 2, "dispatched", &more);
    assert_eq!(
        found(&lines.report()),
        [(Breach::AuthorityTwice, vec![first, stolen])]
    );
}

#[test]
fn what_was_issued_is_what_is_consumed_and_not_after_the_end() {
    let mut lines = Lines::default();
    let allowed = lines.step(
        "allowed",
        1,
        "allowed",
        &pieces(1, "verification_digest effect_id"),
    );
    let more = pieces(2, "evidence_id evidence_digest");
    let other = lines.step("dispatched", 1, "dispatched", &more);
    assert_eq!(
        found(&lines.report()),
        [(Breach::OtherAuthority, vec![allowed, other])]
    );

    let mut lines = Lines::default();
    lines.step("escalated", 1, "escalated", &ticket(1));
    let gone = lines.step("lapsed", 1, "withdrawn", &ticket(1));
    let late = lines.dispatched(1);
    assert_eq!(
        found(&lines.report()),
        [(Breach::AfterEnd, vec![gone, late])]
    );

    let mut lines = Lines::default();
    let day = 100_000;
    let more = format!("{},\"state\":\"dispatched\",{}", part(1, 0), pieces(1, ""));
    let late = lines.push("dispatched", day, &more);
    assert_eq!(found(&lines.report()), [(Breach::Stale, vec![late])]);
}

#[test]
fn an_outcome_follows_its_dispatch_once() {
    let mut lines = Lines::default();
    let alone = lines.outcome(1, "effected");
    let (two, ended) = lines.whole(2);
    let again = lines.outcome(2, "failed");
    let three = lines.dispatched(3);
    let differs = lines.step("outcome", 3, "effected", &named(2));
    let expected = [
        (Breach::OutcomeWithoutDispatch, vec![alone]),
        (Breach::OutcomeTwice, vec![two, ended, again]),
        (Breach::OutcomeDiffers, vec![three, differs]),
    ];
    assert_eq!(found(&lines.report()), expected);

    let mut lines = Lines::default();
    lines.push("started", 0, "");
    let lost = lines.dispatched(1);
    let start = lines.of_gate(GateId::new(at(9), [2; 10]), "started", 9, "");
    let report = lines.report();
    assert_eq!(found(&report), [(Breach::NeverSettled, vec![lost, start])]);
    assert_eq!(report.starts.without_stop.records, [start]);
    let gap = report.timeline.gaps()[0];
    assert_eq!((gap.from, gap.to, gap.clean), (at(1), Some(at(9)), false));

    let mut lines = Lines::default();
    let (_, ended) = lines.whole(1);
    let wrong = lines.step("reconciled", 1, "reconciled_effect", &named(1));
    assert_eq!(
        found(&lines.report()),
        [(Breach::OutOfOrder, vec![ended, wrong])]
    );
}

#[test]
fn a_mismatch_is_denied_and_nothing_goes_round_the_sink() {
    let mut lines = Lines::default();
    let denied = lines.denied(1, Code::ArgsSubstitution);
    let same = lines.dispatched(1);
    let report = lines.report();
    assert!(found(&report).contains(&(Breach::DispatchedAfterMismatch, vec![denied, same])));
    assert!(matches!(report.verdicts.mismatch, Verdict::Violated(1)));

    let mut lines = Lines::default();
    let denied = lines.denied(1, Code::ToolSubstitution);
    let retry = lines.dispatched_without(2, "", &format!("\"retry_of\":\"{}\"", act(1)));
    assert_eq!(
        found(&lines.report()),
        [(Breach::RetryOfMismatch, vec![denied, retry])]
    );

    let mut lines = Lines::default();
    let denied = lines.denied(1, Code::ActMismatch);
    lines.whole(2);
    let skipped = lines.dispatched_without(3, "verification_digest", "");
    let alone = lines.outcome(4, "effected");
    let report = lines.report();
    let of_mismatch = report
        .violations
        .iter()
        .filter(|one| one.breach.test() == Test::Mismatch);
    let of_mismatch = of_mismatch.map(|one| (one.breach, one.records.clone()));
    let expected = [
        (Breach::SinkSkipped, vec![denied, skipped]),
        (Breach::SinkSkipped, vec![denied, alone]),
    ];
    assert_eq!(of_mismatch.collect::<Vec<_>>(), expected);

    let mut lines = Lines::default();
    let noticed = lines.dispatched_without(1, "", "\"code\":\"EF-011\"");
    assert!(found(&lines.report()).contains(&(Breach::MismatchNotDenied, vec![noticed])));
}

#[test]
fn a_stolen_copy_that_was_denied_spoils_nothing() {
    let mut lines = Lines::default();
    lines.step(
        "allowed",
        1,
        "allowed",
        &pieces(1, "verification_digest effect_id"),
    );
    lines.denied(1, Code::HolderMismatch);
    lines.whole(1);
    lines.denied(1, Code::AuthorityAlreadyUsed);
    let report = lines.report();
    assert_eq!(found(&report), []);
    assert_eq!(
        (report.counts.acts, report.counts.in_state(State::Effected)),
        (1, 1)
    );
}

#[test]
fn nothing_deeper_than_permitted_reaches_invoke() {
    let mut lines = Lines::default();
    let more = format!("{},\"state\":\"dispatched\",{}", part(1, 3), pieces(1, ""));
    let deep = lines.push("dispatched", 1, &more);
    let depth = |max_depth| Question {
        max_depth,
        ..Question::default()
    };
    let report = lines.asked(depth(Some(2)));
    assert_eq!(found(&report), [(Breach::TooDeep, vec![deep])]);
    assert_eq!(
        (report.verdicts.depth, report.counts.deepest),
        (Verdict::Violated(1), 3)
    );
    assert_eq!(lines.asked(depth(Some(3))).verdicts.depth, Verdict::Held);
    assert!(matches!(
        lines.report().verdicts.depth,
        Verdict::NotMeasured(_)
    ));
    let policy = Digest::sha256(&[200]);
    let known = Question {
        depths: vec![(policy, 0)],
        ..Question::default()
    };
    assert_eq!(lines.asked(known).verdicts.depth, Verdict::Violated(1));
    // A record that says what its configuration permits needs nobody to say it.
    for (permitted, verdict) in [(2, Verdict::Violated(1)), (3, Verdict::Held)] {
        let mut lines = Lines::default();
        lines.push(
            "applied",
            1,
            &format!("\"detail\":\"max_depth:{permitted}\""),
        );
        lines.push("dispatched", 2, &more);
        assert_eq!(lines.report().verdicts.depth, verdict, "{permitted}");
    }
}

#[test]
fn a_line_that_is_no_receipt_and_one_without_bytes_are_not_passed_over() {
    let mut lines = Lines::default();
    lines.whole(1);
    let line = lines.text(r#"{"kind":"dispatched"}"#);
    assert_eq!(found(&lines.report()), [(Breach::NotAReceipt, vec![line])]);

    let mut lines = Lines::default();
    lines.0.push(None);
    // Its dispatch is archived.
    lines.outcome(1, "effected");
    lines.whole(200);
    let report = lines.report();
    assert_eq!(found(&report), []);
    assert!(matches!(report.verdicts.authority, Verdict::Partly(_)));
    let later = lines.outcome(220, "effected");
    assert_eq!(
        found(&lines.report()),
        [(Breach::OutcomeWithoutDispatch, vec![later])]
    );
}

#[test]
fn advisory_is_never_finality() {
    let mut lines = Lines::default();
    lines.whole(1);
    let more = format!("{},\"state\":\"dispatched\"", part(2, 0));
    let line = lines.push("dispatched", 2, &more);
    let text = String::from_utf8(lines.0.pop().unwrap().unwrap()).unwrap();
    assert_eq!(
        lines.text(&text.replace("\"finality\"", "\"advisory\"")),
        line
    );
    let report = lines.report();
    assert_eq!(found(&report), []);
    assert_eq!(
        (
            report.counts.advisory.records.as_slice(),
            report.counts.invoked
        ),
        (&[line][..], 1)
    );
    assert!(matches!(report.verdicts.authority, Verdict::Partly(_)));
    assert!(!report.is_clean());
}

#[test]
fn people_and_doubts_are_counted_with_their_times() {
    let mut lines = Lines::default();
    lines.step(
        "escalated",
        1,
        "escalated",
        &format!("\"code\":\"EF-070\",{}", ticket(1)),
    );
    lines.push("approved", 31, &ticket(1));
    lines.whole(1);
    lines.step("escalated", 2, "escalated", &ticket(2));
    lines.push("disapproved", 12, &ticket(2));
    lines.step("escalated", 3, "escalated", &ticket(3));
    lines.push("lapsed", 99, &ticket(3));
    lines.step("escalated", 4, "escalated", &ticket(4));
    for n in 11..=14 {
        lines.dispatched(n);
        lines.outcome(n, "indeterminate");
    }
    lines.step("reconciled", 11, "indeterminate", &named(11));
    let found_it = format!(
        "{},\"detail\":\"looked up by x: the destination has the effect\"",
        named(11)
    );
    lines.step("reconciled", 11, "reconciled_effect", &found_it);
    lines.step(
        "reconciled",
        12,
        "reconciled_no_effect",
        &format!("{},\"detail\":\"reason:x\"", named(12)),
    );
    let beside = format!("{},\"detail\":\"{CONTRADICTS}\"", named(12));
    let late = lines.step("outcome", 12, "reconciled_no_effect", &beside);
    lines.outcome(13, "effected");
    let report = lines.report();
    assert_eq!(found(&report), []);
    let people = &report.people;
    assert_eq!((people.asked, people.approved, people.denied), (4, 1, 1));
    assert_eq!((people.lapsed, people.waiting), (1, 1));
    assert_eq!(people.longest_wait, Some(Duration::from_secs(30)));
    assert_eq!(people.median_wait, Some(Duration::from_secs(10)));
    let doubts = &report.doubts;
    assert_eq!(
        (
            doubts.number,
            doubts.by_answer,
            doubts.by_look_up,
            doubts.by_person
        ),
        (4, 1, 1, 1)
    );
    assert_eq!((doubts.looked_up_in_vain, doubts.open_number), (1, 1));
    assert_eq!(doubts.open[0].act, act(14));
    assert_eq!(report.counts.contradicted.records, [late]);
    // A person said no: the act is refused although its own line has not come yet.
    assert_eq!(report.counts.in_state(State::Refused), 1);
    assert_eq!(report.counts.in_state(State::Escalated), 2);
}

#[test]
fn only_the_time_asked_for_is_counted_and_all_of_it_is_read() {
    let mut lines = Lines::default();
    lines.dispatched_without(1, "evidence_id", "");
    lines.dispatched(50);
    let more = format!("{},\"state\":\"effected\",{}", part(50, 0), named(50));
    lines.push("outcome", 100, &more);
    let again = lines.dispatched(50);
    let question = |since, until| Question {
        since: Some(at(since)),
        until: Some(at(until)),
        ..Question::default()
    };
    let report = lines.asked(question(50, 60));
    assert_eq!(report.counts.acts, 1);
    // Up to then the second dispatch is one all the same: it stands in the record at that time.
    assert!(
        found(&report)
            .iter()
            .any(|(_, records)| records.last() == Some(&again))
    );
    let report = lines.asked(question(90, 200));
    assert_eq!(found(&report), []);
    assert_eq!((report.counts.acts, report.counts.invoked), (1, 0));
    assert_eq!(report.counts.in_state(State::Effected), 1);
    let spans = report.timeline.spans();
    assert_eq!(
        spans
            .iter()
            .map(|span| span.of(Happened::Effected))
            .sum::<u64>(),
        1
    );
}

#[test]
fn the_lines_of_these_tests_are_receipts() {
    let mut lines = Lines::default();
    lines.whole(1);
    for line in lines.0.iter().flatten() {
        let value: Value = json::parse(line, &Limits::OBJECT).unwrap();
        let receipt: lychgate_core::receipt::Receipt = json::from_value(&value).unwrap();
        assert_eq!(receipt.gate_id, GateId::new(at(0), [1; 10]));
    }
}

#[test]
#[ignore = "a measurement: RECEIPTS=1000000 cargo test --release -p lychgate-ledger --test report -- --ignored --nocapture"]
#[allow(clippy::print_stderr, clippy::disallowed_methods)]
fn a_report_over_many_receipts() {
    let total: u64 = std::env::var("RECEIPTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    // Ten acts a second, for as long as it takes: a dispatch and its outcome each.
    let predicates = json::to_value(&lychgate_core::evidence::Predicates::HOLD).unwrap();
    let predicates = String::from_utf8(lychgate_core::jcs::to_bytes(&predicates)).unwrap();
    let (mut examiner, mut lines) = (Examiner::new(Question::default()), Lines::default());
    let (first, second) = (
        lines.dispatched_without(1, "", &format!("\"predicates\":{predicates}")),
        lines.outcome(1, "effected"),
    );
    let template =
        [first, second].map(|at| String::from_utf8(lines.0[at as usize].clone().unwrap()).unwrap());
    let (mut took, mut bytes) = (Duration::ZERO, 0);
    for n in 0..total {
        let when = Timestamp::from_millis(1_800_000_000_000 + n / 2 * 100);
        let mut random = [0; 10];
        random[2..].copy_from_slice(&(n / 2).to_be_bytes());
        let line = template[(n % 2) as usize]
            .replace(&act(1).to_string(), &ActId::new(when, random).to_string())
            .replace(
                &AuthorityId::new(at(1), [1; 10]).to_string(),
                &AuthorityId::new(when, random).to_string(),
            )
            .replace(
                &EffectId::new(at(1), [1; 10]).to_string(),
                &EffectId::new(when, random).to_string(),
            )
            .replace(&at(1).to_string(), &when.to_string());
        bytes += line.len();
        let start = std::time::Instant::now();
        examiner.record(n, Some(line.as_bytes()));
        took += start.elapsed();
    }
    let report = examiner.finish(None);
    assert_eq!(found(&report), []);
    assert_eq!(report.counts.invoked, total / 2);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    eprintln!(
        "{total} receipts of {} bytes: {took:.2?}, {peak}",
        bytes as u64 / total
    );
}
