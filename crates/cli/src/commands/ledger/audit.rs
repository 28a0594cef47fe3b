//! `ledger verify`: the whole record, recomputed, against every head that was signed over it.

use std::path::PathBuf;

use lychgate_core::digest::b64;
use lychgate_core::display::escape;
use lychgate_keys::TrustBundle;
use lychgate_ledger::audit::{Clean, Record};
use lychgate_ledger::tiles::{TileKind, check_tiles, read_bundle};
use lychgate_ledger::tree::HashReader as _;
use lychgate_ledger::{
    Auditor, Finding, LeafHash, Tile, TileReader, TileSource as _, VerifiedCheckpoint,
};
use serde_json::json;

use super::archive::Archive;
use super::folder::Folder;
use super::source::{Source, believed};
use super::{anchor, trust};
use crate::args::{AuditedRecord, LedgerVerify};
use crate::commands::Context;
use crate::files;
use crate::outcome::{Outcome, Stop};
use crate::places::{absolute, shown};
use crate::terminal::{Style, bold, count, dim, styled, text};

/// What an audit found.
pub(in crate::commands) struct Audit {
    /// The log's name.
    pub(in crate::commands) origin: String,
    /// How many of its own heads were compared, and how many from elsewhere.
    pub(in crate::commands) heads: (usize, usize),
    /// The log's largest own head, as it is signed; `None` of a log without one.
    pub(in crate::commands) head: Option<Vec<u8>>,
    /// The verdict.
    pub(in crate::commands) ended: Result<Clean, Found>,
}

/// The first difference.
pub(in crate::commands) struct Found {
    finding: Finding,
    /// More of where it lies, when that can be told.
    nearer: Option<String>,
}

impl Found {
    /// What a person is told: the difference, and what it means.
    pub(in crate::commands) fn sentences(&self) -> String {
        let reason = escape(&self.finding.to_string());
        let nearer = self
            .nearer
            .as_deref()
            .map(|near| format!(": {}", escape(near)));
        let nearer = nearer.unwrap_or_default();
        format!("{reason}{nearer}\n{}", meaning(&self.finding))
    }

    /// The same as a document.
    pub(in crate::commands) fn document(&self, origin: &str) -> serde_json::Value {
        json!({
            "whole": false, "log": origin, "finding": word(&self.finding),
            "reason": self.finding.to_string(), "nearer": self.nearer, "record": record_of(&self.finding),
        })
    }
}

/// Who is shown each record on the way; `None` of one whose bytes are not here. What is shown is worth something once
/// the audit has ended well, and not before.
pub(in crate::commands) type Each<'e> = dyn FnMut(u64, Option<&[u8]>) + 'e;

impl From<Finding> for Found {
    fn from(finding: Finding) -> Self {
        Self {
            finding,
            nearer: None,
        }
    }
}

/// Audits, and says what was found.
pub(super) fn run(args: &LedgerVerify, context: &mut Context<'_>) -> Outcome {
    let audit = audit(&args.record, context, &mut |_, _| {})?;
    match &audit.ended {
        Ok(clean) => {
            say(args, &audit, clean, context);
            Ok(())
        }
        Err(found) => {
            if args.output.json {
                context.terminal.document(&found.document(&audit.origin));
            }
            Err(Stop::refused(found.sentences()))
        }
    }
}

/// Audits a record: an export, the running gate's, or that of a folder whose gate does not run.
pub(in crate::commands) fn audit(
    asked: &AuditedRecord,
    context: &Context<'_>,
    each: &mut Each<'_>,
) -> Outcome<Audit> {
    let trust = trust(asked.trust.as_deref(), context)?;
    let mut anchored = anchored(&asked.checkpoint, &trust)?;
    let archive = asked.archive.as_deref().map(absolute).transpose()?;
    let archive = archive.map(Archive::existing).transpose()?;
    match &asked.dir {
        Some(dir) => of_folder(&Folder(absolute(dir)?), &trust, &anchored, archive, each),
        None => {
            // Read before the record, which only grows.
            anchored.extend(anchor::kept(&trust, context)?);
            of_gate(
                &mut Source::open(context)?,
                &trust,
                &anchored,
                archive,
                each,
            )
        }
    }
}

/// The heads in files, each signed by a key of the log.
fn anchored(paths: &[PathBuf], trust: &TrustBundle) -> Outcome<Vec<VerifiedCheckpoint>> {
    let read = |path: &PathBuf| {
        let note = files::read(path, MOST_NOTE)?
            .ok_or_else(|| Stop::usage(format!("there is no file `{}`", shown(path))))?;
        believed(&note, trust)
            .map_err(|why| Stop::refused(format!("`{}` is not to be believed: {why}", shown(path))))
    };
    paths.iter().map(read).collect()
}

