"""An answer is lost, and the gate asks the destination by itself. The destination's own file counts the effects."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import peers
import pytest
from harness import PASSPHRASE, Lychgate, until
from raw import call, decision_of, wire

UNKNOWN = 'no_effect_when = { pointer = "/structuredContent/status", equals = "unknown" }'
BOOKED = 'effect_when = { pointer = "/structuredContent/status", equals = "booked" }'


def rule(trust: bool) -> str:
    trusted = ", trust_no_effect = true" if trust else ""
    asked = 'tool = "find_entry", arguments = { ref = "/ref" }'
    return f"read_back = {{ {asked}, {BOOKED}, {UNKNOWN}{trusted} }}"


class Desk:
    """A gate before a bank, and one call that is made again and again."""

    def __init__(self, gate: Lychgate, bank: peers.Bank, root: Path) -> None:
        self.gate, self.bank = gate, bank
        self.entry = {"path": str(root / "book.txt"), "ref": "r-1"}
        self.others = 0

    def configure(
        self, trust: bool, first: str = "300ms", deadline: str = "20s", patience: str = "1s"
    ) -> None:
        """What is asked when, and whether "no effect" is believed. `patience` is for a call's answer."""
        gate = self.gate
        text = gate.config.read_text("utf-8")
        most = "1s" if first.endswith("ms") else first
        text += f'\n[reconcile]\nfirst = "{first}"\nmost = "{most}"\ndeadline = "{deadline}"\n'
        put = [rule(trust), 'idempotency = "meta"', f'timeout = "{patience}"']
        pay = [rule(False), 'recipient = { text = ["/to"] }']
        for tool, lines in ("put_entry", put), ("pay", pay), ("find_entry", ['timeout = "1s"']):
            header = f"[servers.bank.tools.{tool}]"
            text = text.replace(header + "\n", "\n".join([header, *lines, ""]))
        gate.config.write_text(text, "utf-8")
        gate.run("apply", passphrase=PASSPHRASE)

    def put(self) -> dict:
        """The call, over a connection of its own."""
        with wire(self.gate, "bank") as client:
            client.handshake()
            return client.call("put_entry", self.entry)

    def lose(self, **manners: object) -> str:
        """A call whose answer is lost in this manner. Gives the act."""
        self.bank.behave(**manners)
        reply = self.put()
        found = decision_of(reply)
        assert reply["result"]["isError"] and found["state"] == "indeterminate", reply
        return found["act_id"]

    def act(self, act: str) -> dict:
        return self.gate.act(act)

    def becomes(self, act: str, state: str) -> None:
        until(lambda: self.act(act)["state"] == state, f"{act} being {state}")

    def looks(self, count: int) -> None:
        """Waits until the destination was asked that often more."""
        enough = len(self.bank.asked()) + count
        until(lambda: len(self.bank.asked()) >= enough, f"{count} look-ups")

    def puts(self) -> list[dict]:
        return [call for call in self.bank.calls() if call["name"] != "find_entry"]

    def refuses(self) -> None:
        """The call repeated now is refused, and nothing reaches the bank."""
        before = len(self.puts())
        assert decision_of(self.put())["code"] == "EF-063"
        assert len(self.puts()) == before


