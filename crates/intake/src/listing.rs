//! Tool definitions out of `tools/list` pages: strict values to be pinned, and the page rebuilt with what may be offered.

use std::collections::BTreeMap;

use lychgate_core::json::{self, CaseRule, Value, parse};
use lychgate_core::name::is_name;
use lychgate_core::{Digest, jcs};

use crate::answer::put_member;
use crate::envelope::{Envelope, Fault, items, scan};
use crate::server::DEPTH;

/// One page of a listing.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    result: Envelope<'a>,
    /// The tools in the server's order.
    pub tools: Vec<Listed<'a>>,
    /// Where the next page starts.
    pub next_cursor: Option<String>,
}

/// One tool of a page.
#[derive(Clone, Debug)]
pub struct Listed<'a> {
    /// As the server wrote it.
    pub raw: &'a [u8],
    /// The definition, or why it cannot be pinned and so not be offered.
    pub definition: Result<Definition, ListingFault>,
}

/// A tool's definition, strictly parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The function's name, of the letters PROFILE §8 allows.
    pub name: String,
    /// The whole definition.
    pub value: Value,
    /// SHA-256 over JCS of the whole definition: member order, which differs between eras, does not count.
    pub digest: Digest,
}

/// Why a tool is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ListingFault {
    /// The name as the server wrote it, when it could be read; escape it before showing.
    pub name: Option<String>,
    /// What is wrong.
    pub reason: String,
}

/// Reads one raw `tools/list` result.
///
/// # Errors
/// When the page as a whole is not one: no object, no array `tools`, more than [`LARGEST_PAGE`] tools, or a
/// `nextCursor` that is no text.
pub fn page(raw_result: &[u8]) -> Result<Page<'_>, Fault> {
    let result = scan(raw_result, DEPTH)?;
    let tools = result
        .get("tools")
        .ok_or(Fault::shape("no `tools` in the listing"))?;
    let tools = items(tools, DEPTH, LARGEST_PAGE)?;
    let tools = tools.into_iter().map(|raw| Listed {
        raw,
        definition: definition(raw),
    });
    let tools = tools.collect();
    let next_cursor = match result.get("nextCursor") {
        None | Some(b"null") => None,
        Some(raw) => match parse(raw, &LIMITS) {
            Ok(Value::String(cursor)) => Some(cursor),
            _ => return Err(Fault::shape("`nextCursor` is no text")),
        },
    };
    Ok(Page {
        result,
        tools,
        next_cursor,
    })
}

impl Page<'_> {
    /// The raw result with only the tools for which `keep` holds; every byte of what stays is the server's.
    #[must_use]
    pub fn keeping(&self, mut keep: impl FnMut(&Definition) -> bool) -> Vec<u8> {
        let mut tools = vec![b'['];
        for tool in &self.tools {
            if tool.definition.as_ref().is_ok_and(&mut keep) {
                if tools.len() > 1 {
                    tools.push(b',');
                }
                tools.extend_from_slice(tool.raw);
            }
        }
        tools.push(b']');
        let mut out = vec![b'{'];
        for member in self.result.members() {
            let raw = if member.key == "tools" {
                tools.as_slice()
            } else {
                member.raw
            };
            put_member(&mut out, member.raw_key, raw);
        }
        out.push(b'}');
        out
    }
}

/// The names that occur more than once among definitions (of all pages): none of those is offered (PROFILE §8).
#[must_use]
pub fn duplicates<'d>(definitions: impl IntoIterator<Item = &'d Definition>) -> Vec<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for definition in definitions {
        *counts.entry(&definition.name).or_default() += 1;
    }
    let doubled = counts.into_iter().filter(|(_, count)| *count > 1);
    doubled.map(|(name, _)| name.to_owned()).collect()
}

fn definition(raw: &[u8]) -> Result<Definition, ListingFault> {
    let value = parse(raw, &LIMITS).map_err(|fault| ListingFault {
        name: raw_name(raw),
        reason: fault.to_string(),
    })?;
    let Some(name) = value.get("name").and_then(Value::as_str).map(str::to_owned) else {
        return Err(ListingFault {
            name: None,
            reason: "the tool has no name".to_owned(),
        });
    };
    if !is_name(&name) {
        return Err(ListingFault {
            name: Some(name),
            reason: "a tool's name has 1 to 128 ASCII letters, digits and `_ - . /` only"
                .to_owned(),
        });
    }
    let digest = Digest::sha256(&jcs::to_bytes(&value));
    Ok(Definition {
        name,
        value,
        digest,
    })
}

fn raw_name(raw: &[u8]) -> Option<String> {
    let name = scan(raw, DEPTH).ok()?.get("name")?;
    parse(name, &LIMITS).ok()?.as_str().map(str::to_owned)
}

/// The most tools on one page.
pub const LARGEST_PAGE: usize = 4096;

/// Schemas may hold property names that differ only in case; that is for the catalogue to judge.
const LIMITS: json::Limits = json::Limits {
    max_bytes: 1 << 20,
    max_depth: 64,
    case: CaseRule::Allow,
};
