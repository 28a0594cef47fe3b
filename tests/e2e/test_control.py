"""What a person takes back stops at once, with a real client and a real server; and who has taken note of it."""

from __future__ import annotations

from harness import PASSPHRASE, Lychgate, until
from peers import Notes
from raw import call, decision_of, wire

MESSAGE = {"to": "a@example.org", "text": "hello"}


def code(reply: dict) -> str | None:
    return decision_of(reply).get("code")


def newest(gate: Lychgate) -> dict:
    return gate.json("epochs")["controls"][0]


def all_acknowledged(gate: Lychgate) -> dict | None:
    control = newest(gate)
    return control if all(end["acknowledged"] for end in control["ends"]) else None


def test_a_revocation_ends_the_waiting_call_and_is_acknowledged(gate: Lychgate, notes: Notes) -> None:
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "send_message", MESSAGE))
        until(gate.pending, "the question")
        gate.run("revoke", "--tool", "notes/send_message", "--reason", "enough")
        assert code(client.receive()) == "EF-062"
        assert gate.pending() == []
        client.send(call(2, "send_message", MESSAGE))
        assert code(client.receive()) == "EF-062"
        control = until(lambda: all_acknowledged(gate), "every acknowledgement")
        assert control["kind"] == "revoked"
        assert {end["end"] for end in control["ends"]} == {"sink", "client"}
        # Taking it back wants the approver.
        undo = ("revoke", "--tool", "notes/send_message", "--undo", "--reason", "mended")
        assert gate.run(*undo, passphrase="wrong", status=None).returncode == 1
        gate.run(*undo, passphrase=PASSPHRASE)
        client.send(call(3, "send_message", MESSAGE))
        [ticket] = until(gate.pending, "the question, anew")
        gate.run("approve", ticket["id"], passphrase=PASSPHRASE)
        assert code(client.receive()) is None
    assert notes.effects() == [MESSAGE]
    # Each step stands in the record.
    shown = gate.run("ledger", "show", "--limit", "1000", "--json").stdout
    for stage in ("emitted", "received", "enforced", "observed"):
        assert f'"stage":"{stage}"' in shown.replace(" ", ""), stage


def test_a_name_that_means_nothing_is_refused_with_a_suggestion(gate: Lychgate, notes: Notes) -> None:
    done = gate.run("revoke", "--server", "note", status=None)
    assert done.returncode == 2 and "notes" in done.stderr
    assert gate.json("epochs")["revoked"] == []
    gate.run("revoke", "--server", "note", "--force")
    assert gate.json("epochs")["revoked"] == ["server:note"]


def test_a_connection_that_went_away_unheard_stays_missing(gate: Lychgate, notes: Notes) -> None:
    with wire(gate, "notes") as client:
        client.handshake()
        gate.run("revoke", "--server", "other", "--force")
        until(lambda: all_acknowledged(gate), "every acknowledgement")
    gate.kill()
    control = newest(gate)
    assert control["number"] >= 1 and all(end["acknowledged"] for end in control["ends"])


def test_consent_is_asked_for_given_and_withdrawn(gate: Lychgate, notes: Notes) -> None:
    gate.config.write_text(gate.config.read_text("utf-8") + "\n[consent]\nrequired = true\n", "utf-8")
    gate.run("apply", passphrase=PASSPHRASE)
    with wire(gate, "notes") as client:
        client.handshake()
        client.send(call(1, "send_message", MESSAGE))
        assert code(client.receive()) == "EF-017"
        gate.run("consent", "grant", "--for", "1h", "--function", "notes", passphrase=PASSPHRASE)
        client.send(call(2, "send_message", MESSAGE))
        [ticket] = until(gate.pending, "the question")
        # Withdrawn while it waits: the call ends, and nothing is left of it.
        gate.run("consent", "withdraw", "--all")
        assert code(client.receive()) == "EF-017"
        client.send(call(3, "send_message", MESSAGE))
        assert code(client.receive()) == "EF-017"
    assert ticket
    assert notes.effects() == []


def test_a_client_chooses_among_the_configured_purposes(gate: Lychgate, notes: Notes) -> None:
    done = gate.run("mcp", "notes", "--purpose", "whatever I say", status=None)
    assert done.returncode == 2 and "general" in done.stderr