@pytest.fixture
def desk(gate: Lychgate, root: Path, tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "bank"
    folder.mkdir()
    bank = peers.Bank(folder)
    gate.add(
        "bank",
        bank.command(),
        ["--root", f"{root}:recoverable"],
        find_entry="INFORMATIONAL",
        put_entry="PERSISTENT_STATE_CHANGE",
        pay="FINANCIAL",
    )
    yield Desk(gate, bank, root)


def assert_told_once(desk: Desk) -> None:
    """The model calls again and is told that it took effect; only a call after that is one of its own."""
    before = len(desk.bank.effects())
    reply = desk.put()
    assert not reply["result"]["isError"], reply
    assert decision_of(reply)["state"] == "reconciled_effect", reply
    assert "took effect" in reply["result"]["content"][0]["text"]
    assert len(desk.bank.effects()) == before


def test_committed_and_the_connection_dropped(desk: Desk) -> None:
    desk.configure(trust=True, first="2s", patience="60s")
    act = desk.lose(gone="after")
    desk.bank.behave()
    desk.refuses()
    desk.becomes(act, "reconciled_effect")
    assert_told_once(desk)
    [look] = [one for one in desk.gate.acts() if one["agent"] == "lychgate-reconciler"]
    assert (look["state"], look["class"]) == ("effected", "INFORMATIONAL")
    assert len(desk.bank.effects()) == 1 and len(desk.puts()) == 1


def test_dropped_before_anything_was_done(desk: Desk) -> None:
    desk.configure(trust=True)
    act = desk.lose(gone="before")
    desk.bank.behave()
    desk.refuses()
    desk.becomes(act, "reconciled_no_effect")
    assert desk.bank.effects() == []
    assert desk.put()["result"]["content"][0]["text"] == "done"
    *_, retry = desk.gate.acts()
    assert (retry["state"], retry["retry_of"]) == ("effected", act)
    shown = desk.gate.json("ledger", "show", "--from", "0", "--limit", "1000")["records"]
    kinds = ("dispatched", "outcome")
    attempts = {
        (receipt["act"]["candidate_act_id"], receipt["kind"]): receipt["attempt"]
        for receipt in (line["receipt"] for line in shown)
        if receipt["kind"] in kinds
    }
    assert [attempts[id, kind] for id in (act, retry["id"]) for kind in kinds] == [1, 1, 2, 2]
    [first, second] = desk.puts()
    key = "dev.lychgate/idempotency-key"
    assert first["_meta"][key] == second["_meta"][key]
    assert len(desk.bank.effects()) == 1


def test_an_answer_that_comes_late_settles_its_act(desk: Desk) -> None:
    desk.configure(trust=True, first="60s", deadline="120s")
    desk.bank.behave(late=3)
    with wire(desk.gate, "bank") as client:
        client.handshake()
        found = decision_of(client.call("put_entry", desk.entry))
        assert found["state"] == "indeterminate"
        desk.refuses()
        desk.becomes(found["act_id"], "effected")
        desk.bank.behave()
        again = client.call("put_entry", desk.entry, 2)
        assert again["result"]["content"][0]["text"] == "done"
    assert desk.bank.asked() == []
    assert len(desk.bank.effects()) == 1 and len(desk.puts()) == 1


def test_an_effect_that_comes_late_is_not_taken_for_none(desk: Desk) -> None:
    # The destination works on it for longer than its answer may take; until then it truly has nothing.
    desk.configure(trust=True)
    desk.bank.behave(later=5)
    with wire(desk.gate, "bank") as client:
        client.handshake()
        act = decision_of(client.call("put_entry", desk.entry))["act_id"]
        desk.looks(2)
        assert desk.bank.effects() == []
        desk.refuses()
        until(desk.bank.effects, "the effect")
        until(lambda: desk.act(act)["state"] in ("effected", "reconciled_effect"), "its end")
        desk.bank.behave()
        client.call("put_entry", desk.entry, 2)
    assert len(desk.bank.effects()) == 1 and len(desk.puts()) == 1


def test_committed_and_never_answered(desk: Desk) -> None:
    desk.configure(trust=True)
    act = desk.lose(silent=True)
    desk.becomes(act, "reconciled_effect")
    assert_told_once(desk)
    assert len(desk.bank.effects()) == 1 and len(desk.puts()) == 1


def test_never_answers_a_look_up_either(desk: Desk) -> None:
    desk.configure(trust=True, deadline="4s")
    act = desk.lose(silent=True, mute=True)
    desk.refuses()
    # The deadline passes; a person must say.
    until(lambda: "still unknown" in desk.gate.logs(), "word for a person")
    assert desk.act(act)["state"] == "indeterminate"
    indeterminate = desk.gate.json("acts", "--state", "indeterminate")["acts"]
    assert [one["id"] for one in indeterminate] == [act], "a look-up is nobody's doubt"
    assert len(desk.bank.asked()) >= 2
    desk.bank.behave()
    desk.refuses()
    desk.gate.run("reconcile", act, "--effect", "--reason", "I saw it", passphrase=PASSPHRASE)
    assert len(desk.bank.effects()) == 1


def test_says_that_there_is_no_such_operation(desk: Desk) -> None:
    # Its word on the call alone is not enough: the catalogue does not know what its errors mean.
    desk.configure(trust=True)
    act = desk.lose(error="no such operation")
    desk.refuses()
    desk.becomes(act, "reconciled_no_effect")
    desk.bank.behave()
    assert desk.put()["result"]["content"][0]["text"] == "done"
    assert len(desk.bank.effects()) == 1


def test_without_trust_no_effect_releases_nothing(desk: Desk) -> None:
    desk.configure(trust=False, deadline="4s")
    act = desk.lose(gone="before")
    desk.bank.behave()
    desk.looks(3)
    desk.refuses()
    until(lambda: "still unknown" in desk.gate.logs(), "word for a person")
    assert desk.act(act)["state"] == "indeterminate"
    desk.refuses()
    desk.gate.run("reconcile", act, "--no-effect", "--reason", "not there", passphrase=PASSPHRASE)
    desk.put()
    assert desk.gate.acts()[-1]["retry_of"] == act
    assert len(desk.bank.effects()) == 1


def test_one_that_lies_is_not_believed_where_it_is_not_trusted(desk: Desk) -> None:
    desk.configure(trust=False, deadline="60s")
    act = desk.lose(gone="after", lie=True)
    desk.looks(3)
    desk.refuses()
    assert desk.act(act)["state"] == "indeterminate"
    # It thinks better of it.
    desk.bank.behave()
    desk.becomes(act, "reconciled_effect")
    assert_told_once(desk)
    assert len(desk.bank.effects()) == 1


def pay(desk: Desk) -> dict:
    """A payment that a person approves when asked."""
    with wire(desk.gate, "bank") as client:
        client.handshake()
        client.send(call(1, "pay", {"to": "alice", "ref": "r-9"}))
        for _ in range(100):
            if (reply := client.receive(patience=0.2)) is not None:
                return reply
            for ticket in desk.gate.pending():
                desk.gate.run("approve", ticket["id"], passphrase=PASSPHRASE)
    raise AssertionError("no answer")


def test_a_payment_is_never_released_by_its_destination(desk: Desk) -> None:
    text = desk.gate.config.read_text("utf-8")
    header = "[servers.bank.tools.pay]\n"
    trusting = text.replace(header, f"{header}{rule(True)}\n")
    desk.gate.config.write_text(trusting, "utf-8")
    refused = desk.gate.run("apply", passphrase=PASSPHRASE, status=2)
    assert "never trusted for a FINANCIAL" in refused.stderr
    desk.gate.config.write_text(text, "utf-8")
    desk.configure(trust=True, deadline="60s")
    desk.bank.behave(gone="after", lie=True)
    act = decision_of(pay(desk))["act_id"]
    desk.looks(4)
    assert desk.act(act)["state"] == "indeterminate"
    assert decision_of(pay(desk))["code"] == "EF-063"
    assert len(desk.bank.effects()) == 1 and len(desk.puts()) == 1


def test_a_gate_that_ends_in_between_goes_on_asking_at_its_next_start(desk: Desk) -> None:
    desk.configure(trust=True)
    act = desk.lose(gone="after", broken=True)
    desk.looks(2)
    desk.gate.kill()
    desk.bank.behave(mute=True)
    desk.refuses()
    desk.looks(1)
    # A gate that is told to stop leaves no look-up behind; the fixture looks for processes.
    desk.gate.run("gate", "stop")
    desk.bank.behave()
    assert desk.act(act)["state"] in ("indeterminate", "reconciled_effect")
    desk.becomes(act, "reconciled_effect")
    assert_told_once(desk)
    assert len(desk.bank.effects()) == 1 and len(desk.puts()) == 1


def test_a_server_that_was_exchanged_meanwhile_is_not_asked(desk: Desk) -> None:
    desk.configure(trust=True, first="3s")
    act = desk.lose(gone="before")
    text = desk.gate.config.read_text("utf-8")
    other = desk.bank.folder / "other"
    other.mkdir()
    changed = text.replace(f'"{desk.bank.folder}"', f'"{other}"')
    assert changed != text
    desk.gate.config.write_text(changed, "utf-8")
    desk.gate.run("apply", passphrase=PASSPHRASE)
    asked = len(desk.bank.asked())
    # Well past the first look-up's time.
    time.sleep(6)
    assert desk.act(act)["state"] == "indeterminate"
    assert len(desk.bank.asked()) == asked and not (other / "received.jsonl").exists()
