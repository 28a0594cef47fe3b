//! The metrics endpoint: `GET /metrics` over HTTP/1.1, one request a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Teller, measures, text};
use lychgate_gate::log;

/// Serves as long as it is not dropped. An address that is taken is tried again from time to time.
pub(super) async fn serve(teller: Arc<Teller>, address: SocketAddr) {
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(fault) => {
                log::error(
                    "the metrics endpoint cannot listen",
                    &[("fault", (&fault).into())],
                );
                tokio::time::sleep(AGAIN).await;
            }
        }
    };
    let room = Arc::new(Semaphore::new(MOST_AT_ONCE));
    let mut requests = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = requests.join_next() => continue,
        };
        match (accepted, Arc::clone(&room).try_acquire_owned()) {
            (Ok((stream, _)), Ok(permit)) => {
                let teller = Arc::clone(&teller);
                requests.spawn(async move {
                    // Who is slow is given up; there is nobody to tell.
                    let _ = tokio::time::timeout(PATIENCE, answer(&teller, stream)).await;
                    drop(permit);
                });
            }
            (Ok(_), Err(_)) => {}
            (Err(_), _) => tokio::time::sleep(BREATH).await,
        }
    }
}

async fn answer(teller: &Arc<Teller>, mut stream: TcpStream) {
    let Some(head) = head(&mut stream).await else {
        return;
    };
    let teller = Arc::clone(teller);
    let (status, kind, body) = match asked(&head) {
        Asked::Metrics => {
            let read = move || text::render(measures::read(&teller).ok()?).ok();
            match tokio::task::spawn_blocking(read).await {
                Ok(Some(body)) => ("200 OK", text::TYPE, body),
                _ => (
                    "503 Service Unavailable",
                    PLAIN,
                    "the store cannot be read\n".to_owned(),
                ),
            }
        }
        Asked::Elsewhere => (
            "404 Not Found",
            PLAIN,
            "there is only /metrics\n".to_owned(),
        ),
        Asked::Otherwise => (
            "405 Method Not Allowed",
            PLAIN,
            "only GET is answered\n".to_owned(),
        ),
        Asked::OfAnother => (
            "421 Misdirected Request",
            PLAIN,
            "ask by address\n".to_owned(),
        ),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    );
    // A reader that has gone misses it.
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

/// The request up to its empty line; `None` when it is too long or ends before.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 1024];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await.ok()?;
        if read == 0 || bytes.len() > MOST_HEAD {
            return None;
        }
        bytes.extend_from_slice(chunk.get(..read)?);
    }
    String::from_utf8(bytes).ok()
}

enum Asked {
    Metrics,
    Elsewhere,
    Otherwise,
    /// By a name: a page in somebody's browser whose name was made to lead here.
    OfAnother,
}

fn asked(head: &str) -> Asked {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    let path = target.split('?').next();
    match (host, method, path) {
        (Some(host), _, _) if !is_address(host) => Asked::OfAnother,
        (_, Some("GET"), Some("/metrics")) => Asked::Metrics,
        (_, Some("GET"), _) => Asked::Elsewhere,
        _ => Asked::Otherwise,
    }
}

fn is_address(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let name = host.split(':').next().unwrap_or_default();
    host.parse::<SocketAddr>().is_ok()
        || bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
}

const PLAIN: &str = "text/plain; charset=utf-8";
const MOST_HEAD: usize = 8 << 10;
const MOST_AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(10);
const BREATH: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn only_the_metrics_and_only_by_address() {
        let of = |first: &str, host: &str| asked(&format!("{first}\r\nHost: {host}\r\n\r\n"));
        for host in [
            "127.0.0.1:9464",
            "127.0.0.1",
            "[::1]:9464",
            "[::1]",
            "localhost:9464",
        ] {
            assert!(
                matches!(of("GET /metrics HTTP/1.1", host), Asked::Metrics),
                "{host}"
            );
        }
        for host in [
            "evil.example",
            "evil.example:9464",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert!(
                matches!(of("GET /metrics HTTP/1.1", host), Asked::OfAnother),
                "{host}"
            );
        }
        assert!(matches!(
            of("GET / HTTP/1.1", "127.0.0.1"),
            Asked::Elsewhere
        ));
        assert!(matches!(
            of("POST /metrics HTTP/1.1", "127.0.0.1"),
            Asked::Otherwise
        ));
        assert!(matches!(asked(""), Asked::Otherwise));
    }
}
