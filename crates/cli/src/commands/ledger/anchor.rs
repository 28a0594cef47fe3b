//! `ledger anchor`: the newest head outside the state folder, and going on with a record that it contradicts.

use lychgate_core::act::Version;
use lychgate_core::digest::b64;
use lychgate_core::display::escape;
use lychgate_keys::verdict::{AnchorVerdict, Reason};
use lychgate_keys::{Role, SigningKey, TrustBundle};
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::{SignedCheckpoint, VerifiedCheckpoint, VerifierKey};
use lychgate_server::OpenOptions;
use lychgate_server::accept::{Contradiction, Decision};
use lychgate_server::anchor::{AnchorFile, Anchors};
use lychgate_server::elsewhere::Place;
use serde_json::json;

use super::source::believed;
use super::trust;
use crate::approver;
use crate::args::LedgerAnchor;
use crate::commands::Context;
use crate::connection::Connection;
use crate::outcome::{Outcome, Stop};
use crate::places::{anchors, home, now, shown, state_fault};
use crate::terminal::{Style, bold, count, dim, styled, text};

/// Shows it, or goes on in spite of it.
pub(super) fn run(args: &LedgerAnchor, context: &mut Context<'_>) -> Outcome {
    let options = options(context);
    let folder = context.places.folder()?;
    let found = folder.contradiction(&options).map_err(state_fault)?;
    if args.accept {
        let found = found.ok_or_else(|| {
            Stop::refused("the record agrees with its anchor; there is nothing to accept")
        })?;
        return accept(args, found, &options, context);
    }
    let file = file(context)?;
    let head = head(&file)?;
    if args.output.json {
        context.terminal.document(&json!({
            "place": file.path().to_string_lossy(),
            "size": head.as_ref().map(|head| head.checkpoint().size()),
            "root": head.as_ref().map(|head| b64::encode(head.checkpoint().root())),
            "head": head.as_ref().map(ToString::to_string),
            "log_key": log_key(context)?,
            "agrees": found.is_none(),
            "difference": found.as_ref().map(|found| found.difference.word()),
            "contradicted_by": found.as_ref().map(|found| found.place.word()),
        }));
    } else {
        let key = log_key(context)?;
        show(
            &file,
            head.as_ref(),
            found.as_ref(),
            key.as_deref(),
            context,
        );
    }
    match found {
        Some(found) => {
            let (what, why) = (found.place.to_string(), found.difference.to_string());
            let message = format!(
                "the {} contradicts the record: {}",
                escape(&what),
                escape(&why)
            );
            Err(Stop::refused(message).try_this(WAY_OUT))
        }
        None => Ok(()),
    }
}

fn show(
    file: &AnchorFile,
    head: Option<&SignedCheckpoint>,
    found: Option<&Contradiction>,
    key: Option<&str>,
    context: &mut Context<'_>,
) {
    let terminal = &mut *context.terminal;
    let row = |label: &str| [dim(format!("{label:>9}")), text("  ")];
    terminal.wrapped(&row("place"), &text(shown(file.path())));
    let Some(head) = head else {
        terminal.wrapped(&row("head"), &styled(Style::Yellow, "there is none yet"));
        return;
    };
    let head = head.checkpoint();
    let size = usize::try_from(head.size()).unwrap_or(usize::MAX);
    terminal.wrapped(&row("log"), &text(escape(head.origin())));
    if let Some(key) = key {
        terminal.wrapped(&row("log's key"), &text(escape(key)));
    }
    let records = count(size, "record", "records");
    terminal.wrapped(&row("head"), &text(records));
    terminal.wrapped(&row("root"), &text(b64::encode(head.root())));
    if found.is_none() {
        let agrees = "✓ the record goes on from there";
        terminal.wrapped(&row(""), &styled(Style::Green, agrees));
    }
    terminal.gap();
    terminal.line(&[dim(
        "Whoever owns this disk can change the anchor too. A copy kept elsewhere protects from that:",
    )]);
    terminal.line(&[dim(
        "give it to `lychgate ledger verify --checkpoint`, or let a `lychgate witness` cosign.",
    )]);
}

/// Goes on in spite of everything that contradicts the record: one decision, one receipt, for each head. Of a folder that was
/// restored whole that is its anchor, and what each witness has.
fn accept(
    args: &LedgerAnchor,
    first: Contradiction,
    options: &OpenOptions,
    context: &mut Context<'_>,
) -> Outcome {
    // A gate that runs has compared already, and holds the folder.
    if Connection::to_running(context).is_ok() {
        return Err(
            Stop::refused("a gate runs on this state folder").try_this("lychgate gate stop")
        );
    }
    let reason = args.reason.clone().unwrap_or_default();
    let reason = Reason::try_from(reason).map_err(|fault| Stop::usage(fault.to_string()))?;
    context
        .terminal
        .note(&[bold("The record is not the one its anchor saw")]);
    context.terminal.note(&[dim(
        "  What the lost receipts said is gone with them: denials, revocations, effects. Tickets lapse.",
    )]);
    let key = if first.needs_approver {
        let descriptor = args.passphrase.passphrase_fd.into();
        Some(approver::open(&context.places.approver()?, descriptor)?)
    } else {
        None
    };
    let folder = context.places.folder()?;
    let mut found = Some(first);
    for _ in 0..MOST_HEADS {
        let Some(one) = found else {
            context.terminal.line(&[
                styled(Style::Green, "✓ "),
                text("the gate goes on with this record; a receipt says so for ever"),
            ]);
            return Ok(());
        };
        let (what, why) = (one.place.to_string(), one.difference.to_string());
        context
            .terminal
            .note(&[text(format!("  {}: {}", escape(&what), escape(&why)))]);
        let decision = decide(&one, key.as_ref(), reason.clone())?;
        let aside = folder.accept_anchor(options, &decision);
        let aside = aside.map_err(state_fault)?;
        context.terminal.line(&[
            dim("  the contradicted head is kept:  "),
            text(shown(&aside)),
        ]);
        if let Place::Witness(_) = &one.place {
            context.terminal.line(&[dim(
                "  That witness will not cosign this record: it forgets nothing. Name a new one in [ledger.witness].",
            )]);
        }
        found = folder.contradiction(options).map_err(state_fault)?;
    }
    Err(Stop::refused("more heads contradict the record than can be").try_this(WAY_OUT))
}

