//! The fuzz bodies over a fixed corpus, random mutations of it, and noise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use lychgate_intake::fuzz::{fuzz_client, fuzz_server};
use proptest::prelude::*;

/// Both directions in the shapes that real clients and servers use.
const CORPUS: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}},"jsonrpc":"2.0","id":0}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
    r#"{"method":"tools/call","params":{"_meta":{"progressToken":5},"name":"write_file","arguments":{"path":"/a","Path":"b","n":[1.0,1e21]}},"jsonrpc":"2.0","id":"x"}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t","inputResponses":{"a":{}},"requestState":"s"}}"#,
    r#"[{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"file:///a"}},{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}]"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"prompts/get","params":{"name":"p","arguments":{"a":"b"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6,"reason":"caller cancelled"}}"#,
    r#"{"result":{"content":[{"type":"text","text":"\ud83d\ude00"}],"structuredContent":{"a":1e400},"_meta":{"k":1}},"jsonrpc":"2.0","id":4}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"cacheScope":"private","resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a"}],"nextCursor":"n"}}"#,
    r#"{"method":"roots/list","jsonrpc":"2.0","id":0}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
];

#[test]
fn the_corpus_holds() {
    for text in CORPUS {
        assert!(fuzz_client(text.as_bytes()), "{text}");
        assert!(fuzz_server(text.as_bytes()), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutations_of_the_corpus_hold(
        seed in prop::sample::select(CORPUS),
        other in prop::sample::select(CORPUS),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4, any::<u8>()), 0..6),
    ) {
        let mut bytes = seed.as_bytes().to_vec();
        for (at, kind, byte) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at),
                _ => {
                    let from = usize::from(byte) % other.len();
                    bytes.splice(at..at, other.as_bytes()[from..].iter().copied().take(16));
                }
            }
        }
        prop_assert!(fuzz_client(&bytes), "{}", String::from_utf8_lossy(&bytes));
        prop_assert!(fuzz_server(&bytes), "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn noise_holds(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(fuzz_client(&bytes) && fuzz_server(&bytes));
    }
}
