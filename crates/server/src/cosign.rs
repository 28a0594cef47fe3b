//! Witnesses: each new head is shown to them, with the proof that the record only grew (C2SP tlog-witness). What one has
//! cosigned the disk's owner cannot take back: a record that it contradicts is noticed, and said in the record for ever.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lychgate_gate::Gate;
use lychgate_gate::ledger::AnchorNote;
use lychgate_gate::log::{self, Shown};
use lychgate_ledger::tree::consistency_proof;
use lychgate_ledger::witness::AddCheckpoint;
use lychgate_ledger::{SignedCheckpoint, TileReader, VerifierKey};
use lychgate_store::{HeadRow, Store, StoreTiles};

use crate::anchor::Anchors;
use crate::outward::{Outward, Post};

/// One witness of the applied configuration.
#[derive(Clone, Debug)]
pub(crate) struct Witness {
    name: String,
    to: SocketAddr,
    key: VerifierKey,
    /// The size it cosigned last, as far as is known.
    latest: u64,
}

/// What a witness made of a head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Cosigned it; the checkpoint with its line.
    Cosigned(Box<SignedCheckpoint>),
    /// It has cosigned a record that this one is not, or not any more.
    Contradicts,
    /// No answer, or one that says nothing about the record.
    Silent(String),
}

/// The witnesses of an applied configuration. One whose key cannot be read is left out, and said in the log.
pub(crate) fn witnesses(gate: &Gate) -> Vec<Witness> {
    let current = gate.current();
    let mut found = Vec::new();
    for (name, one) in current.applied.ledger().witnesses() {
        match (one.address(), one.key().parse::<VerifierKey>()) {
            (Some(to), Ok(key)) => found.push(Witness {
                name: name.to_owned(),
                to,
                key,
                latest: 0,
            }),
            _ => log::error(
                "a witness of the configuration cannot be asked: its key or place cannot be read",
                &[],
            ),
        }
    }
    found
}

