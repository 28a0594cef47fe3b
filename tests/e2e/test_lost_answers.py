"""An answer is lost after the effect, and somebody calls again. The server's own log counts the effects."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import PASSPHRASE, Lychgate, until
from peers import Notes
from raw import MODERN, Wire, call, decision_of, wire



def note(root: Path, content: str = "once") -> dict:
    return {"path": str(root / "note.txt"), "content": content}


def told(reply: dict) -> str:
    return reply["result"]["content"][0]["text"]


def write(gate: Lychgate, root: Path, **more: str) -> dict:
    """One call over a connection of its own."""
    with wire(gate, "notes") as client:
        client.handshake()
        return client.call("write_note", note(root, **more))


def assert_unknown(reply: dict) -> str:
    """The model is told that nobody knows, and not to repeat it. Gives the act's id."""
    assert reply["result"]["isError"], reply
    found = decision_of(reply)
    assert found["state"] == "indeterminate" and found["retryable"] is False, reply
    assert "unknown" in told(reply) and found["act_id"] in told(reply), reply
    return found["act_id"]


def assert_unresolved(reply: dict) -> None:
    assert reply["result"]["isError"] and decision_of(reply)["code"] == "EF-063", reply


def assert_written(reply: dict) -> None:
    assert not reply["result"].get("isError") and told(reply) == "The note is written.", reply


def lose_an_answer(gate: Lychgate, notes: Notes, root: Path) -> str:
    """The server has the effect and ends. Gives the act."""
    notes.behave("--die-after-call")
    act = assert_unknown(write(gate, root))
    assert len(notes.effects()) == 1
    notes.behave()
    return act


def only_act(gate: Lychgate, state: str) -> dict:
    """Waits until the one act there is stands so."""

    def look() -> dict | None:
        acts = gate.acts()
        assert len(acts) <= 1, acts
        return acts[0] if acts and acts[0]["state"] == state else None

    return until(look, f"an act that is {state}")


def reconcile(gate: Lychgate, act: str, verdict: str) -> None:
    gate.run("reconcile", act, verdict, "--reason", "looked at the disk", passphrase=PASSPHRASE)


def test_answer_lost_on_the_way_back_and_the_call_repeated_by_a_new_connection(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    act = lose_an_answer(gate, notes, root)
    assert gate.act(act)["state"] == "indeterminate"
    for _ in range(2):
        assert_unresolved(write(gate, root))
    assert len(notes.effects()) == 1 and len(notes.calls()) == 1
    # Another call is another act, and reads are exempt.
    assert_written(write(gate, root, content="another"))
    with wire(gate, "notes") as client:
        client.handshake()
        read = client.call("read_note", {"path": note(root)["path"]})
        assert told(read) == "another"
    assert_unresolved(write(gate, root))


def test_after_no_effect_the_call_runs_again_and_names_what_it_repeats(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    act = lose_an_answer(gate, notes, root)
    reconcile(gate, act, "--no-effect")
    assert_written(write(gate, root))
    assert len(notes.effects()) == 2
    *_, again = gate.acts()
    assert (again["state"], again["retry_of"]) == ("effected", act)
    assert gate.act(act)["state"] == "reconciled_no_effect"
    # It is repeated once; what comes after is a new act.
    assert_written(write(gate, root))
    assert gate.acts()[-1]["retry_of"] is None


def test_after_effect_an_equal_call_is_a_new_act(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    act = lose_an_answer(gate, notes, root)
    reconcile(gate, act, "--effect")
    assert_written(write(gate, root))
    assert len(notes.effects()) == 2
    *_, again = gate.acts()
    assert (again["state"], again["retry_of"]) == ("effected", None)
    assert gate.act(act)["state"] == "reconciled_effect"


def test_only_the_approver_says_what_became_of_an_act(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    act = lose_an_answer(gate, notes, root)
    verdict = ["reconcile", act, "--no-effect", "--reason", "please"]
    assert gate.run(*verdict, status=None).returncode != 0
    gate.run(*verdict, passphrase=PASSPHRASE + "!", status=1)
    assert_unresolved(write(gate, root))
    reconcile(gate, act, "--no-effect")
    # A verdict stands: there is nothing in doubt any more.
    opposite = ["reconcile", act, "--effect", "--reason", "no, it was there"]
    gate.run(*opposite, passphrase=PASSPHRASE, status=1)
    assert len(notes.effects()) == 1


def test_a_late_answer_settles_the_act_and_is_what_the_next_call_gets(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    gate.configure("[servers.notes]", 'timeout = "1s"')
    notes.behave("--late=2500")
    with wire(gate, "notes") as client:
        client.handshake()
        act = assert_unknown(client.call("write_note", note(root)))
        assert gate.act(act)["state"] == "indeterminate"
        assert_unresolved(client.call("write_note", note(root), 2))
        until(lambda: gate.act(act)["state"] == "effected", "the late answer")
        assert gate.act(act)["undelivered"]
        notes.behave()
        assert_written(client.call("write_note", note(root), 3))
        assert len(notes.effects()) == 1 and len(notes.calls()) == 1
        until(lambda: not gate.act(act)["undelivered"], "the answer's delivery")
        assert_written(client.call("write_note", note(root), 4))
        assert len(notes.effects()) == 2


def test_a_client_that_is_killed_before_its_answer_gets_it_when_it_calls_again(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    notes.behave("--late=1000")
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "write_note", note(root)))
        until(notes.effects, "the effect")
        client.process.kill()
    # While the first is under way nobody knows yet.
    assert_unresolved(write(gate, root))
    until(lambda: gate.states().count("effected"), "the answer to nobody")
    notes.behave()
    assert_written(write(gate, root))
    assert len(notes.effects()) == 1 and len(notes.calls()) == 1
    until(lambda: not any(act["undelivered"] for act in gate.acts()), "the delivery")
    assert_written(write(gate, root))
    assert len(notes.effects()) == 2


def test_an_answer_nobody_took_out_of_the_pipe_is_not_delivered(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "write_note", note(root)))
        until(lambda: "effected" in gate.states(), "the effect")
        assert only_act(gate, "effected")["undelivered"]
        client.process.kill()
    assert_written(write(gate, root))
    assert len(notes.effects()) == 1


def test_a_recorded_answer_outlives_the_gate(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "write_note", note(root)))
        only_act(gate, "effected")
        client.process.kill()
    gate.kill()
    assert_written(write(gate, root))
    assert len(notes.effects()) == 1


def cancel(client: Wire, id: object) -> None:
    params = {"requestId": id, "reason": "changed my mind"}
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def test_a_call_cancelled_while_held_is_never_dispatched(
    gate: Lychgate, notes: Notes
) -> None:
    message = {"to": "a@example.org", "text": "hello"}
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "send_message", message))
        [ticket] = until(gate.pending, "the question")
        cancel(client, 1)
        only_act(gate, "withdrawn")
        gate.run("approve", ticket["id"], passphrase=PASSPHRASE)
        assert client.receive(1) is None, "a cancelled call has no answer"
        assert notes.effects() == []
        # The approval licenses one equal emission, as a new act.
        assert told(client.call("send_message", message, 2)) == "Sent to a@example.org."
        client.send(call(3, "send_message", message))
        [again] = until(gate.pending, "the question of the third")
        assert again["id"] != ticket["id"]
        assert notes.effects() == [message]


