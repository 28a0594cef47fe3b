//! The control plane's one way out: small HTTP/1.1 posts to addresses that the applied configuration names, and to no
//! other (HOUSE.md). No proxy, no redirect, no name is looked up, and the environment is not asked.

use lychgate_gate::log::Shown;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Posts to the addresses it was made for.
#[derive(Clone, Debug)]
pub(crate) struct Outward {
    allowed: Vec<SocketAddr>,
}

/// One post.
pub(crate) struct Post<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: &'a [u8],
}

/// Why a post did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum OutwardFault {
    /// Nobody configured that address.
    #[error("the address is not one of the applied configuration")]
    NotAllowed,
    /// It took too long.
    #[error("no answer in time")]
    TimedOut,
    /// The connection failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The answer is no HTTP.
    #[error("the answer is not HTTP")]
    NotHttp,
    /// The other side said no.
    #[error("answered with status {0}")]
    Status(u16),
}

impl OutwardFault {
    /// For the log.
    pub(crate) fn shown(&self) -> Shown<'_> {
        match self {
            Self::NotAllowed => "the address is not one of the applied configuration".into(),
            Self::TimedOut => "no answer in time".into(),
            Self::Io(fault) => fault.into(),
            Self::NotHttp => "the answer is not HTTP".into(),
            Self::Status(status) => u32::from(*status).into(),
        }
    }
}

impl Outward {
    /// For these addresses alone.
    pub(crate) const fn new(allowed: Vec<SocketAddr>) -> Self {
        Self { allowed }
    }

    /// Posts, and waits for a status of success. What else is answered is not read.
    pub(crate) async fn post(&self, post: &Post<'_>) -> Result<(), OutwardFault> {
        if !self.allowed.contains(&post.to) {
            return Err(OutwardFault::NotAllowed);
        }
        match tokio::time::timeout(PATIENCE, exchange(post)).await {
            Ok(Ok(200..=299)) => Ok(()),
            Ok(Ok(status)) => Err(OutwardFault::Status(status)),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(OutwardFault::TimedOut),
        }
    }
}

impl Outward {
    /// Posts, and gives the answer's status and body, which is at most `MOST_BODY` bytes and not in chunks.
    pub(crate) async fn ask(&self, post: &Post<'_>) -> Result<(u16, Vec<u8>), OutwardFault> {
        if !self.allowed.contains(&post.to) {
            return Err(OutwardFault::NotAllowed);
        }
        let asked = tokio::time::timeout(PATIENCE, answer(post)).await;
        asked.unwrap_or(Err(OutwardFault::TimedOut))
    }
}

impl Outward {
    /// Gets a small document: its status and body. Blocks, for [`SHORT`] at most each way: for what a gate asks before it
    /// starts.
    pub(crate) fn get_blocking(
        &self,
        to: SocketAddr,
        path: &str,
    ) -> Result<(u16, Vec<u8>), OutwardFault> {
        if !self.allowed.contains(&to) {
            return Err(OutwardFault::NotAllowed);
        }
        let mut stream = std::net::TcpStream::connect_timeout(&to, SHORT)?;
        stream.set_write_timeout(Some(SHORT))?;
        stream.set_read_timeout(Some(SHORT))?;
        let agent = env!("CARGO_PKG_VERSION");
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {to}\r\nUser-Agent: lychgate/{agent}\r\nConnection: close\r\n\r\n"
        );
        io::Write::write_all(&mut stream, head.as_bytes())?;
        let mut all = Vec::new();
        // An answer that trickles is cut off by its length: a byte each time, and so many times.
        let mut chunk = [0; 4096];
        for _ in 0..MOST_READS {
            let read = io::Read::read(&mut stream, &mut chunk)?;
            if read == 0 {
                return read_answer(&all);
            }
            all.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
        Err(OutwardFault::TimedOut)
    }
}

async fn answer(post: &Post<'_>) -> Result<(u16, Vec<u8>), OutwardFault> {
    let mut all = Vec::new();
    let stream = send(post).await?;
    stream.take(MOST_BODY).read_to_end(&mut all).await?;
    read_answer(&all)
}

fn read_answer(all: &[u8]) -> Result<(u16, Vec<u8>), OutwardFault> {
    let end = all.windows(4).position(|end| end == b"\r\n\r\n");
    let (head, body) = end
        .and_then(|end| all.split_at_checked(end + 4))
        .ok_or(OutwardFault::NotHttp)?;
    let chunked = head.to_ascii_lowercase();
    if chunked
        .windows(18)
        .any(|name| name == b"\r\ntransfer-encodin")
    {
        return Err(OutwardFault::NotHttp);
    }
    let status = status(head).ok_or(OutwardFault::NotHttp)?;
    Ok((status, body.to_vec()))
}

async fn exchange(post: &Post<'_>) -> Result<u16, OutwardFault> {
    let mut stream = send(post).await?;
    let mut start = [0; STATUS_LINE];
    stream.read_exact(&mut start).await?;
    status(&start).ok_or(OutwardFault::NotHttp)
}

/// The status of an answer that begins so.
fn status(start: &[u8]) -> Option<u16> {
    let digits = start.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

async fn send(post: &Post<'_>) -> Result<TcpStream, OutwardFault> {
    let Post {
        to,
        path,
        kind,
        body,
    } = post;
    let mut stream = TcpStream::connect(to).await?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {to}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nUser-Agent: lychgate/{}\r\nConnection: close\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    Ok(stream)
}

/// `HTTP/1.1 200`
const STATUS_LINE: usize = 12;
/// An answer's head and body; cosignatures are a few hundred bytes.
const MOST_BODY: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(5);
/// Who waits for a gate to start does not wait longer for a witness: a connection, a write, a read.
const SHORT: Duration = Duration::from_secs(1);
/// Pieces of an answer; a head with its cosignatures comes in one or two.
const MOST_READS: usize = 32;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use tokio::net::TcpListener;

    async fn answered(with: &'static str) -> (Result<(), OutwardFault>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let other = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = vec![0; 4096];
            let mut read = 0;
            while !seen[..read].ends_with(b"body") {
                read += stream.read(&mut seen[read..]).await.unwrap();
            }
            stream.write_all(with.as_bytes()).await.unwrap();
            String::from_utf8(seen[..read].to_vec()).unwrap()
        });
        let outward = Outward::new(vec![to]);
        let post = Post {
            to,
            path: "/v1/traces",
            kind: "application/x-protobuf",
            body: b"body",
        };
        (outward.post(&post).await, other.await.unwrap())
    }

    #[tokio::test]
    async fn a_post_is_one_request_and_only_success_is_success() {
        let (said, seen) = answered("HTTP/1.1 200 OK\r\n\r\n").await;
        assert!(said.is_ok(), "{said:?}");
        assert!(
            seen.starts_with("POST /v1/traces HTTP/1.1\r\n")
                && seen.contains("Content-Length: 4\r\n")
        );
        let (said, _) = answered("HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n").await;
        assert!(matches!(said, Err(OutwardFault::Status(302))), "{said:?}");
        let (said, _) = answered("SSH-2.0-OpenSSH").await;
        assert!(matches!(said, Err(OutwardFault::NotHttp)), "{said:?}");
    }

    #[tokio::test]
    async fn an_address_that_nobody_configured_is_not_even_tried() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let post = Post {
            to: listener.local_addr().unwrap(),
            path: "/",
            kind: "text/plain",
            body: b"",
        };
        let said = Outward::new(vec![]).post(&post).await;
        assert!(matches!(said, Err(OutwardFault::NotAllowed)), "{said:?}");
        let nobody = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(nobody.is_err());
    }
}
