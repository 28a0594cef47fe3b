//! The timeline as a picture: what ran above the line, what was stopped below it, and when no gate ran.

use lychgate_core::Timestamp;
use lychgate_ledger::report::{Gap, Happened, Report, Span};

use super::html::Markup;
use super::words::{happened, many, moment};

/// Where things lie in the picture.
struct Frame {
    from: u64,
    to: u64,
    /// The most above the line, and below it.
    most: (u64, u64),
}

/// The picture; `None` when nothing happened.
pub(super) fn timeline(report: &Report) -> Option<Markup> {
    let line = &report.timeline;
    let (first, last) = line.first().zip(line.last())?;
    let most = |which: &[Happened]| {
        let sums = line.spans().iter().map(|span| sum(span, which));
        sums.max().unwrap_or(0)
    };
    let end = first.as_millis() + line.width() * u64::try_from(line.spans().len()).unwrap_or(0);
    let frame = Frame {
        from: first.as_millis(),
        to: last.as_millis().max(end).max(first.as_millis() + SHORTEST),
        most: (most(&RAN), most(&STOPPED)),
    };
    let mut svg = Markup::default();
    svg.start(
        "svg",
        &[
            ("viewBox", &format!("0 0 {WIDTH} {HEIGHT}")),
            ("role", &"img"),
            ("aria-label", &"Acts over time by outcome"),
        ],
    );
    svg.raw(HATCH);
    frame.gaps(line.gaps(), &mut svg);
    frame.scale(&mut svg);
    for (at, span) in (0u64..)
        .zip(line.spans())
        .filter(|(_, span)| span.total() > 0)
    {
        let from = frame.from + at * line.width();
        frame.bar(from, from + line.width(), span, &mut svg);
    }
    frame.violations(report, &mut svg);
    frame.axis(&mut svg);
    svg.raw("</svg>");
    Some(svg)
}

/// The parts that there are, with how often each happened.
pub(super) fn legend(report: &Report) -> Vec<(Happened, u64)> {
    let spans = report.timeline.spans();
    let all = Happened::ALL.into_iter();
    let all = all.map(|what| (what, spans.iter().map(|span| span.of(what)).sum::<u64>()));
    all.filter(|(_, number)| *number > 0).collect()
}

impl Frame {
    fn x(&self, at: u64) -> f64 {
        let at = at.clamp(self.from, self.to) - self.from;
        LEFT + (WIDTH - LEFT - RIGHT) * ratio(at, self.to - self.from)
    }

    /// Where the line is. Each side has a scale of its own, so that a flood of denials hides nothing that ran.
    fn line(&self) -> f64 {
        match self.most {
            (_, 0) => BOTTOM,
            (0, _) => TOP,
            _ => TOP + (BOTTOM - TOP) * SHARE,
        }
    }

    fn up(&self, number: u64) -> f64 {
        (self.line() - TOP) * ratio(number, self.most.0)
    }

    fn down(&self, number: u64) -> f64 {
        (BOTTOM - self.line()) * ratio(number, self.most.1)
    }

    fn bar(&self, from: u64, to: u64, span: &Span, svg: &mut Markup) {
        let (left, right) = (self.x(from), self.x(to));
        let width = (right - left - 0.6).max(1.6);
        svg.raw("<g>");
        let (mut up, mut down) = (self.line(), self.line());
        for what in RAN.into_iter().filter(|what| span.of(*what) > 0) {
            let height = self.up(span.of(what)).max(LEAST_TALL);
            up -= height;
            rect(what.word(), left, up, width, height, svg);
        }
        for what in STOPPED.into_iter().filter(|what| span.of(*what) > 0) {
            let height = self.down(span.of(what)).max(LEAST_TALL);
            rect(what.word(), left, down, width, height, svg);
            down += height;
        }
        let mut told = stamp(from);
        for what in Happened::ALL.into_iter().filter(|what| span.of(*what) > 0) {
            told.push_str(&format!(" · {} {}", span.of(what), happened(what)));
        }
        svg.element("<title>", told, "</title>").raw("</g>");
    }

    fn gaps(&self, gaps: &[Gap], svg: &mut Markup) {
        for gap in gaps {
            let to = gap.to.map_or(self.to, Timestamp::as_millis);
            let (left, right) = (self.x(gap.from.as_millis()), self.x(to));
            // A restart is no gap to be seen.
            if right - left < 1.0 {
                continue;
            }
            let class = if gap.clean { "down" } else { "down killed" };
            svg.raw("<g>");
            rect(class, left, TOP, right - left, BOTTOM - TOP, svg);
            let how = if gap.clean {
                "stopped"
            } else {
                "ended without a stop"
            };
            let until = gap.to.map_or("the end".to_owned(), moment);
            let told = format!("no gate from {} to {until}: {how}", moment(gap.from));
            svg.element("<title>", told, "</title>").raw("</g>");
        }
    }

