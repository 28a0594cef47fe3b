//! The report as one page: no script, no request, everything from outside escaped.

use lychgate_core::digest::b64;
use lychgate_core::display::escape;
use lychgate_ledger::report::{Report, Verdict, Violation};

use super::Told;
use super::html::Markup;
use super::picture::{legend, timeline};
use super::text::{numbers, period, warnings};
use super::words::{
    Line, broken as brokenly, classes, grouped, happened, lines, many, moment, states, verdict,
};
use crate::terminal::ago;

/// The page of a record that does not verify: this, and nothing else.
pub(super) fn broken(log: &str, why: &str) -> String {
    let mut page = opened();
    page.raw("<header><p class=\"brand\">Lychgate · report</p>");
    page.element("<h1>", escape(log), "</h1></header>");
    page.raw(
        "<section class=\"verdict bad\"><h2>× The record does not verify</h2><p class=\"why\">",
    );
    page.lines(why);
    page.raw("</p><p>Nothing else is claimed from it.</p></section></main></body></html>\n");
    page.finish()
}

/// The page of a record that does.
pub(super) fn whole(told: &Told) -> String {
    let report = &told.report;
    let mut page = opened();
    page.raw("<header><p class=\"brand\">Lychgate · report</p>");
    page.element("<h1>", escape(&told.log), "</h1>");
    page.element("<p class=\"dim\">", period(told), "</p></header>");
    summary(told, &mut page);
    page.raw("<section><h2>What an operator is to measure (draft §5.10)</h2><div class=\"tests\">");
    for line in lines(report) {
        test(&line, &mut page);
    }
    page.raw("</div></section>");
    advisory(report, &mut page);
    picture(report, &mut page);
    violations(report, &mut page);
    doubts(report, &mut page);
    page.raw("<section class=\"columns\">");
    bars("Acts by state", &states(report), &mut page);
    bars("Acts by class", &classes(report), &mut page);
    let codes = report.counts.codes.iter();
    let codes = codes.map(|(code, number)| (code, *number));
    bars(
        "Denials and lapses by code",
        &codes.collect::<Vec<_>>(),
        &mut page,
    );
    page.raw("</section><section><h2>More numbers</h2><dl>");
    let shown_above = ["state", "class", "code"];
    for (label, value) in numbers(report)
        .iter()
        .filter(|(label, _)| !shown_above.contains(label))
    {
        page.element("<dt>", label, "</dt>")
            .element("<dd>", value, "</dd>");
    }
    page.raw("</dl></section>");
    head(told, &mut page);
    page.raw("</main></body></html>\n");
    page.finish()
}

fn opened() -> Markup {
    let mut page = Markup::default();
    page.raw(BEGIN)
        .raw(STYLE)
        .raw("</style></head><body><main>");
    page
}

fn summary(told: &Told, page: &mut Markup) {
    let report = &told.report;
    if report.is_clean() {
        page.raw("<section class=\"verdict good\"><h2>✓ No violation of what was measured</h2>");
    } else {
        page.raw("<section class=\"verdict bad\">");
        page.element("<h2>× ", brokenly(report), "</h2>");
    }
    let size = many(told.clean.size, "record", "records");
    page.element(
        "<p>✓ The record is whole: ",
        size,
        ", each as it was signed.</p>",
    );
    for warning in warnings(told) {
        page.element("<p class=\"warn\">", warning, "</p>");
    }
    page.raw("</section>");
}

fn test(line: &Line, page: &mut Markup) {
    let (class, mark) = match line.verdict {
        Verdict::Held => ("good", "✓"),
        Verdict::Violated(_) => ("bad", "×"),
        Verdict::Partly(_) => ("part", "–"),
        Verdict::Nothing | Verdict::NotMeasured(_) => ("none", "–"),
    };
    page.start("article", &[("class", &class)]);
    page.element("<p class=\"number\">Test ", line.number, "</p>");
    page.element("<h3>", line.asks, "</h3>");
    let said = format!("{mark} {}", verdict(line.verdict));
    page.element("<p class=\"said\">", said, "</p>");
    page.element("<p class=\"dim\">", &line.examined, "</p></article>");
}

//= PROFILE §10: advisory is never counted as finality in a report, and is shown in red
fn advisory(report: &Report, page: &mut Markup) {
    let advised = &report.counts.advisory;
    if advised.number == 0 {
        return;
    }
    let acts = many(advised.number, "act", "acts");
    page.raw("<section class=\"advised\"><h2>× Advisory only</h2>");
    page.element(
        "<p>",
        acts,
        " under advisory enforcement: another way to the effect stood open. ",
    );
    page.raw("Not counted among the acts below, and never finality.</p>");
    let records = super::words::some(&advised.records, advised.number);
    page.element("<p>Receipts ", records, "</p></section>");
}

fn picture(report: &Report, page: &mut Markup) {
    let Some(svg) = timeline(report) else {
        return;
    };
    page.raw("<section><h2>Over time</h2><div class=\"picture\">")
        .with(&svg);
    page.raw("</div><p class=\"legend\">");
    for (what, number) in legend(report) {
        page.start("span", &[("class", &format!("key {}", what.word()))]);
        page.raw("</span>");
        page.element(
            "<span>",
            format!("{} {}", grouped(number), happened(what)),
            "</span>",
        );
    }
    let gaps = report.timeline.gaps().iter();
    if gaps.clone().any(|gap| gap.clean) {
        page.raw("<span class=\"key down\"></span><span>no gate ran</span>");
    }
    if gaps.clone().any(|gap| !gap.clean) {
        page.raw("<span class=\"key killed\"></span><span>ended without a stop</span>");
    }
    if report.violated > 0 {
        page.raw("<span class=\"key mark\"></span><span>violation</span>");
    }
    let width = ago(std::time::Duration::from_millis(report.timeline.width()));
    page.element(
        "</p><p class=\"dim small\">Above the line: what ran. Below it: what was stopped. Each bar is ",
        width,
        "; times are UTC.</p></section>",
    );
}

