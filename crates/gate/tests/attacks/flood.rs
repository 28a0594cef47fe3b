//! A caller that is denied as fast as it can ask, over ever new connections.

use std::time::{Duration, Instant};

use lychgate_core::Code;
use lychgate_gate::Peer;
use lychgate_store::Store as _;

use crate::kit::Kit;

#[tokio::test]
async fn a_flood_of_denials_is_recorded_whole_and_given_ever_later() {
    let kit = Kit::new().await;
    let peer = Peer {
        uid: 1001,
        pid: None,
    };
    let other = kit.gate.connect("box", peer).unwrap();
    let before = kit.store.record_len().unwrap();
    let many = 204;
    #[allow(clippy::disallowed_methods, reason = "it measures a real wait")]
    let start = Instant::now();
    for _ in 0..many {
        // To come back over a new connection buys nothing.
        let denied = kit
            .gate
            .deny_request(
                &kit.session(),
                Code::MalformedAct,
                "the request is not well formed",
            )
            .await;
        assert_eq!(denied.code, Code::MalformedAct);
    }
    // The kit's clock stands still, so the last three waited 50, 100 and 150 ms.
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(kit.store.record_len().unwrap(), before + many);
    #[allow(clippy::disallowed_methods, reason = "it measures a real wait")]
    let start = Instant::now();
    let why = "the request is not well formed";
    kit.gate.deny_request(&other, Code::MalformedAct, why).await;
    assert!(
        start.elapsed() < Duration::from_millis(150),
        "nobody else waits"
    );
}