fn of_gate(
    source: &mut Source,
    trust: &TrustBundle,
    anchored: &[VerifiedCheckpoint],
    archive: Option<Archive>,
    each: &mut Each<'_>,
) -> Outcome<Audit> {
    let ledger = source.view()?;
    let (own, head) = source.heads(trust)?;
    let ended = compare(source, &own, anchored, archive, each)?;
    Ok(Audit {
        origin: ledger.origin,
        heads: (own.len(), anchored.len()),
        head,
        ended: ended.map_err(Found::from),
    })
}

fn compare(
    source: &mut Source,
    own: &[VerifiedCheckpoint],
    anchored: &[VerifiedCheckpoint],
    mut archive: Option<Archive>,
    each: &mut Each<'_>,
) -> Outcome<Result<Clean, Finding>> {
    let mut auditor = match Auditor::new(own, anchored) {
        Ok(auditor) => auditor,
        Err(finding) => return Ok(Err(finding)),
    };
    // What is appended meanwhile lies under heads that were not read.
    let last = own.iter().map(|head| head.checkpoint().size()).max();
    let last = last.unwrap_or(u64::MAX);
    let mut at = 0;
    loop {
        let page = source.records(at, PAGE)?;
        let Some(first) = page.first() else { break };
        // The next page begins after the last number given, whatever it is: a gap is the auditor's to name.
        at = page.last().unwrap_or(first).index + 1;
        for one in page.iter().filter(|one| one.index < last) {
            let bytes = self::bytes(one.bytes.as_deref(), one.index, &mut archive)?;
            let (index, leaf) = (one.index, one.leaf);
            if let Err(finding) = auditor.record(Record { index, bytes, leaf }) {
                return Ok(Err(finding));
            }
            each(index, bytes);
        }
    }
    Ok(auditor.finish())
}

/// A record's bytes: those at hand, else the archive's, if it has them. The auditor holds either against the leaf hash.
fn bytes<'b>(
    kept: Option<&'b [u8]>,
    index: u64,
    archive: &'b mut Option<Archive>,
) -> Outcome<Option<&'b [u8]>> {
    match (kept, archive) {
        (None, Some(archive)) => archive.entry(index),
        (kept, _) => Ok(kept),
    }
}

fn of_folder(
    folder: &Folder,
    trust: &TrustBundle,
    anchored: &[VerifiedCheckpoint],
    archive: Option<Archive>,
    each: &mut Each<'_>,
) -> Outcome<Audit> {
    let refused = |why: String| Stop::refused(format!("the export is not whole: {why}"));
    let note = folder.checkpoint()?;
    let head = believed(&note, trust)
        .map_err(|why| Stop::refused(format!("the export's head is not to be believed: {why}")))?;
    let (size, root) = (head.checkpoint().size(), *head.checkpoint().root());
    let ended = match Auditor::new([&head], anchored) {
        Ok(auditor) => read_folder(auditor, folder, size, archive, each)?,
        Err(finding) => Err(finding),
    };
    let tiles = check_tiles(size, &root, folder).map_err(|fault| chain(&fault));
    let ended = match (ended, tiles) {
        (Ok(clean), Ok(_)) => Ok(clean),
        (Ok(_), Err(why)) => return Err(refused(why)),
        (Err(finding), tiles) => Err(Found {
            nearer: tiles.err().filter(|_| is_wide(&finding)),
            finding,
        }),
    };
    Ok(Audit {
        origin: head.checkpoint().origin().to_owned(),
        heads: (1, anchored.len()),
        head: Some(note),
        ended,
    })
}

fn read_folder(
    mut auditor: Auditor,
    folder: &Folder,
    size: u64,
    mut archive: Option<Archive>,
    each: &mut Each<'_>,
) -> Outcome<Result<Clean, Finding>> {
    let refused = |why: String| Stop::refused(format!("the export is not whole: {why}"));
    let reader = TileReader::new(Shared(folder), size);
    for bundle in Tile::all(size).take_while(|tile| tile.kind() == TileKind::Entries) {
        let level = Tile::new(TileKind::Hashes(0), bundle.index(), bundle.width());
        let nodes = level.map(|tile| tile.nodes().collect::<Vec<_>>());
        let leaves = reader.hashes(&nodes.unwrap_or_default());
        let leaves = leaves.map_err(|fault| refused(chain(&fault)))?;
        let bytes = folder.tile(bundle);
        let bytes = bytes.map_err(|fault| refused(format!("`{bundle}`: {fault}")))?;
        let entries = match &bytes {
            Some(bytes) => Some(
                read_bundle(bytes, bundle.width())
                    .map_err(|fault| refused(format!("`{bundle}`: {fault}")))?,
            ),
            None => None,
        };
        for (leaf, (at, index)) in leaves.into_iter().zip((0..).zip(bundle.start_index()..)) {
            let here = entries.as_ref().and_then(|all| all.get(at).copied());
            let bytes = self::bytes(here, index, &mut archive)?;
            let leaf = LeafHash(leaf);
            if let Err(finding) = auditor.record(Record { index, bytes, leaf }) {
                return Ok(Err(finding));
            }
            each(index, bytes);
        }
    }
    Ok(auditor.finish())
}