fn violations(report: &Report, page: &mut Markup) {
    page.raw("<section><h2>Violations</h2>");
    if report.violations.is_empty() {
        page.raw("<p class=\"dim\">None was found by the tests that were measured.</p></section>");
        return;
    }
    page.raw("<div class=\"wide\"><table><thead><tr><th>Test<th>What<th>Act<th>Function<th>When<th>Receipts</tr></thead><tbody>");
    for one in report.violations.iter().take(MOST_ROWS) {
        row(one, page);
    }
    page.raw("</tbody></table></div>");
    let left = report.violated.saturating_sub(MOST_ROWS as u64);
    if left > 0 {
        page.element(
            "<p>And ",
            grouped(left),
            " more: <code>lychgate report --json</code> names every one.</p>",
        );
    }
    page.raw(
        "<p class=\"dim small\">Each number is a receipt: <code>lychgate ledger show N</code> shows it, \
         <code>lychgate ledger prove N</code> proves it to somebody else.</p></section>",
    );
}

fn row(one: &Violation, page: &mut Markup) {
    page.element(
        "<tr><td class=\"test\">",
        one.breach.test().number(),
        "</td><td>",
    );
    page.text(one.breach.sentence());
    page.raw("</td><td class=\"id\">");
    if let Some(act) = one.act {
        page.text(act);
    }
    page.raw("</td><td class=\"function\">");
    page.text(one.function.as_deref().map_or("–".to_owned(), escape));
    if let Some(class) = one.class {
        page.element("<br><span class=\"dim small\">", class.name(), "</span>");
    }
    let when = one.at.map(moment).unwrap_or_default();
    page.element(
        "</td><td class=\"when\">",
        when,
        "</td><td class=\"records\">",
    );
    let records = one.records.iter().map(u64::to_string);
    page.text(records.collect::<Vec<_>>().join(", "));
    page.raw("</td></tr>");
}

fn doubts(report: &Report, page: &mut Markup) {
    let doubts = &report.doubts;
    if doubts.open.is_empty() {
        return;
    }
    page.raw("<section><h2>In doubt</h2><div class=\"wide\"><table><thead><tr>");
    page.raw("<th>Act<th>Function<th>Since<th>For<th>Look-ups<th>Receipt</tr></thead><tbody>");
    for one in doubts.open.iter().take(MOST_ROWS) {
        page.element(
            "<tr><td class=\"id\">",
            one.act,
            "</td><td class=\"function\">",
        );
        page.text(one.function.as_deref().map_or("–".to_owned(), escape));
        page.element("</td><td class=\"when\">", moment(one.since), "</td>");
        let age = ago(report.as_of.since(one.since));
        page.element("<td>", age, "</td>")
            .element("<td>", one.looked_up, "</td>");
        page.element("<td class=\"records\">", one.record, "</td></tr>");
    }
    page.raw("</tbody></table></div>");
    let left = doubts.open_number.saturating_sub(MOST_ROWS as u64);
    if left > 0 {
        page.element(
            "<p>And ",
            grouped(left),
            " more: <code>lychgate acts --state indeterminate</code></p>",
        );
    }
    page.raw("</section>");
}

fn bars(title: &'static str, rows: &[(impl std::fmt::Display, u64)], page: &mut Markup) {
    page.element("<div><h2>", title, "</h2>");
    if rows.is_empty() {
        page.raw("<p class=\"dim\">None.</p></div>");
        return;
    }
    let most = rows
        .iter()
        .map(|(_, number)| *number)
        .max()
        .unwrap_or(1)
        .max(1);
    page.raw("<table class=\"bars\">");
    for (name, number) in rows {
        page.element("<tr><td>", name, "</td><td class=\"records\">")
            .text(grouped(*number));
        page.raw("</td><td class=\"share\">");
        let width = number.saturating_mul(100) / most;
        page.start(
            "svg",
            &[("viewBox", &"0 0 100 8"), ("preserveAspectRatio", &"none")],
        );
        page.tag(
            "rect",
            &[
                ("class", &"share"),
                ("width", &width.max(1)),
                ("height", &8),
            ],
        );
        page.raw("</svg></td></tr>");
    }
    page.raw("</table></div>");
}

fn head(told: &Told, page: &mut Markup) {
    let clean = &told.clean;
    page.raw("<section><h2>The head it was computed over</h2><dl><dt>records</dt>");
    page.element("<dd>", grouped(clean.size), "</dd><dt>root</dt>");
    page.element("<dd class=\"id\">", b64::encode(&clean.root), "</dd></dl>");
    if let Some(head) = &told.head {
        page.raw("<pre>").lines(head).raw("</pre>");
    }
    page.element(
        "<p class=\"dim small\">Computed as of ",
        moment(told.report.as_of),
        " UTC. ",
    );
    page.raw(
        "To check it without trusting this page: save the head as a file and run \
         <code>lychgate ledger verify --checkpoint FILE</code> on the record, then <code>lychgate report</code>.</p></section>",
    );
}

/// The most rows of a table.
const MOST_ROWS: usize = 1000;
const BEGIN: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"referrer\" content=\"no-referrer\">\
    <title>Lychgate report</title><style>";
const STYLE: &str = include_str!("page.css");
