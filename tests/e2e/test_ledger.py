"""The record for an auditor: shown, proven, exported, checked; and nothing in it can be changed unseen."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import peers
import pytest
from harness import BINARY, PASSPHRASE, Lychgate
from test_verify import Both

VERIFY = Path(__file__).parents[2] / "examples" / "verify.py"


def records(gate: Lychgate) -> list[dict]:
    return gate.json("ledger", "show", "--from", "0", "--limit", "1000")["records"]


def of_kind(gate: Lychgate, kind: str) -> list[dict]:
    told = [line for line in records(gate) if line["receipt"] is not None]
    return [line for line in told if line["receipt"]["kind"] == kind]


async def test_every_step_is_shown_and_can_be_proven(used: Lychgate, tmp_path: Path) -> None:
    shown = records(used)
    assert [line["index"] for line in shown] == list(range(len(shown)))
    kinds = [line["receipt"]["kind"] for line in shown]
    assert kinds.count("dispatched") == kinds.count("outcome") == 3 and "denied" in kinds
    table = used.run("ledger", "show").stdout
    assert "write_note" in table and "secret" not in table

    trust = used.run("keys", "export").stdout.encode()
    both = Both(tmp_path)
    for line in shown:
        proof = used.run("ledger", "prove", str(line["index"])).stdout.encode()
        assert both.proven(proof, trust), line
        assert json.loads(json.loads(proof)["receipt"]) == line["receipt"]
    changed = proof.replace(b"finality", b"advisory", 1)
    assert changed != proof and not both.proven(changed, trust)


async def test_a_receipt_holds_what_an_auditor_asks_for(used: Lychgate) -> None:
    dispatched = of_kind(used, "dispatched")[0]["receipt"]
    act = {"candidate_act_id", "candidate_act_digest", "arguments_commitment", "destination_commitment"}
    assert act | {"tool_id", "function_id", "consequence_class"} <= dispatched["act"].keys()
    wanted = {"at", "gate_id", "epochs", "policy_digest", "predicates", "state"}
    wanted |= {"evidence_digest", "authority_id", "authority_digest", "effect_id", "enforcement", "isolation"}
    assert wanted <= dispatched.keys()
    assert len(dispatched["predicates"]) == 10 and all(dispatched["predicates"].values())
    outcome = of_kind(used, "outcome")[0]["receipt"]
    for name in ("authority_id", "effect_id"):
        assert outcome[name] == dispatched[name], name
    assert outcome["act"]["candidate_act_id"] == dispatched["act"]["candidate_act_id"]
    [denied] = of_kind(used, "denied")
    assert denied["receipt"]["code"].startswith("EF-") and "policy_digest" in denied["receipt"]


async def test_an_opened_receipt_shows_where_it_went_and_a_closed_one_does_not(
    used: Lychgate, root: Path, tmp_path: Path
) -> None:
    act = next(act for act in used.acts() if act["state"] == "effected")
    file, trust = tmp_path / "mailed.json", tmp_path / "trust.json"
    trust.write_text(used.run("keys", "export").stdout)
    used.run("ledger", "prove", act["id"], "--out", str(file))
    assert "old.txt" not in file.read_text() and json.loads(file.read_text())["openings"] == []

    told = used.run("ledger", "prove", act["id"][-12:], "--open", "--out", str(file))
    assert "is of this act too: dispatched" in told.stderr
    used.run("gate", "stop")
    # No gate and no state folder from here on.
    away = tmp_path / "away"
    used.state.rename(away)
    try:
        proven = json.loads(used.run("verify", str(file), "--trust", str(trust), "--json").stdout)
        assert used.status() is None and not used.state.exists()
        assert proven["receipt"]["state"] == "effected"
        assert proven["opened"]["arguments_digest"] == act["arguments_digest"]
        assert str(root) in json.dumps(proven["opened"]["destination"])
        command = [sys.executable, "-I", str(VERIFY), str(file), "--trust", str(trust)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert str(root) in second.stdout
    finally:
        away.rename(used.state)


async def test_an_export_is_whole_and_a_changed_one_is_not(used: Lychgate, tmp_path: Path) -> None:
    trust = tmp_path / "trust.json"
    trust.write_text(used.run("keys", "export").stdout)
    whole, redacted = tmp_path / "whole", tmp_path / "redacted"
    used.run("ledger", "export", str(whole))
    used.run("ledger", "export", str(redacted), "--redact")
    used.run("ledger", "export", str(whole), status=2)
    verify = ["ledger", "verify", "--trust", str(trust), "--json"]
    used.run("gate", "stop")
    for folder in (whole, redacted):
        found = json.loads(used.run(*verify, "--dir", str(folder)).stdout)
        assert found["whole"] and found["size"] == found["signed"]
    assert not list(redacted.rglob("entries")), "a redacted export holds hashes only"

    [bundle] = [path for path in (whole / "tile" / "entries").rglob("*") if path.is_file()]
    [hashes] = [path for path in (whole / "tile" / "0").rglob("*") if path.is_file()]
    for path in (bundle, hashes, whole / "checkpoint"):
        before = path.read_bytes()
        path.write_bytes(before[:100] + bytes([before[100] ^ 1]) + before[101:])
        used.run(*verify, "--dir", str(whole), status=1)
        path.write_bytes(before)
    bundle.write_bytes(bundle.read_bytes().replace(b'"kind":"denied"', b'"kind":"outcom"', 1))
    done = used.run(*verify, "--dir", str(whole), status=1)
    assert json.loads(done.stdout)["finding"] == "edited"
    used.run(*verify, "--dir", str(redacted))
    assert used.status() is None, "an audit starts no gate"


def anchor_of(gate: Lychgate) -> Path:
    return Path(gate.json("ledger", "anchor")["place"])


def edit(database: sqlite3.Connection) -> None:
    [(data,)] = database.execute("SELECT bytes FROM record WHERE idx = 4")
    other = data.replace(b"finality", b"advisory", 1)
    database.execute("UPDATE record SET bytes = ? WHERE idx = 4", (other,))


def edit_with_its_hash(database: sqlite3.Connection) -> None:
    [(data,)] = database.execute("SELECT bytes FROM record WHERE idx = 4")
    other = data.replace(b"finality", b"advisory", 1)
    leaf = hashlib.sha256(b"\0" + other).digest()
    database.execute("UPDATE record SET bytes = ?, leaf = ? WHERE idx = 4", (other, leaf))


def drop(database: sqlite3.Connection) -> None:
    database.execute("DELETE FROM record WHERE idx = 4")


def swap(database: sqlite3.Connection) -> None:
    database.execute("UPDATE record SET idx = -1 WHERE idx = 4")
    database.execute("UPDATE record SET idx = 4 WHERE idx = 5")
    database.execute("UPDATE record SET idx = 5 WHERE idx = -1")


def truncate(database: sqlite3.Connection) -> None:
    database.execute("DELETE FROM record WHERE idx > 4")


def truncate_with_its_heads(database: sqlite3.Connection) -> None:
    database.execute("DELETE FROM record WHERE idx > 4")
    database.execute("DELETE FROM recent WHERE size > 5")
    database.execute("DELETE FROM heads WHERE size > 5")


@pytest.mark.parametrize(
    ("tamper", "finding"),
    [
        (edit, "edited"),
        (edit_with_its_hash, "rewritten"),
        (drop, "missing"),
        (swap, "rewritten"),
        (truncate, "truncated"),
        (truncate_with_its_heads, "rolled_back"),
    ],
)
async def test_the_first_difference_is_named(
    used: Lychgate, tamper: Callable[[sqlite3.Connection], None], finding: str
) -> None:
    assert used.json("ledger", "verify")["whole"]
    used.run("gate", "stop")
    clean = used.json("ledger", "verify")
    assert clean["whole"] and clean["anchored"] == clean["size"]
    database = used.state / "store.db"
    with closing(sqlite3.connect(database)) as connection:
        tamper(connection)
        connection.commit()
    done = used.run("ledger", "verify", "--json", status=1)
    found = json.loads(done.stdout)
    assert not found["whole"] and found["finding"] == finding, found
    assert found["record"] <= 5, found
    assert found["reason"] in done.stderr
    assert used.status() is None, "an audit starts no gate"


async def test_a_restored_older_folder_is_found_and_accepted_only_by_the_approver(
    used: Lychgate, root: Path, tmp_path: Path
) -> None:
    used.run("gate", "stop")
    backup = tmp_path / "backup"
    shutil.copytree(used.state, backup)
    async with used.client("notes") as client:
        await client.call_tool("write_note", {"path": str(root / "later.txt"), "content": "later"})
    used.run("gate", "stop")
    shutil.rmtree(used.state)
    shutil.copytree(backup, used.state)

    done = used.run("ledger", "verify", "--json", status=1)
    assert json.loads(done.stdout)["finding"] == "rolled_back"
    assert "EF-080" in used.run("acts", status=3).stderr
    done = used.run("ledger", "anchor", "--json", status=1)
    assert json.loads(done.stdout)["difference"] == "rolled_back"
    accept = ["ledger", "anchor", "--accept", "--reason", "the disk failed"]
    used.run(*accept, passphrase="a guess", status=1)
    assert "EF-080" in used.run("acts", status=3).stderr
    used.run(*accept, passphrase=PASSPHRASE)
    used.run("acts")
    assert used.json("ledger", "verify")["whole"]
    assert used.json("ledger", "anchor")["agrees"]
    used.run("gate", "stop")
    used.run(*accept, passphrase=PASSPHRASE, status=1)


@pytest.fixture
async def long(gate: Lychgate, root: Path, notes: peers.Notes) -> Lychgate:
    """A gate whose record has more than two entry bundles."""
    async with gate.client("notes") as client:
        for number in range(180):
            await client.call_tool("write_note", {"path": str(root / f"{number}.txt"), "content": "x"})
        for _ in range(170):
            await client.call_tool("no_such_tool", {})
    assert gate.json("ledger", "show", "--limit", "1")["size"] > 520
    return gate


async def test_old_receipts_go_into_an_archive_and_no_proof_is_lost(long: Lychgate, tmp_path: Path) -> None:
    archive, trust = tmp_path / "archive", long.run("keys", "export").stdout.encode()
    both = Both(tmp_path)
    mailed = long.run("ledger", "prove", "3").stdout.encode()
    kept = tmp_path / "head.txt"
    shutil.copy(anchor_of(long), kept)
    prune = ["ledger", "prune", "--archive", str(archive), "--below"]

    def pruned(below: int) -> dict:
        return json.loads(long.run(*prune, str(below), "--json", passphrase=PASSPHRASE).stdout)

    long.run(*prune, "100000", passphrase=PASSPHRASE, status=2)
    inside = ["ledger", "prune", "--archive", str(long.state / "archive"), "--below", "300"]
    long.run(*inside, passphrase=PASSPHRASE, status=2)
    # Without the approver nothing is dropped, though all of it lies in the archive by then.
    long.run(*prune, "300", passphrase="a guess", status=1)
    assert long.json("ledger", "verify")["archived"] == 0
    # So does a client that dies before it has asked; and the next one takes up what it left.
    read, write = os.pipe()
    command = [BINARY, *prune, "520", "--passphrase-fd", str(read)]
    process = subprocess.Popen(command, env=long.environment, pass_fds=[read], stderr=subprocess.PIPE)
    assert b"read back" in process.stderr.readline()
    process.kill()
    process.communicate(timeout=20)
    os.close(read)
    os.close(write)
    assert (archive / "tile" / "entries" / "001").exists()
    assert long.json("ledger", "verify")["archived"] == 0

    assert (pruned(300)["from"], pruned(520)["below"]) == (0, 512)
    assert pruned(520)["from"] is None
    receipts = [line["receipt"] for line in of_kind(long, "pruned")]
    assert [receipt["detail"].split(" ")[0] for receipt in receipts] == ["lines:0-255", "lines:256-511"]
    assert all(receipt["approver_key"] for receipt in receipts)
    with closing(sqlite3.connect(long.state / "store.db")) as connection:
        left = "SELECT count(*) FROM record WHERE bytes IS NOT NULL AND idx < 512"
        assert connection.execute(left).fetchone() == (0,)

    assert both.proven(mailed, trust)
    long.run("ledger", "prove", "3", status=1)
    assert both.proven(long.run("ledger", "prove", "515").stdout.encode(), trust)
    long.run("gate", "stop")
    verify = ["ledger", "verify", "--checkpoint", str(kept)]
    assert long.json(*verify)["archived"] == 512
    assert "512 of them, by their hash alone" in long.run(*verify).stdout
    assert long.json(*verify, "--archive", str(archive))["archived"] == 0
    whole = tmp_path / "whole"
    long.run("ledger", "export", str(whole))
    exported = [*verify, "--dir", str(whole)]
    assert long.json(*exported)["archived"] == 512
    assert long.json(*exported, "--archive", str(archive))["archived"] == 0
    long.run("gate", "stop")

    bundle = archive / "tile" / "entries" / "001"
    before = bundle.read_bytes()
    bundle.write_bytes(before.replace(b'"effected"', b'"affected"', 1))
    found = json.loads(long.run(*verify, "--archive", str(archive), "--json", status=1).stdout)
    assert found["finding"] == "edited" and 256 <= found["record"] < 512
    bundle.write_bytes(before[:-9])
    assert "of the archive" in long.run(*verify, "--archive", str(archive), status=1).stderr
    bundle.unlink()
    assert long.json(*verify, "--archive", str(archive))["archived"] == 256
    # A gate starts on what is left, and its acts go on.
    assert len(long.acts()) > 180


async def test_what_the_archive_holds_otherwise_is_not_overwritten(long: Lychgate, tmp_path: Path) -> None:
    bundle = tmp_path / "archive" / "tile" / "entries" / "000"
    bundle.parent.mkdir(parents=True)
    bundle.write_bytes(b"somebody else's")
    prune = ["ledger", "prune", "--archive", str(tmp_path / "archive"), "--below", "512"]
    assert "something else" in long.run(*prune, passphrase=PASSPHRASE, status=1).stderr
    assert bundle.read_bytes() == b"somebody else's"
    assert long.json("ledger", "verify")["archived"] == 0


async def test_a_head_kept_elsewhere_is_compared(used: Lychgate, tmp_path: Path) -> None:
    used.run("gate", "stop")
    kept = tmp_path / "head.txt"
    shutil.copy(anchor_of(used), kept)
    async with used.client("notes") as client:
        await client.call_tool("no_such_tool", {})
    clean = used.json("ledger", "verify", "--checkpoint", str(kept))
    assert clean["anchored_heads"] == 2
    kept.write_text(kept.read_text().replace("\n", "x\n", 1))
    used.run("ledger", "verify", "--checkpoint", str(kept), status=1)
