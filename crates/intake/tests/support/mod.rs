//! Streams of the fixtures, through the normaliser.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::fs;
use std::path::PathBuf;

use lychgate_intake::streams::{Block, Content, Limits, Normaliser, Provider};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/streams")
}

/// A fixture's bytes.
pub(crate) fn fixture(provider: Provider, name: &str) -> Vec<u8> {
    let ending = if provider == Provider::Bedrock {
        "jsonl"
    } else {
        "sse"
    };
    fs::read(
        folder()
            .join(provider.name())
            .join(format!("{name}.{ending}")),
    )
    .unwrap()
}

/// All fixtures.
pub(crate) fn fixtures() -> Vec<(Provider, String, Vec<u8>)> {
    let mut all = Vec::new();
    for provider in Provider::ALL {
        for entry in fs::read_dir(folder().join(provider.name())).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            all.push((provider, name, fs::read(&path).unwrap()));
        }
    }
    all.sort_by(|one, other| (one.0.name(), &one.1).cmp(&(other.0.name(), &other.1)));
    all
}

/// The blocks of a stream in chunks, and whether it was complete.
pub(crate) fn blocks(provider: Provider, chunks: &[&[u8]]) -> (Vec<Block>, bool) {
    let mut normaliser = Normaliser::new(provider, Limits::default());
    let mut all = Vec::new();
    for chunk in chunks {
        normaliser.push(chunk);
        all.extend(normaliser.by_ref());
    }
    normaliser.finish();
    all.extend(normaliser.by_ref());
    (all, normaliser.is_complete())
}

pub(crate) fn is_act(block: &Block) -> bool {
    matches!(block.content, Content::Act(_))
}

/// One line of the table. Ordinals must count up from 0.
pub(crate) fn summary(blocks: &[Block]) -> String {
    let mut lines = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        assert_eq!(block.ordinal, at as u64);
        let label =
            |id: &Option<String>| id.as_ref().map(|id| format!(" @{id}")).unwrap_or_default();
        lines.push(match &block.content {
            Content::Act(act) => {
                let form = if act.form == "function" {
                    String::new()
                } else {
                    format!(" {}", act.form)
                };
                let twin = if act.ambiguous { " ambiguous" } else { "" };
                let arguments = String::from_utf8(act.canonical.clone()).unwrap();
                format!(
                    "{} {arguments}{}{form}{twin}",
                    act.name,
                    label(&act.provider_id)
                )
            }
            Content::Text(text) => format!("text {text}"),
            Content::Reasoning => "reasoning".to_owned(),
            Content::ProviderExecuted(call) => {
                let name = call.name.as_deref().unwrap_or("-");
                format!("provider {} {name}{}", call.form, label(&call.provider_id))
            }
            Content::ProviderData => "data".to_owned(),
            Content::Refused(reason) => format!("refused {}", reason.name()),
        });
    }
    lines.join(" | ")
}

/// A Bedrock fixture's lines as the binary frames that carry them.
pub(crate) fn frames(lines: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for line in std::str::from_utf8(lines).unwrap().lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let (kind, payload) = event.as_object().unwrap().iter().next().unwrap();
        let (message, header) = if kind.ends_with("Exception") {
            ("exception", ":exception-type")
        } else {
            ("event", ":event-type")
        };
        let headers = [
            (header, kind.as_str()),
            (":content-type", "application/json"),
            (":message-type", message),
        ];
        all.extend(frame(&headers, payload.to_string().as_bytes()));
    }
    all
}

fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend(name.as_bytes());
        head.push(7);
        head.extend((value.len() as u16).to_be_bytes());
        head.extend(value.as_bytes());
    }
    let total = 12 + head.len() + payload.len() + 4;
    let mut frame = Vec::new();
    frame.extend((total as u32).to_be_bytes());
    frame.extend((head.len() as u32).to_be_bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(head);
    frame.extend(payload);
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

/// Bit by bit, unlike the one under test.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0_u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                (sum >> 1) ^ 0xEDB8_8320
            } else {
                sum >> 1
            };
        }
    }
    !sum
}
