//! A record that is written line by line, and exported with a head over it.

use std::path::Path;

use lychgate_core::id::{ActId, AuthorityId, EffectId, EvidenceId, GateId, TicketId};
use lychgate_core::{Digest, Timestamp, jcs, json};
use lychgate_keys::{Role, SigningKey, TrustBundle};
use lychgate_ledger::tiles::{TileKind, push_entry};
use lychgate_ledger::{Checkpoint, SignedCheckpoint, Tile, TileBuilder, leaf_hash};
use lychgate_store::Entry;

pub(crate) struct Record {
    lines: Vec<Vec<u8>>,
    gate: u8,
    /// As it stands between the quotation marks of a JSON text.
    pub(crate) function: String,
    class: &'static str,
    /// Seconds from which the numbers of acts count.
    from: u64,
    /// The configuration that everything stands under.
    policy: String,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            lines: Vec::new(),
            gate: 1,
            function: "transfer".to_owned(),
            class: "FINANCIAL",
            from: 0,
            policy: digest(200),
        }
    }
}

/// A second of the record.
pub(crate) fn at(second: u64) -> Timestamp {
    let start: Timestamp = "2026-11-02T07:00:00.000Z".parse().unwrap();
    Timestamp::from_millis(start.as_millis() + second * 1000)
}

impl Record {
    /// Under this configuration, from a moment on.
    pub(crate) fn under(policy: &Digest, from: Timestamp) -> Self {
        let policy = jcs::to_bytes(&json::to_value(policy).unwrap());
        Self {
            policy: String::from_utf8(policy).unwrap(),
            from: from.since(at(0)).as_secs(),
            ..Self::default()
        }
    }

