//! The report as a document. Stable: docs/REPORT.md describes it, and what changes its meaning changes [`FORMAT`].

use std::collections::BTreeMap;

use lychgate_core::digest::b64;
use lychgate_core::{ConsequenceClass, State};
use lychgate_ledger::report::{Breach, Found, Happened, Report, Verdict};
use serde_json::{Map, Value, json};

use super::Told;
use super::words::lines;

/// The document's kind and version.
pub(super) const FORMAT: &str = "lychgate-report/1";

/// All of it.
pub(super) fn document(told: &Told) -> Value {
    let (report, clean) = (&told.report, &told.clean);
    let question = &told.question;
    let depths = question.depths.iter().map(
        |(policy, depth)| json!({ "policy_digest": policy.to_base64url(), "max_depth": depth }),
    );
    json!({
        "report": FORMAT,
        "whole": true,
        "record": {
            "log": told.log, "size": clean.size, "root": b64::encode(&clean.root), "signed": clean.sealed,
            "anchored": clean.anchored, "own_heads": told.heads.0, "anchored_heads": told.heads.1,
            "archived": clean.without_bytes, "head": told.head,
        },
        "asked": {
            "since": question.since, "until": question.until, "max_depth": question.max_depth,
            "applied": depths.collect::<Vec<_>>(),
        },
        "as_of": report.as_of,
        "clean": report.is_clean(),
        "tests": lines(report).map(|line| test(report, line.number, line.verdict)),
        "violated": report.violated,
        "violations": report.violations.iter().map(|one| json!({
            "test": one.breach.test().number(), "breach": one.breach.word(), "sentence": one.breach.sentence(),
            "act": one.act, "function": one.function, "class": one.class, "at": one.at, "records": one.records,
        })).collect::<Vec<_>>(),
        "advisory": found(&report.counts.advisory),
        "counts": counts(report),
        "people": people(report),
        "doubts": doubts(report),
        "anchors_accepted": report.accepted.iter().map(|one| json!({
            "record": one.record, "at": one.at, "difference": one.difference, "approver_key": one.approver,
        })).collect::<Vec<_>>(),
        "gate": {
            "started": report.starts.started, "stopped": report.starts.stopped,
            "without_stop": found(&report.starts.without_stop),
        },
        "timeline": timeline(report),
    })
}

fn test(report: &Report, number: u8, verdict: Verdict) -> Value {
    let counts = &report.counts;
    let (reason, violations) = match verdict {
        Verdict::Partly(why) | Verdict::NotMeasured(why) => (Some(why), 0),
        Verdict::Violated(number) => (None, number),
        Verdict::Held | Verdict::Nothing => (None, 0),
    };
    let examined = match number {
        1 => {
            json!({ "invoked": counts.invoked, "high_risk": counts.high_risk, "unjudged": counts.unjudged })
        }
        2 => json!({ "mismatches": counts.mismatches }),
        3 => {
            json!({ "invoked": counts.invoked, "deepest": counts.deepest, "limit_unknown": counts.depth_unknown })
        }
        _ => json!({}),
    };
    let breaches = Breach::ALL
        .iter()
        .filter(|breach| breach.test().number() == number);
    let of = |breach: &Breach| {
        report
            .violations
            .iter()
            .filter(|one| one.breach == *breach)
            .count()
    };
    let by_breach = breaches.map(|breach| (breach.word(), of(breach)));
    let by_breach = by_breach
        .filter(|(_, number)| *number > 0)
        .collect::<BTreeMap<_, _>>();
    json!({
        "test": number, "verdict": verdict.word(), "reason": reason, "violations": violations,
        "by_breach": by_breach, "examined": examined,
    })
}

fn found(found: &Found) -> Value {
    json!({ "number": found.number, "records": found.records })
}

fn counts(report: &Report) -> Value {
    let counts = &report.counts;
    let states = State::ALL.into_iter();
    let states = states.map(|state| (state.name().to_owned(), json!(counts.in_state(state))));
    let classes = ConsequenceClass::ALL.into_iter();
    let mut classes = classes
        .map(|class| (class.name().to_owned(), json!(counts.of_class(Some(class)))))
        .collect::<Map<_, _>>();
    classes.insert("none".to_owned(), json!(counts.of_class(None)));
    let codes = counts.codes.iter();
    let codes = codes.map(|(code, number)| (code.number().to_owned(), json!(number)));
    json!({
        "records": counts.records, "receipts": counts.receipts, "acts": counts.acts,
        "states": states.collect::<Map<_, _>>(), "classes": classes, "codes": codes.collect::<Map<_, _>>(),
        "in_flight": found(&counts.in_flight), "contradicted": found(&counts.contradicted),
    })
}

fn people(report: &Report) -> Value {
    let people = &report.people;
    let millis = |span: Option<std::time::Duration>| {
        span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    };
    json!({
        "asked": people.asked, "approved": people.approved, "denied": people.denied, "lapsed": people.lapsed,
        "waiting": people.waiting, "median_wait_ms": millis(people.median_wait),
        "longest_wait_ms": millis(people.longest_wait),
    })
}

fn doubts(report: &Report) -> Value {
    let doubts = &report.doubts;
    let age = |since| u64::try_from(report.as_of.since(since).as_millis()).unwrap_or(u64::MAX);
    let longest = doubts
        .longest
        .map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    json!({
        "number": doubts.number, "by_late_answer": doubts.by_answer, "by_look_up": doubts.by_look_up,
        "by_person": doubts.by_person, "looked_up_in_vain": doubts.looked_up_in_vain,
        "longest_settled_ms": longest, "open_number": doubts.open_number,
        "open": doubts.open.iter().map(|one| json!({
            "act": one.act, "function": one.function, "class": one.class, "since": one.since,
            "age_ms": age(one.since), "looked_up": one.looked_up, "record": one.record,
        })).collect::<Vec<_>>(),
    })
}

fn timeline(report: &Report) -> Value {
    let line = &report.timeline;
    let span =
        |span: &lychgate_ledger::report::Span| Happened::ALL.map(|what| span.of(what)).to_vec();
    json!({
        "first": line.first(), "last": line.last(), "span_ms": line.width(),
        "columns": Happened::ALL.map(Happened::word),
        "spans": line.spans().iter().map(span).collect::<Vec<_>>(),
        "without_gate": line.gaps().iter().map(|gap| json!({
            "from": gap.from, "to": gap.to, "stopped": gap.clean,
        })).collect::<Vec<_>>(),
    })
}
