//! What must hold for any bytes whatever, in any chunks.

use super::{Block, Content, Limits, Normaliser, Provider};
use lychgate_core::Digest;
use lychgate_core::json::{self, parse};

/// Any bytes as any provider's stream, cut at any places: no panic, bounded; the blocks are the same however the bytes
/// are cut; a stream cut off at any of those places yields no act that the whole stream does not yield; every act's
/// arguments are canonical, hash to its digest, and its line is JSON. The first byte chooses the provider, the second
/// the number of cuts, the next ones the cuts; the rest is the stream.
#[must_use]
pub fn fuzz_streams(bytes: &[u8]) -> bool {
    let (Some(&provider), Some(&cuts)) = (bytes.first(), bytes.get(1)) else {
        return true;
    };
    let cuts = usize::from(cuts % 16);
    let at = bytes.get(2..2 + cuts).unwrap_or_default();
    let stream = bytes.get(2 + cuts..).unwrap_or_default();
    let cuts: Vec<usize> = at
        .iter()
        .map(|cut| usize::from(*cut) * stream.len() / 255)
        .collect();
    let provider = Provider::ALL
        .into_iter()
        .nth(usize::from(provider) % Provider::ALL.len());
    provider.is_none_or(|provider| stream_holds(provider, stream, &cuts))
}

/// The same for one provider's stream and these places.
#[must_use]
pub fn stream_holds(provider: Provider, stream: &[u8], cuts: &[usize]) -> bool {
    let whole = run(provider, [stream]);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(stream.len())).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    let chunks = cuts
        .array_windows()
        .map(|[from, to]| stream.get(*from..*to).unwrap_or_default());
    run(provider, chunks) == whole
        && whole.iter().all(block_holds)
        && cuts.iter().all(|cut| {
            let part = run(provider, [stream.get(..*cut).unwrap_or_default()]);
            part.iter().filter_map(act).all(|act_of_part| {
                whole
                    .iter()
                    .filter_map(act)
                    .any(|whole| whole == act_of_part)
            })
        })
}

fn run<'a>(provider: Provider, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Block> {
    let mut normaliser = Normaliser::new(provider, Limits::default());
    let mut blocks = Vec::new();
    for chunk in chunks {
        normaliser.push(chunk);
        blocks.extend(normaliser.by_ref());
    }
    normaliser.finish();
    blocks.extend(normaliser.by_ref());
    blocks
}

/// What makes an act that act; the mark that it came twice may come later.
fn act(block: &Block) -> Option<(u64, &str, &[u8], Option<&str>)> {
    match &block.content {
        Content::Act(act) => Some((
            block.ordinal,
            &act.name,
            &act.canonical,
            act.provider_id.as_deref(),
        )),
        _ => None,
    }
}

fn block_holds(block: &Block) -> bool {
    let canonical = match &block.content {
        Content::Act(act) => {
            let again = parse(&act.canonical, &json::Limits::ARGUMENTS);
            again.is_ok_and(|value| {
                value.as_object().is_some()
                    && lychgate_core::jcs::to_bytes(&value) == act.canonical
                    && Digest::sha256(&act.canonical) == act.digest
            })
        }
        _ => true,
    };
    canonical && parse(&block.line(), &json::Limits::CANON).is_ok()
}