/// A folder that is read by several.
struct Shared<'f>(&'f Folder);

impl lychgate_ledger::TileSource for Shared<'_> {
    type Fault = std::io::Error;

    fn tile(&self, tile: Tile) -> Result<Option<Vec<u8>>, std::io::Error> {
        self.0.tile(tile)
    }
}

fn say(args: &LedgerVerify, audit: &Audit, clean: &Clean, context: &mut Context<'_>) {
    let terminal = &mut *context.terminal;
    if args.output.json {
        terminal.document(&json!({
            "whole": true, "log": audit.origin, "size": clean.size, "root": b64::encode(&clean.root),
            "signed": clean.sealed, "anchored": clean.anchored, "own_heads": audit.heads.0,
            "anchored_heads": audit.heads.1, "archived": clean.without_bytes,
        }));
        return;
    }
    let records = count(
        usize::try_from(clean.size).unwrap_or(usize::MAX),
        "record",
        "records",
    );
    terminal.line(&[
        styled(Style::Green, "✓ "),
        bold(format!(
            "the record is whole: {records}, each as it was signed"
        )),
    ]);
    terminal.gap();
    let (own, elsewhere) = audit.heads;
    let mut rows = vec![
        ("log", escape(&audit.origin)),
        (
            "signed",
            format!(
                "{} of them, under {} of the log's own",
                clean.sealed,
                count(own, "head", "heads")
            ),
        ),
    ];
    if let Some(anchored) = clean.anchored {
        let heads = count(elsewhere, "head", "heads");
        rows.push((
            "anchored",
            format!("{anchored} of them, under {heads} kept elsewhere"),
        ));
    }
    if clean.without_bytes > 0 {
        let archived = format!(
            "{} of them, by their hash alone; --archive DIR checks their bytes",
            clean.without_bytes
        );
        rows.push(("archived", archived));
    }
    for (label, value) in rows {
        terminal.wrapped(&[dim(format!("{label:>12}")), text("  ")], &text(value));
    }
    if clean.anchored.is_none() {
        terminal.gap();
        terminal.line(&[styled(
            Style::Yellow,
            "No head kept elsewhere was compared (--checkpoint FILE): whoever has the log's key and disk",
        )]);
        terminal.line(&[styled(
            Style::Yellow,
            "could have written and signed all of it anew.",
        )]);
    }
}

fn chain(fault: &dyn std::error::Error) -> String {
    match fault.source() {
        Some(behind) => format!("{fault}: {}", chain(behind)),
        None => fault.to_string(),
    }
}

fn is_wide(finding: &Finding) -> bool {
    matches!(finding, Finding::Rewritten { .. })
}

fn word(finding: &Finding) -> &'static str {
    match finding {
        Finding::TwoLogs(..) => "two_logs",
        Finding::Forked { .. } => "forked",
        Finding::Edited { .. } => "edited",
        Finding::Missing { .. } => "missing",
        Finding::Reordered { .. } => "reordered",
        Finding::Truncated { .. } => "truncated",
        Finding::Rewritten { .. } => "rewritten",
        Finding::Resealed { .. } => "resealed",
        Finding::RolledBack { .. } => "rolled_back",
    }
}

/// The first record that is not as it should be; of a span, where it begins.
fn record_of(finding: &Finding) -> Option<u64> {
    match *finding {
        Finding::TwoLogs(..) | Finding::Forked { .. } => None,
        Finding::Edited { index }
        | Finding::Missing { index, .. }
        | Finding::Reordered { index, .. } => Some(index),
        Finding::Truncated { size, .. } | Finding::RolledBack { size, .. } => Some(size),
        Finding::Rewritten { from, .. } | Finding::Resealed { from, .. } => Some(from),
    }
}

fn meaning(finding: &Finding) -> &'static str {
    match finding {
        Finding::TwoLogs(..) => "A head of another log is among those compared.",
        Finding::Forked { .. } => "The log told two stories. Keep both heads: they prove it.",
        Finding::Edited { .. } => "Somebody changed this record after it was written.",
        Finding::Missing { .. } => "Somebody took records out.",
        Finding::Reordered { .. } => "Somebody moved records or put some in twice.",
        Finding::Truncated { .. } => "Somebody cut off the end of the record.",
        Finding::Rewritten { .. } => "Somebody changed records after they were signed.",
        Finding::Resealed { .. } => {
            "Somebody with the log's key rewrote records and signed them anew."
        }
        Finding::RolledBack { .. } => {
            "An older copy was put back, or the end was cut off with its heads."
        }
    }
}

/// A head in a file.
const MOST_NOTE: u64 = 1_000_000;
const PAGE: u32 = 256;