/// A person's decision about one head.
fn decide(found: &Contradiction, key: Option<&SigningKey>, reason: Reason) -> Outcome<Decision> {
    let Some(key) = key else {
        return Ok(Decision::Unsigned(reason));
    };
    let (anchor, head) = found.digests();
    let verdict = approver::sign(key, |mark| AnchorVerdict {
        version: Version::V1,
        object_type: Default::default(),
        anchor,
        head,
        reason,
        at: now(),
        mark,
    })?;
    Ok(Decision::Signed(Box::new(verdict)))
}

/// Every head of this record that is kept on this machine: the usual anchor, the one that the configuration names besides,
/// what witnesses cosigned. A file that holds another is a finding.
pub(super) fn kept(trust: &TrustBundle, context: &Context<'_>) -> Outcome<Vec<VerifiedCheckpoint>> {
    let folder = context.places.folder()?;
    let log = folder.read_log_name().map_err(state_fault)?;
    // Which other there is a damaged folder may not tell, and a damaged folder is what an audit is for.
    let anchors = folder
        .anchors(&options(context))
        .unwrap_or_else(|_| Anchors::new(anchors().as_deref(), &log, None));
    let mut heads = Vec::new();
    for file in anchors.files().iter().chain(&anchors.cosigned()) {
        let Some(note) = read(file)? else { continue };
        heads.push(believed(&note, trust).map_err(|why| {
            let place = shown(file.path());
            Stop::refused(format!("the head `{place}` is not to be believed: {why}"))
        })?);
    }
    Ok(heads)
}

/// The largest head over a record that witnesses cosigned, with all their lines, from the files beside the anchor. What
/// is in them is nobody's word yet: the gate proves under it or refuses, and the reader verifies.
pub(super) fn cosigned(index: u64, context: &Context<'_>) -> Outcome<Option<String>> {
    let folder = context.places.folder()?;
    let log = folder.read_log_name().map_err(state_fault)?;
    // Where the usual anchor is none, they lie beside the one of the configuration.
    let beside = match anchors() {
        Some(usual) => Anchors::new(Some(&usual), &log, None),
        None => folder.anchors(&options(context)).map_err(state_fault)?,
    };
    let mut heads: Vec<SignedCheckpoint> = Vec::new();
    // None is there before a witness has answered.
    for file in beside.cosigned() {
        let bytes = read(&file)?.unwrap_or_default();
        heads.extend(SignedCheckpoint::parse(&bytes).ok());
    }
    heads.retain(|head| head.checkpoint().size() > index);
    let Some(best) = heads.iter().max_by_key(|head| head.checkpoint().size()) else {
        return Ok(None);
    };
    let mut note = best.to_string();
    for other in &heads {
        let lines = other.note().signatures().iter().map(ToString::to_string);
        let new = |line: &String| !note.contains(line.as_str());
        if other.note().text() == best.note().text() {
            let lines = lines.filter(new).collect::<String>();
            note.push_str(&lines);
        }
    }
    Ok(Some(note))
}

/// The log's current key as a witness is told it.
fn log_key(context: &Context<'_>) -> Outcome<Option<String>> {
    let folder = context.places.folder()?;
    let trust = trust(None, context)?;
    let name = folder.read_log_name().map_err(state_fault)?;
    let key = trust.current(Role::Ledger);
    let key =
        key.and_then(|key| VerifierKey::new(name, SignatureKind::Ed25519, *key.public()).ok());
    Ok(key.map(|key| key.to_string()))
}

fn head(file: &AnchorFile) -> Outcome<Option<SignedCheckpoint>> {
    let bytes = read(file)?;
    // One that cannot be read is told as a contradiction.
    Ok(bytes.and_then(|note| SignedCheckpoint::parse(&note).ok()))
}

fn read(file: &AnchorFile) -> Outcome<Option<Vec<u8>>> {
    file.read()
        .map_err(|fault| Stop::fault(format!("cannot read `{}`: {fault}", shown(file.path()))))
}

fn file(context: &Context<'_>) -> Outcome<AnchorFile> {
    let folder = anchors()
        .ok_or_else(|| Stop::usage("HOME is not set, so there is no folder of anchors"))?;
    let log = context.places.folder()?.read_log_name();
    Ok(AnchorFile::of(&folder, &log.map_err(state_fault)?))
}

fn options(context: &Context<'_>) -> OpenOptions {
    OpenOptions {
        config_file: Some(context.places.config.clone()),
        home: home(),
        anchors: anchors(),
        ..OpenOptions::default()
    }
}

const WAY_OUT: &str =
    "restore the newest state folder, or lychgate ledger anchor --accept --reason \"...\"";
/// Anchors, and witnesses twice over.
const MOST_HEADS: usize = 64;
