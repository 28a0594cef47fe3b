"""Workers: a planner hands a part of what it may do to a worker, and no more than that is ever done."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harness import BINARY, PASSPHRASE, Lychgate, assert_denied, text, until
from mcp import Client, StdioServerParameters
from peers import Notes

pytestmark = pytest.mark.anyio

READ = ["--tool", "notes/read_note", "--class", "INFORMATIONAL"]
WRITE = ["--tool", "notes/write_note", "--class", "PERSISTENT_STATE_CHANGE"]


@pytest.fixture
def deep(gate: Lychgate, notes: Notes) -> Lychgate:
    """Two hops are allowed."""
    written = gate.config.read_text("utf-8")
    assert written.count("max_depth = 0\n") == 1
    gate.config.write_text(written.replace("max_depth = 0\n", "max_depth = 2\n"), "utf-8")
    gate.run("apply", passphrase=PASSPHRASE)
    return gate


def delegate(gate: Lychgate, name: str, *options: str, status: int | None = 0) -> Path:
    out = gate.folder / f"{name}.json"
    gate.run("delegate", "--to", name, *options, "--out", str(out), status=status)
    return out


def delegate_asking(gate: Lychgate, name: str, *options: str) -> Path:
    """One that a person is asked about, and says yes to."""
    out = gate.folder / f"{name}.json"
    asking = subprocess.Popen(
        [BINARY, "delegate", "--to", name, *options, "--out", str(out)],
        env=gate.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    [ticket] = until(gate.pending, "the question")
    assert not out.exists()
    shown = gate.run("approve", ticket["id"], passphrase=PASSPHRASE).stdout
    _, said = asking.communicate(timeout=30)
    assert asking.returncode == 0, said
    assert ticket["id"] in said
    assert name in shown and "notes/" in shown, shown
    return out


@contextlib.asynccontextmanager
async def worker(gate: Lychgate, delegation: Path, by_variable: bool = False) -> AsyncIterator[Client]:
    arguments, environment = ["mcp", "notes"], dict(gate.environment)
    if by_variable:
        environment["LYCHGATE_DELEGATION"] = str(delegation)
    else:
        arguments += ["--delegation", str(delegation)]
    parameters = StdioServerParameters(command=BINARY, args=arguments, env=environment)
    async with Client(parameters, read_timeout_seconds=60) as client:
        yield client


async def test_a_worker_works_within_what_it_was_handed(deep: Lychgate, notes: Notes, root: Path) -> None:
    planner = delegate_asking(
        deep, "planner", *READ, *WRITE, "--destination", "root:root", "--depth", "1", "--acts", "9"
    )
    hand = delegate(deep, "reader", *READ, "--acts", "2", "--from", str(planner))
    assert (hand.stat().st_mode & 0o777) == 0o600
    old = {"path": str(root / "old.txt")}
    async with worker(deep, hand, by_variable=True) as client:
        assert not (await client.call_tool("read_note", old)).is_error
        # A tool, and a class, that it was not handed.
        assert_denied(await client.call_tool("write_note", old | {"content": "x"}), "EF-015")
        assert_denied(await client.call_tool("send_message", {"to": "a@b.org", "text": "x"}), "EF-015")
        assert not (await client.call_tool("read_note", old)).is_error
        assert_denied(await client.call_tool("read_note", old), "EF-051")
    assert notes.effects() == []
    acts = {act["agent"] for act in deep.acts()}
    assert acts == {"local-agent", "planner", "reader"}, acts
    # The planner itself may write, and only where it was sent.
    async with worker(deep, planner) as client:
        note = {"path": str(root / "new.txt"), "content": "by the planner"}
        assert not (await client.call_tool("write_note", note)).is_error
        away = {"path": str(deep.folder / "away.txt"), "content": "x"}
        assert_denied(await client.call_tool("write_note", away), "EF-051")
    assert (root / "new.txt").read_text() == "by the planner"


async def test_nothing_grows_on_the_way_down(deep: Lychgate, notes: Notes) -> None:
    planner = delegate(deep, "planner", *READ, "--depth", "1")
    for more in (
        WRITE,
        ["--tool", "notes", "--class", "INFORMATIONAL"],
        ["--tool", "notes/read_note", "--class", "COMMUNICATION"],
        [*READ, "--depth", "1"],
        [*READ, "--expires", "31m"],
    ):
        made = delegate(deep, "greedy", *more, "--from", str(planner), status=1)
        assert not made.exists()
    assert deep.pending() == []
    # Deeper than the configuration lets anybody go.
    delegate(deep, "deep", *READ, "--depth", "2", status=1)
    worker_hand = delegate(deep, "worker", *READ, "--from", str(planner))
    delegate(deep, "third", *READ, "--from", str(worker_hand), status=1)


async def test_a_changed_copy_is_no_way_in(deep: Lychgate, notes: Notes, root: Path) -> None:
    hand = delegate(deep, "worker", *READ)
    for change in (
        lambda file: file["chain"][0]["grant"].update(tools=["notes"]),
        lambda file: file["chain"][0]["holder"].update(uid=4242),
        lambda file: file.pop("secret"),
        lambda file: file["chain"].append(file["chain"][0]),
    ):
        file = json.loads(hand.read_text())
        change(file)
        copy = deep.folder / "copy.json"
        copy.write_text(json.dumps(file))
        done = deep.run("mcp", "notes", "--delegation", str(copy), status=1)
        assert "EF-0" in done.stderr, done.stderr
    async with worker(deep, hand) as client:
        assert not (await client.call_tool("read_note", {"path": str(root / "old.txt")})).is_error


async def test_verified_offline_by_whoever_has_the_keys(deep: Lychgate) -> None:
    planner = delegate(deep, "planner", *READ, "--depth", "1")
    hand = delegate(deep, "worker", *READ, "--from", str(planner))
    trust = deep.folder / "trust.json"
    trust.write_text(deep.run("keys", "export").stdout)
    verify = ["delegate", "verify", "--trust", str(trust)]
    said = deep.run(*verify, str(hand)).stdout
    assert "planner → worker" in said and "local-agent → planner" in said, said
    file = json.loads(hand.read_text())
    del file["secret"]
    hand.write_text(json.dumps(file))
    assert json.loads(deep.run(*verify, str(hand), "--json").stdout)["holds"] is True
    file["chain"][1]["grant"]["budget"]["acts"] = 5
    hand.write_text(json.dumps(file))
    assert "link 2" in deep.run(*verify, str(hand), status=1).stderr
    late = ["--at", "2099-01-01T00:00:00.000Z"]
    assert "ended" in deep.run(*verify, str(planner), *late, status=1).stderr
    listed = deep.json("delegate", "list")["delegations"]
    assert [one["link"]["child_agent_id"] for one in listed] == ["worker", "planner"]


async def test_the_report_knows_how_deep_it_went(deep: Lychgate, root: Path) -> None:
    hand = delegate(deep, "worker", *READ)
    async with worker(deep, hand) as client:
        assert "as it was" in text(await client.call_tool("read_note", {"path": str(root / "old.txt")}))
    report = deep.json("report")
    [depth] = [test for test in report["tests"] if test["test"] == 3]
    assert depth["verdict"] == "held", depth
    assert depth["examined"]["deepest"] == 1, depth


async def test_an_envelope_is_listed_and_closed(deep: Lychgate, notes: Notes, root: Path) -> None:
    deep.configure("version = 1", 'provenance.vouch = "user"')
    deep.configure("[servers.notes.tools.read_note]", 'envelope = { acts = 50, lasts = "10m" }')
    old = {"path": str(root / "old.txt")}
    async with deep.client("notes") as client:
        for _ in range(3):
            assert not (await client.call_tool("read_note", old)).is_error
        [open_one] = deep.json("envelopes")["envelopes"]
        assert (open_one["function"], open_one["used"], open_one["acts"]) == ("read_note", 2, 50)
        assert "read_note" in deep.run("envelopes").stdout
        assert "No envelope" in deep.run("envelopes", "--close", open_one["id"]).stdout
        deep.run("envelopes", "--close", open_one["id"], status=1)
        assert not (await client.call_tool("read_note", old)).is_error
        [again] = deep.json("envelopes")["envelopes"]
        assert again["id"] != open_one["id"] and again["used"] == 0
    kinds = [line["receipt"]["kind"] for line in deep.json("ledger", "show")["records"]]
    assert kinds.count("envelope_opened") == 2 and kinds.count("envelope_closed") == 1, kinds