/// Shows each new head to a witness, as long as it is polled. Once a second at most; the newest head stands for all
/// before it.
pub(crate) async fn follow(gate: Arc<Gate>, mut witness: Witness, anchors: Arc<Anchors>) {
    let outward = Outward::new(vec![witness.to]);
    let mut heads = gate.store().watch_heads();
    heads.mark_changed();
    let mut said = None;
    while heads.changed().await.is_ok() {
        let Some(head) = heads.borrow_and_update().clone() else {
            continue;
        };
        let word = witness.show(&outward, gate.store().as_ref(), &head).await;
        let note = match &word {
            Word::Cosigned(cosigned) => {
                keep(&anchors, &witness.name, cosigned).await;
                None
            }
            Word::Contradicts => Some(AnchorNote::Contradicted),
            Word::Silent(_) => Some(AnchorNote::Silent),
        };
        // Once for each time it begins; the line about it is itself a new head.
        if let Some(note) = note.filter(|_| said != note) {
            log::error("a witness", &[("says", Shown::Word(note.phrase()))]);
            // The store says itself when it cannot answer.
            let _ = gate.note_anchor(note).await;
        }
        said = note;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn keep(anchors: &Arc<Anchors>, name: &str, cosigned: &SignedCheckpoint) {
    let (anchors, name) = (Arc::clone(anchors), name.to_owned());
    let text = cosigned.to_string();
    let done = tokio::task::spawn_blocking(move || anchors.keep_cosigned(&name, text.as_bytes()));
    if !matches!(done.await, Ok(Ok(()))) {
        log::error("a cosigned head could not be kept", &[]);
    }
}

impl Witness {
    /// Asks for a cosignature; when the witness knows another size than was thought, once more from there.
    pub(crate) async fn show(
        &mut self,
        outward: &Outward,
        store: &dyn Store,
        head: &HeadRow,
    ) -> Word {
        for _ in 0..2 {
            let asked = match self.request(store, head) {
                Ok(request) => request,
                Err(why) => return Word::Silent(why),
            };
            let body = asked.to_string();
            let post = Post {
                to: self.to,
                path: "/add-checkpoint",
                kind: "application/octet-stream",
                body: body.as_bytes(),
            };
            let (status, answer) = match outward.ask(&post).await {
                Ok(answer) => answer,
                Err(fault) => return Word::Silent(fault.to_string()),
            };
            let text = String::from_utf8_lossy(&answer).into_owned();
            match status {
                200 => return self.cosigned(asked.checkpoint, head.size, &text),
                409 => match text.trim_end().parse::<u64>() {
                    Ok(latest) if latest > head.size => return Word::Contradicts,
                    // The same size, and another root.
                    Ok(latest) if latest == self.latest => return Word::Contradicts,
                    Ok(latest) => self.latest = latest,
                    Err(_) => return Word::Silent("a conflict without a size".to_owned()),
                },
                422 => return Word::Contradicts,
                other => return Word::Silent(format!("status {other}")),
            }
        }
        Word::Silent("it names another size each time".to_owned())
    }

    fn request(&self, store: &dyn Store, head: &HeadRow) -> Result<AddCheckpoint, String> {
        let checkpoint = SignedCheckpoint::parse(&head.note).map_err(|fault| fault.to_string())?;
        let old = self.latest.min(head.size);
        let reader = TileReader::new(StoreTiles(store), head.size);
        let proof =
            consistency_proof(old, head.size, &reader).map_err(|fault| fault.to_string())?;
        Ok(AddCheckpoint {
            old,
            proof,
            checkpoint,
        })
    }

    fn cosigned(&mut self, mut checkpoint: SignedCheckpoint, size: u64, lines: &str) -> Word {
        match checkpoint.add_cosignatures(lines, std::slice::from_ref(&self.key)) {
            Ok(1..) => {
                self.latest = size;
                Word::Cosigned(Box::new(checkpoint))
            }
            Ok(0) => Word::Silent("it did not cosign with the key of the configuration".to_owned()),
            Err(fault) => Word::Silent(fault.to_string()),
        }
    }
}

/// Between two heads.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Mutex;

    use lychgate_core::Timestamp;
    use lychgate_keys::SigningKey;
    use lychgate_ledger::witness::Judgement;
    use lychgate_ledger::{Hash, KeyName, note::SignatureKind};
    use lychgate_store::testing::MemoryStore;
    use lychgate_store::testing::make::{done, entry, log_key};
    use lychgate_store::{Txn, txn};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A witness that judges as the protocol says and remembers one head.
    struct Fake {
        to: SocketAddr,
        latest: Arc<Mutex<Option<(u64, Hash)>>>,
    }

    fn key() -> SigningKey {
        SigningKey::from_seed(&[8; 32]).unwrap()
    }

    fn name() -> KeyName {
        KeyName::new("witness.example").unwrap()
    }

    impl Fake {
        async fn new() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = listener.local_addr().unwrap();
            let latest = Arc::<Mutex<Option<(u64, Hash)>>>::default();
            let theirs = Arc::clone(&latest);
            tokio::spawn(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let mut seen = Vec::new();
                    let body = loop {
                        let mut some = [0; 4096];
                        let read = stream.read(&mut some).await.unwrap();
                        seen.extend_from_slice(&some[..read]);
                        let text = String::from_utf8_lossy(&seen).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else {
                            continue;
                        };
                        let length = head.split("Content-Length: ").nth(1).unwrap();
                        let length: usize = length.lines().next().unwrap().parse().unwrap();
                        if body.len() == length {
                            break body.to_owned();
                        }
                    };
                    let answer = Self::answer(&theirs, &body);
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
            Self { to, latest }
        }

        fn answer(latest: &Mutex<Option<(u64, Hash)>>, body: &str) -> String {
            let request = AddCheckpoint::parse(body.as_bytes()).unwrap();
            let mut latest = latest.lock().unwrap();
            let judged = request.judge(Some(&[log_key()]), *latest);
            let status = judged.status();
            let body = match judged {
                Judgement::Cosign(head) => {
                    let head = head.checkpoint();
                    *latest = Some((head.size(), *head.root()));
                    let mut checkpoint = request.checkpoint;
                    checkpoint.cosign(&name(), 7, &key()).unwrap()
                }
                Judgement::Stale { latest: size } | Judgement::Forked { size } => {
                    format!("{size}\n")
                }
                _ => String::new(),
            };
            format!(
                "HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }

        fn asked(&self) -> Witness {
            Witness {
                name: "near".to_owned(),
                to: self.to,
                key: VerifierKey::new(name(), SignatureKind::Cosignature, key().public()).unwrap(),
                latest: 0,
            }
        }
    }

    fn grown(store: &MemoryStore, lines: usize, what: &str) -> HeadRow {
        let note = txn::Note {
            now: Timestamp::from_millis(1_800_000_000_000),
            receipts: vec![entry(what); lines],
        };
        done(store, Txn::Note(note));
        store.newest_head().unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_record_that_only_grew_is_cosigned_again_and_again() {
        let fake = Fake::new().await;
        let (store, outward) = (MemoryStore::new(), Outward::new(vec![fake.to]));
        let mut witness = fake.asked();
        for lines in [1, 4, 300] {
            let head = grown(&store, lines, "x");
            let word = witness.show(&outward, &store, &head).await;
            let Word::Cosigned(cosigned) = word else {
                panic!("{word:?}");
            };
            let verified = cosigned
                .verify(&[log_key()], &[witness.key.clone()])
                .unwrap();
            assert_eq!(
                (verified.quorum(), verified.checkpoint().size()),
                (1, head.size)
            );
            // As after a restart: what it knows is asked for.
            witness.latest = 0;
        }
    }

    #[tokio::test]
    async fn an_older_record_and_another_one_are_contradicted() {
        let fake = Fake::new().await;
        let (store, outward) = (MemoryStore::new(), Outward::new(vec![fake.to]));
        let first = grown(&store, 3, "x");
        let second = grown(&store, 3, "x");
        let shown = fake.asked().show(&outward, &store, &second).await;
        assert!(matches!(shown, Word::Cosigned(_)), "{shown:?}");
        let older = fake.asked().show(&outward, &store, &first).await;
        assert_eq!(older, Word::Contradicts);
        for (lines, what) in [(6, "same size"), (9, "longer")] {
            let other = MemoryStore::new();
            let head = grown(&other, lines, what);
            let shown = fake.asked().show(&outward, &other, &head).await;
            assert_eq!(shown, Word::Contradicts, "{what}");
        }
        assert_eq!(fake.latest.lock().unwrap().unwrap().0, 6);
    }

    #[tokio::test]
    async fn nobody_there_is_no_word_about_the_record() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        drop(listener);
        let store = MemoryStore::new();
        let head = grown(&store, 3, "x");
        let mut witness = Witness {
            to,
            ..Fake::new().await.asked()
        };
        let word = witness.show(&Outward::new(vec![to]), &store, &head).await;
        assert!(matches!(word, Word::Silent(_)), "{word:?}");
    }
}