def test_a_call_cancelled_after_it_was_sent_is_settled_by_its_answer(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    notes.behave("--late=1000")
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "write_note", note(root)))
        until(notes.effects, "the effect")
        cancel(client, 1)
        assert_unresolved(client.call("write_note", note(root), 2))
        until(lambda: "effected" in gate.states(), "the answer")
        notes.behave()
        assert_written(client.call("write_note", note(root), 3))
    assert len(notes.effects()) == 1
    assert "notifications/cancelled" in [m.get("method") for m in notes.received()]


def test_the_gate_killed_between_effect_and_answer(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    notes.behave("--late=60000")
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "write_note", note(root)))
        until(notes.effects, "the effect")
        gate.kill()
        assert client.process.wait(5) != 0
    notes.behave()
    only_act(gate, "indeterminate")
    assert_unresolved(write(gate, root))
    assert len(notes.effects()) == 1


@pytest.mark.parametrize("meaning", ["unknown", "no-effect"])
def test_what_an_error_means_is_the_catalogues_word(
    gate: Lychgate, notes: Notes, root: Path, meaning: str
) -> None:
    gate.configure("[servers.notes]", f'errors = "{meaning}"')
    notes.behave("--error")
    reply = write(gate, root)
    # The tool's own text comes through either way.
    assert reply["result"]["isError"] and told(reply) == "it did not work", reply
    notes.behave()
    if meaning == "unknown":
        assert decision_of(reply)["state"] == "indeterminate", reply
        assert_unresolved(write(gate, root))
        assert len(notes.calls()) == 1
        assert gate.states() == ["indeterminate", "refused"]
    else:
        assert decision_of(reply) == {}
        assert_written(write(gate, root))
        assert gate.states() == ["failed", "effected"]
    # Reads are exempt: their errors are failures.
    notes.behave("--error")
    with wire(gate, "notes") as client:
        client.handshake()
        client.call("read_note", {"path": note(root)["path"]})
    assert gate.states()[-1] == "failed"


def test_a_task_that_goes_on_is_not_an_answer(
    gate: Lychgate, notes: Notes, root: Path
) -> None:
    notes.behave("--task", "--both")
    with wire(gate, "notes") as client:
        message = call(1, "write_note", note(root), _meta=MODERN)
        assert decision_of(client.answer(message, 1))["state"] == "indeterminate"
        assert_unresolved(client.answer(call(2, "write_note", note(root), _meta=MODERN), 2))
    assert len(notes.calls()) == 1
