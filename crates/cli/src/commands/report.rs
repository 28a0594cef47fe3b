//! `report`: what the draft says an operator is to measure (§5.10), from the record, to somebody who can check it.

mod html;
mod json;
mod page;
mod picture;
mod text;
mod words;

use lychgate_core::{Digest, Timestamp};
use lychgate_ledger::audit::Clean;
use lychgate_ledger::report::{Examiner, Question, Report};
use lychgate_policy::Applied;
use lychgate_store::{SqliteStore, Store as _};
use serde_json::json as document;

use super::Context;
use super::ledger::{Audit, audit};
use crate::args;
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::{absolute, now, shown};
use crate::terminal::{dim, text};

/// A report over a record that verified.
pub(super) struct Told {
    /// The log's name.
    pub(super) log: String,
    /// How many of its own heads were compared, and how many from elsewhere.
    pub(super) heads: (usize, usize),
    /// The head it was computed over, as it is signed.
    pub(super) head: Option<String>,
    /// What the audit vouches for.
    pub(super) clean: Clean,
    /// What was asked.
    pub(super) question: Question,
    /// What the record tells.
    pub(super) report: Report,
}

/// Audits, computes, tells.
pub(crate) fn run(args: &args::Report, context: &mut Context<'_>) -> Outcome {
    let now = now();
    let question = question(args, now, context)?;
    let mut examiner = Examiner::new(question.clone());
    let page = args.html.as_deref().map(absolute).transpose()?;
    let audit = audit(&args.record, context, &mut |index, bytes| {
        examiner.record(index, bytes);
    })?;
    let Audit {
        origin: log,
        heads,
        head,
        ended,
    } = audit;
    let clean = match ended {
        Ok(clean) => clean,
        Err(found) => {
            //= draft §5.10: a record that is not whole proves nothing, so nothing else is said of it
            if args.output.json {
                let mut said = found.document(&log);
                if let Some(said) = said.as_object_mut() {
                    said.insert("report".to_owned(), document!(json::FORMAT));
                }
                context.terminal.document(&said);
            }
            if let Some(page) = &page {
                let broken = page::broken(&log, &found.sentences());
                files::write(page, broken.as_bytes())?;
            }
            return Err(Stop::refused(format!(
                "the record does not verify, so there is nothing to report from it: {}",
                found.sentences()
            )));
        }
    };
    // An export is of a moment; a gate's own record is of now.
    let moment = args.record.dir.is_none().then_some(now);
    let told = Told {
        log,
        heads,
        head: head.map(|note| String::from_utf8_lossy(&note).into_owned()),
        clean,
        question,
        report: examiner.finish(moment),
    };
    if args.output.json {
        context.terminal.document(&json::document(&told));
    } else {
        text::show(&told, context.terminal);
    }
    if let Some(page) = &page {
        files::write(page, page::whole(&told).as_bytes())?;
        context.terminal.gap();
        context
            .terminal
            .line(&[dim("To be looked at:  "), text(shown(page))]);
    }
    match told.report.is_clean() {
        true => Ok(()),
        false => Err(Stop::refused(words::broken(&told.report))),
    }
}

fn question(args: &args::Report, now: Timestamp, context: &Context<'_>) -> Outcome<Question> {
    let since = args.since.map(|when| when.begins(now));
    let until = args.until.map(|when| when.ends(now));
    if since.zip(until).is_some_and(|(since, until)| since > until) {
        return Err(Stop::usage("--since is after --until"));
    }
    let depths = match (args.max_depth, &args.record.dir) {
        (None, None) => depth(context),
        _ => None,
    };
    Ok(Question {
        since,
        until,
        max_depth: args.max_depth,
        depths: depths.into_iter().collect(),
    })
}

/// What the applied configuration permits, under its digest: receipts of another configuration are not judged by it.
/// Without access to the store it is unknown.
fn depth(context: &Context<'_>) -> Option<(Digest, u32)> {
    let database = context.places.folder().ok()?.database();
    let row = SqliteStore::open_reading(&database)
        .ok()?
        .applied()
        .ok()??;
    let applied = Applied::from_snapshot(&row.snapshot).ok()?;
    Some((applied.digest(), applied.agent().max_depth))
}
