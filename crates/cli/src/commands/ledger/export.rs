//! `ledger export`: the whole log as files that anybody's tools can read (C2SP tlog-tiles).

use lychgate_core::display::escape;
use lychgate_ledger::tiles::{TileKind, WIDTH, push_entry};
use lychgate_ledger::{SignedCheckpoint, Tile, TileBuilder};

use super::folder::Folder;
use super::source::{Kept, Source};
use crate::args::LedgerExport;
use crate::commands::Context;
use crate::outcome::{Outcome, Stop};
use crate::places::{absolute, shown};
use crate::terminal::{Style, count, dim, styled, text};

/// Writes it.
pub(super) fn run(args: &LedgerExport, context: &mut Context<'_>) -> Outcome {
    let mut source = Source::open(context)?;
    let ledger = source.view()?;
    let head = ledger
        .head
        .ok_or_else(|| Stop::refused("the record is empty"))?;
    let signed = SignedCheckpoint::parse(head.as_bytes());
    let signed = signed.map_err(|fault| Stop::refused(format!("the newest head: {fault}")))?;
    let size = signed.checkpoint().size();
    let dir = absolute(&args.dir)?;
    let folder = Folder::create(&dir)?;
    let (builder, archived) = write(&folder, &mut source, size, args.redact)?;
    if builder.frontier().root() != *signed.checkpoint().root() {
        return Err(Stop::refused(
            "the record does not lead to its own signed head; nothing was sealed",
        )
        .try_this("lychgate ledger verify"));
    }
    for (tile, hashes) in builder.partial() {
        folder.put(tile, hashes.as_flattened())?;
    }
    folder.put_checkpoint(head.as_bytes())?;
    let (terminal, name) = (&mut *context.terminal, shown(&dir));
    let records = count(
        usize::try_from(size).unwrap_or(usize::MAX),
        "record",
        "records",
    );
    terminal.line(&[
        styled(Style::Green, "✓ "),
        text(format!(
            "{records} of `{}` in {name}",
            escape(&ledger.origin)
        )),
    ]);
    if args.redact {
        terminal.line(&[dim(
            "  Hashes only: no receipt is in it, and each can still be proven to lie under it.",
        )]);
    } else if archived > 0 {
        terminal.line(&[dim(format!(
            "  {archived} of them were archived before: only their hashes are in it."
        ))]);
    }
    terminal.line(&[
        dim("  its reader:  "),
        text(format!(
            "lychgate ledger verify --dir {name} --trust trust.json"
        )),
    ]);
    Ok(())
}

/// Writes every full tile and every bundle; gives what the partial tiles are made of, and how many records had no bytes.
fn write(
    folder: &Folder,
    source: &mut Source,
    size: u64,
    redact: bool,
) -> Outcome<(TileBuilder, u64)> {
    let mut builder = TileBuilder::new();
    let mut archived = 0;
    for bundle in Tile::all(size).take_while(|tile| tile.kind() == TileKind::Entries) {
        let kept = source.records(bundle.start_index(), bundle.width().into())?;
        if kept.len() != usize::from(bundle.width()) {
            let index = bundle.start_index() + kept.len() as u64;
            return Err(missing(index));
        }
        let mut full = Vec::new();
        for (one, index) in kept.iter().zip(bundle.start_index()..) {
            if one.index != index {
                return Err(missing(index));
            }
            builder.append(one.leaf, |tile, hashes| {
                full.push((tile, hashes.as_flattened().to_vec()));
            });
        }
        for (tile, hashes) in full {
            folder.put(tile, &hashes)?;
        }
        match entries(&kept)? {
            Some(bytes) if !redact => folder.put(bundle, &bytes)?,
            Some(_) => {}
            None => archived += u64::from(bundle.width()),
        }
    }
    Ok((builder, archived))
}

/// The bundle of some records; `None` when one's bytes were archived.
pub(super) fn entries(kept: &[Kept]) -> Outcome<Option<Vec<u8>>> {
    let mut bundle = Vec::with_capacity(usize::from(WIDTH) * 1024);
    for one in kept {
        let Some(bytes) = &one.bytes else {
            return Ok(None);
        };
        push_entry(&mut bundle, bytes)
            .map_err(|fault| Stop::refused(format!("record {}: {fault}", one.index)))?;
    }
    Ok(Some(bundle))
}

pub(super) fn missing(index: u64) -> Stop {
    Stop::refused(format!("record {index} is missing")).try_this("lychgate ledger verify")
}