    /// A mark over each violation; those too near to each other are one.
    fn violations(&self, report: &Report, svg: &mut Markup) {
        let times = report.violations.iter().filter_map(|one| one.at);
        let mut times = times.map(Timestamp::as_millis).collect::<Vec<_>>();
        times.sort_unstable();
        let mut marks: Vec<(f64, u64, u64)> = Vec::new();
        for at in times {
            let x = self.x(at);
            match marks.last_mut() {
                Some((before, _, number)) if x - *before < 7.0 => *number += 1,
                _ => marks.push((x, at, 1)),
            }
        }
        for (x, at, number) in marks {
            let path = format!("M{:.1} {:.1}l5 -9h-10z", x, TOP - 2.0);
            svg.raw("<g>")
                .start("path", &[("class", &"mark"), ("d", &path)]);
            svg.raw("</path>");
            let told = format!(
                "{} at {}",
                many(number, "violation", "violations"),
                stamp(at)
            );
            svg.element("<title>", told, "</title>").raw("</g>");
        }
    }

    /// The numbers at the left: the most on each side, and none.
    fn scale(&self, svg: &mut Markup) {
        let (up, down) = self.most;
        let line = self.line();
        for (number, y) in [
            (up, line - self.up(up)),
            (0, line),
            (down, line + self.down(down)),
        ] {
            if number == 0 && (y - line).abs() > 0.5 {
                continue;
            }
            let class = if number == 0 { "zero" } else { "rule" };
            let (y1, x2) = (format!("{y:.1}"), format!("{:.1}", WIDTH - RIGHT));
            svg.tag(
                "line",
                &[
                    ("class", &class),
                    ("x1", &LEFT),
                    ("x2", &x2),
                    ("y1", &y1),
                    ("y2", &y1),
                ],
            );
            let place = format!("{:.1}", y + 4.0);
            svg.start(
                "text",
                &[("class", &"scale"), ("x", &(LEFT - 8.0)), ("y", &place)],
            );
            svg.text(super::words::grouped(number)).raw("</text>");
        }
    }

    fn axis(&self, svg: &mut Markup) {
        let range = self.to - self.from;
        let step = STEPS.into_iter().find(|step| range / step <= MOST_TICKS);
        let step = step.unwrap_or(range / MOST_TICKS + 1);
        let mut at = self.from.div_ceil(step) * step;
        let mut day = String::new();
        while at <= self.to {
            let x = self.x(at);
            let (x1, y1, y2) = (
                format!("{x:.1}"),
                format!("{BOTTOM:.1}"),
                format!("{:.1}", BOTTOM + 5.0),
            );
            svg.tag(
                "line",
                &[
                    ("class", &"tick"),
                    ("x1", &x1),
                    ("x2", &x1),
                    ("y1", &y1),
                    ("y2", &y2),
                ],
            );
            let (date, time) = date_and_time(at, step);
            let mut row = |text: &str, y: f64| {
                let y = format!("{y:.1}");
                svg.start("text", &[("class", &"label"), ("x", &x1), ("y", &y)]);
                svg.text(text).raw("</text>");
            };
            if let Some(time) = time {
                row(&time, BOTTOM + 18.0);
            }
            if date != day {
                row(&date, BOTTOM + if step < A_DAY { 32.0 } else { 18.0 });
                day = date;
            }
            at += step;
        }
    }
}

fn rect(class: &str, x: f64, y: f64, width: f64, height: f64, svg: &mut Markup) {
    let [x, y, width, height] = [x, y, width, height].map(|number| format!("{number:.1}"));
    svg.tag(
        "rect",
        &[
            ("class", &class),
            ("x", &x),
            ("y", &y),
            ("width", &width),
            ("height", &height),
        ],
    );
}

fn sum(span: &Span, which: &[Happened]) -> u64 {
    which.iter().map(|what| span.of(*what)).sum()
}

/// Exact enough for a picture.
#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn stamp(millis: u64) -> String {
    moment(Timestamp::from_millis(millis))
}

/// The label of a tick: a date, and a time of day where ticks are nearer than a day.
fn date_and_time(at: u64, step: u64) -> (String, Option<String>) {
    let text = stamp(at);
    let (date, time) = text.split_once(' ').unwrap_or((&text, ""));
    let time = match step {
        A_DAY.. => None,
        60_000.. => time.get(..5),
        _ => Some(time),
    };
    (date.to_owned(), time.map(str::to_owned))
}

/// What stands above the line, from the line up.
const RAN: [Happened; 4] = [
    Happened::Effected,
    Happened::NoEffect,
    Happened::InDoubt,
    Happened::Advisory,
];
/// What stands below it, from the line down.
const STOPPED: [Happened; 2] = [Happened::Denied, Happened::Lapsed];

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 256.0;
/// How much of the height belongs to what ran, where something was stopped too.
const SHARE: f64 = 0.62;
/// What happened once can be seen.
const LEAST_TALL: f64 = 2.0;
/// The least time that a picture spans, in milliseconds.
const SHORTEST: u64 = 60_000;
const MOST_TICKS: u64 = 9;
const A_DAY: u64 = 86_400_000;
/// Between two ticks, in milliseconds.
const STEPS: [u64; 21] = [
    1_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    A_DAY,
    2 * A_DAY,
    4 * A_DAY,
    7 * A_DAY,
    28 * A_DAY,
    91 * A_DAY,
];
const HATCH: &str = "<defs><pattern id=\"h\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
    patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern>\
    <pattern id=\"k\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
    <line class=\"hatch killed\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs>";