    /// As a store takes them.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entry = |bytes: &Vec<u8>| Entry {
            leaf: leaf_hash(bytes),
            bytes: bytes.clone(),
        };
        self.lines.iter().map(entry).collect()
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.lines.push(text.as_bytes().to_vec());
    }

    pub(crate) fn push(&mut self, kind: &str, second: u64, more: &str) {
        let comma = if more.is_empty() { "" } else { "," };
        let gate = GateId::new(at(0), [self.gate; 10]);
        let at = at(self.from + second);
        let policy = &self.policy;
        self.line(&format!(
            r#"{{"version":"1.0","object_type":"validation_receipt","kind":"{kind}","at":"{at}","gate_id":"{gate}",
            "epochs":{{"policy_epoch":1,"authority_epoch":0,"revocation_epoch":0}},"policy_digest":{policy},
            "enforcement":"finality","isolation":"same-user","approver":"key"{comma}{more}}}"#
        ));
    }

    fn step(&mut self, kind: &str, n: u64, depth: u32, state: &str, more: &str) {
        let comma = if more.is_empty() { "" } else { "," };
        let (act, function, class) = (self.act(n), &self.function, self.class);
        let more = format!(
            r#""act":{{"candidate_act_id":"{act}","agent_id":"agent","delegation_depth":{depth},"tool_id":"bank",
            "function_id":"{function}","consequence_class":"{class}","vouched":false}},"state":"{state}"{comma}{more}"#
        );
        self.push(kind, n, &more);
    }

    fn act(&self, n: u64) -> ActId {
        ActId::new(at(self.from + n), ten(n))
    }

    fn pieces(&self, n: u64, without: &str) -> String {
        let (time, random) = (at(self.from + n), ten(n));
        let pieces = [
            (
                "evidence_id",
                format!("\"{}\"", EvidenceId::new(time, random)),
            ),
            ("evidence_digest", digest(1)),
            (
                "authority_id",
                format!("\"{}\"", AuthorityId::new(time, random)),
            ),
            ("authority_digest", digest(2)),
            ("verification_digest", digest(3)),
            ("effect_id", format!("\"{}\"", EffectId::new(time, random))),
        ];
        let pieces = pieces.iter().filter(|(name, _)| !without.contains(name));
        let pieces = pieces.map(|(name, value)| format!("\"{name}\":{value}"));
        pieces.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn dispatched_without(&mut self, n: u64, without: &str, depth: u32) {
        let pieces = self.pieces(n, without);
        self.step("dispatched", n, depth, "dispatched", &pieces);
    }

    pub(crate) fn dispatched(&mut self, n: u64) {
        self.dispatched_without(n, "", 0);
    }

    pub(crate) fn outcome(&mut self, n: u64, state: &str) {
        let named = self.pieces(
            n,
            "evidence_id evidence_digest authority_digest verification_digest",
        );
        self.step("outcome", n, 0, state, &named);
    }

    pub(crate) fn whole(&mut self, n: u64) {
        self.dispatched(n);
        self.outcome(n, "effected");
    }

    pub(crate) fn denied(&mut self, n: u64, code: &str) {
        self.step("denied", n, 0, "refused", &format!("\"code\":\"{code}\""));
    }

    pub(crate) fn advised(&mut self, n: u64) {
        self.step("dispatched", n, 0, "dispatched", "");
        let last = self.lines.pop().unwrap();
        let last = String::from_utf8(last)
            .unwrap()
            .replace("\"finality\"", "\"advisory\"");
        self.line(&last);
    }

    fn asked(&mut self, n: u64, waited: u64, answer: &str) {
        let ticket = format!(
            "\"ticket_id\":\"{}\"",
            TicketId::new(at(self.from + n), ten(n))
        );
        let more = format!("\"code\":\"EF-070\",{ticket}");
        self.step("escalated", n, 0, "escalated", &more);
        self.push(answer, n + waited, &ticket);
        match answer {
            "approved" => self.whole(n),
            _ => self.denied(n, "EF-071"),
        }
    }

    /// Writes `record` and `trust.json` into a folder.
    pub(crate) fn export(&self, folder: &Path) {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let mut trust = TrustBundle::new();
        trust.add(Role::Ledger, key.public(), at(0)).unwrap();
        std::fs::write(folder.join("trust.json"), trust.to_bytes().unwrap()).unwrap();
        let record = folder.join("record");
        let _ = std::fs::remove_dir_all(&record);
        let put = |name: &str, bytes: &[u8]| {
            let path = record.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let mut tree = TileBuilder::new();
        for line in &self.lines {
            tree.append(leaf_hash(line), |tile, hashes| {
                put(&tile.to_string(), hashes.as_flattened())
            });
        }
        for (tile, hashes) in tree.partial() {
            put(&tile.to_string(), hashes.as_flattened());
        }
        let size = self.lines.len() as u64;
        for tile in Tile::all(size).take_while(|tile| tile.kind() == TileKind::Entries) {
            let mut bytes = Vec::new();
            let start = tile.start_index() as usize;
            let end = start + usize::from(tile.width());
            self.lines[start..end]
                .iter()
                .for_each(|line| push_entry(&mut bytes, line).unwrap());
            put(&tile.to_string(), &bytes);
        }
        let head = Checkpoint::new("lychgate.example/gate", size, tree.frontier().root()).unwrap();
        let head = SignedCheckpoint::sign(head, &key).unwrap();
        put("checkpoint", head.to_string().as_bytes());
    }
}

fn digest(n: u8) -> String {
    let digest = json::to_value(&Digest::sha256(&[n])).unwrap();
    String::from_utf8(jcs::to_bytes(&digest)).unwrap()
}

fn ten(n: u64) -> [u8; 10] {
    let mut ten = [0; 10];
    ten[2..].copy_from_slice(&n.to_be_bytes());
    ten
}

/// Four weeks of a gate that is in use: working days, a flood of denials, a crash, and when asked for, violations.
pub(crate) fn month(broken: bool) -> Record {
    let mut record = Record::default();
    let mut random = 7u64;
    let mut dice = |sides: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % sides
    };
    let kinds = [
        ("read_file", "INFORMATIONAL"),
        ("write_file", "PERSISTENT_STATE_CHANGE"),
        ("send_mail", "COMMUNICATION"),
        ("transfer", "FINANCIAL"),
    ];
    for day in (0..28).filter(|day| day % 7 < 5) {
        record.gate += 1;
        record.from = day * 86_400;
        record.push("started", 0, "");
        let hours = 9 * 3600;
        let mut second = 60;
        while second < hours {
            let pick = dice(20) as usize;
            let (function, class) = kinds[[0, 0, 0, 0, 0, 1, 1, 1, 2, 3][pick / 2]];
            (record.function, record.class) = (function.to_owned(), class);
            match dice(60) {
                0 => record.asked(second, 20 + dice(900), "approved"),
                1 => record.asked(second, 5 + dice(200), "disapproved"),
                2 => record.denied(second, "EF-011"),
                3..=5 => record.denied(second, ["EF-015", "EF-012", "EF-020"][dice(3) as usize]),
                6 => {
                    record.dispatched(second);
                    record.outcome(second, "indeterminate");
                    if dice(3) > 0 {
                        record.outcome(second, "effected");
                    }
                }
                7 | 8 => {
                    record.dispatched(second);
                    record.outcome(second, "failed");
                }
                _ => record.whole(second),
            }
            second += 30 + dice(1500);
            if day == 10 && (4 * 3600..5 * 3600).contains(&second) {
                (0..120).for_each(|n| record.denied(second + n, "EF-015"));
                second += 200;
            }
            if day == 17 && second > 6 * 3600 {
                break;
            }
        }
        if broken && day == 15 {
            record.denied(second, "EF-011");
            record.dispatched_without(second + 5, "verification_digest", 0);
            record.outcome(second + 5, "effected");
        }
        if broken && day == 24 {
            record.whole(second);
            record.dispatched(second);
            record.dispatched_without(second + 9, "evidence_id evidence_digest", 0);
            record.outcome(second + 9, "effected");
            record.outcome(second + 30, "effected");
            record.advised(second + 60);
        }
        // One day it is killed.
        if day != 17 {
            record.push("stopped", second.max(hours), "");
        }
    }
    record
}
