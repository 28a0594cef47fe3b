//! The witness' HTTP/1.1: `POST /add-checkpoint`, and of our own `GET /checkpoint/<log>`, one request a connection.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Answer, LATEST, Witness};

/// Answers one request and closes.
pub(super) async fn answer(witness: Arc<Witness>, mut stream: TcpStream) {
    let answer = match request(&mut stream).await {
        Ok(asked) => {
            let work = move || match asked {
                Asked::Add(body) => witness.add_checkpoint(&body),
                Asked::Latest(path) => witness.latest(&path),
            };
            let done = tokio::task::spawn_blocking(work).await;
            done.unwrap_or_else(|_| Answer::plain(500, "an internal fault"))
        }
        Err(Some(answer)) => answer,
        Err(None) => return,
    };
    let reason = reason(answer.status);
    let kind = if answer.size {
        "text/x.tlog.size"
    } else {
        "text/plain; charset=utf-8"
    };
    let (status, length, body) = (answer.status, answer.body.len(), answer.body);
    let answer = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{body}"
    );
    // A reader that has gone misses it.
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

/// The one request that is answered.
enum Asked {
    /// To cosign what this body holds.
    Add(Vec<u8>),
    /// For the head that was cosigned last, by its path.
    Latest(String),
}

/// The request; else what to say instead, or nothing when there is nobody to say it to.
async fn request(stream: &mut TcpStream) -> Result<Asked, Option<Answer>> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > MOST_HEAD {
            return Err(Some(Answer::plain(431, "the head is too long")));
        }
        more(stream, &mut bytes).await?;
    };
    let (head, rest) = bytes.split_at(head);
    let mut body = rest.get(4..).unwrap_or_default().to_vec();
    let head = std::str::from_utf8(head).map_err(|_| Answer::plain(400, "not HTTP"))?;
    let head = Head::read(head)?;
    if let Some(path) = head.latest {
        return Ok(Asked::Latest(path));
    }
    if head.expects {
        let go_on = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        go_on.map_err(|_| None)?;
    }
    while body.len() < head.length {
        more(stream, &mut body).await?;
    }
    // No second request is read on a connection; what follows is nobody's.
    body.truncate(head.length);
    Ok(Asked::Add(body))
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<(), Option<Answer>> {
    let mut chunk = [0; 8192];
    match stream.read(&mut chunk).await {
        Ok(read) if read > 0 => {
            bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
            Ok(())
        }
        _ => Err(None),
    }
}

/// What counts of a request's head.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    length: usize,
    expects: bool,
    /// The path of a head that is asked for; there is no body then.
    latest: Option<String>,
}

impl Head {
    fn read(text: &str) -> Result<Self, Answer> {
        let mut lines = text.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version] = words.as_slice() else {
            return Err(Answer::plain(400, "not HTTP"));
        };
        if !version.starts_with("HTTP/1.") {
            return Err(Answer::plain(505, "HTTP/1.1 is spoken here"));
        }
        let latest = target.starts_with(LATEST);
        if !latest && *target != "/add-checkpoint" {
            return Err(Answer::plain(404, "there is only /add-checkpoint"));
        }
        if *method != if latest { "GET" } else { "POST" } {
            return Err(Answer::plain(405, "not with this method"));
        }
        if latest {
            return Ok(Self {
                length: 0,
                expects: false,
                latest: Some((*target).to_owned()),
            });
        }
        let mut length = None;
        let mut expects = false;
        for line in lines {
            let field = line.split_once(':');
            let (name, value) = field.ok_or_else(|| Answer::plain(400, "not HTTP"))?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let digits = value.bytes().all(|byte| byte.is_ascii_digit());
                let number = value.parse().ok().filter(|_| digits);
                // Two lengths, or one that is none, have two readings.
                match (length, number) {
                    (None, Some(number)) => length = Some(number),
                    _ => return Err(Answer::plain(400, "no single length")),
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(Answer::plain(411, "the length must be given"));
            } else if name.eq_ignore_ascii_case("expect") {
                expects = value.eq_ignore_ascii_case("100-continue");
            }
        }
        let length = length.ok_or_else(|| Answer::plain(411, "the length must be given"))?;
        if length > MOST_BODY {
            return Err(Answer::plain(413, "the body is too long"));
        }
        Ok(Self {
            length,
            expects,
            latest: None,
        })
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

const MOST_HEAD: usize = 8 << 10;
/// A checkpoint with a hundred cosignatures and the longest proof is a tenth of it.
const MOST_BODY: usize = 128 << 10;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_request_has_one_reading_or_none() {
        let of = |text: &str| Head::read(&text.replace('\n', "\r\n"));
        let good = "POST /add-checkpoint HTTP/1.1\nHost: x\ncontent-length: 12";
        let head = |expects| {
            Ok(Head {
                length: 12,
                expects,
                latest: None,
            })
        };
        assert_eq!(of(good), head(false));
        assert_eq!(of(&format!("{good}\nExpect: 100-continue")), head(true));
        let asked = of("GET /checkpoint/x HTTP/1.1\nHost: x").unwrap();
        assert_eq!(asked.latest.as_deref(), Some("/checkpoint/x"));
        for (text, status) in [
            ("POST /add-checkpoint HTTP/1.1\nHost: x", 411),
            ("GET /add-checkpoint HTTP/1.1\nContent-Length: 1", 405),
            ("POST /other HTTP/1.1\nContent-Length: 1", 404),
            ("POST /checkpoint/x HTTP/1.1\nContent-Length: 1", 405),
            ("POST /add-checkpoint HTTP/2\nContent-Length: 1", 505),
            ("POST /add-checkpoint\nContent-Length: 1", 400),
            ("POST /add-checkpoint HTTP/1.1\nContent-Length: +1", 400),
            (
                "POST /add-checkpoint HTTP/1.1\nContent-Length: 1\nContent-Length: 1",
                400,
            ),
            (
                "POST /add-checkpoint HTTP/1.1\nContent-Length: 1\nTransfer-Encoding: chunked",
                411,
            ),
            (
                "POST /add-checkpoint HTTP/1.1\nContent-Length: 9999999",
                413,
            ),
            ("POST /add-checkpoint HTTP/1.1\nnot a field", 400),
        ] {
            assert_eq!(of(text).unwrap_err().status, status, "{text}");
        }
    }
}
