"""Raw lines through `lychgate mcp`: what no well-behaved client sends must not reach a server."""

from __future__ import annotations

import json
import time
from pathlib import Path

import peers
import pytest
from harness import Lychgate, processes_of
from raw import INITIALIZE, INITIALIZED, MODERN, call, wire

def write(root: Path, id: object = 1, **more: object) -> dict:
    return call(id, "write_file", {"path": str(root / "new.txt"), "content": "x"}, **more)


def listing(root: Path, id: object = 99, **more: object) -> dict:
    """A call that is allowed: after it was answered, what came before it has been handled."""
    return call(id, "list_directory", {"path": str(root)}, **more)


def untouched(root: Path, log: peers.ServerLog) -> bool:
    return log.calls("write_file") == [] and not (root / "new.txt").exists()


def test_a_call_before_the_handshake_is_gated(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    # The bare server runs such a call at once.
    with wire(files, "files") as client:
        client.send(write(root))
        client.receive(3)
        assert untouched(root, server_log)


def test_a_modern_call_without_discovery_is_gated(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    with wire(files, "files") as client:
        client.send(write(root, _meta=MODERN))
        client.receive(3)
        assert untouched(root, server_log)


def test_a_batch_smuggles_nothing(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    with wire(files, "files") as client:
        client.handshake()
        client.send([write(root, 1), write(root, 2)])
        assert client.answer(listing(root), 99)
        assert untouched(root, server_log)
    assert all(line.lstrip().startswith("{") for line in server_log.lines())


def test_a_call_as_a_notification_is_not_run(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    message = write(root)
    del message["id"]
    with wire(files, "files") as client:
        client.handshake()
        client.send(message)
        assert client.answer(listing(root), 99)
        assert untouched(root, server_log)


@pytest.mark.parametrize("method", ["Tools/Call", "tools/call ", "tools\u2215call", "tools//call"])
def test_a_method_spelled_unusually_does_not_pass(
    files: Lychgate, root: Path, server_log: peers.ServerLog, method: str
) -> None:
    with wire(files, "files") as client:
        client.handshake()
        reply = client.answer(write(root) | {"method": method}, 1)
        assert "error" in reply or reply["result"].get("isError"), reply
        assert untouched(root, server_log)
    assert method not in server_log.methods()


def test_an_unknown_method_does_not_pass(files: Lychgate, server_log: peers.ServerLog) -> None:
    with wire(files, "files") as client:
        client.handshake()
        reply = client.answer({"jsonrpc": "2.0", "id": 1, "method": "tools/erase"}, 1)
    error = reply["error"]["code"]
    assert error == -32601 or not -32768 <= error <= -32000, reply
    assert "tools/erase" not in server_log.methods()


DUPLICATES = {
    "duplicate key": b'"path":"%s/old.txt","path":"%s/new.txt","content":"x"',
    "duplicate key, escaped": b'"path":"%s/old.txt","p\\u0061th":"%s/new.txt","content":"x"',
    "keys that differ in case": b'"path":"%s/old.txt","Path":"%s/new.txt","content":"x"',
}


@pytest.mark.parametrize("kind", DUPLICATES)
def test_two_readings_of_one_call_are_refused(
    files: Lychgate, root: Path, server_log: peers.ServerLog, kind: str
) -> None:
    place = str(root).encode()
    arguments = DUPLICATES[kind] % (place, place)
    before = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file",'
    with wire(files, "files") as client:
        client.handshake()
        reply = client.answer(before + b'"arguments":{' + arguments + b"}}}", 1)
        assert "EF-001" in json.dumps(reply), reply
        assert untouched(root, server_log)
    assert (root / "old.txt").read_text() == "as it was"
    assert files.pending() == []


def test_two_objects_on_one_line_are_not_repaired(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    line = json.dumps(listing(root, 1)) + json.dumps(write(root, 2))
    with wire(files, "files") as client:
        client.handshake()
        client.send(line.encode())
        assert client.answer(listing(root), 99)
        assert untouched(root, server_log)
    assert len(server_log.calls()) == 1


@pytest.mark.parametrize("member", ["task", "extra", "Name"])
def test_a_member_nobody_hashed_does_not_reach_the_server(
    files: Lychgate, root: Path, server_log: peers.ServerLog, member: str
) -> None:
    with wire(files, "files") as client:
        client.handshake()
        reply = client.answer(listing(root, 1, **{member: {"ttl": 1}}), 1)
        assert "error" in reply or reply["result"].get("isError"), reply
    assert server_log.calls() == []


def test_ids_come_back_as_they_were_sent(files: Lychgate, root: Path) -> None:
    with wire(files, "files") as client:
        client.handshake()
        for id in (0, 7, "7", "", "ein\u2028e", 2**53 - 1):
            reply = client.answer(listing(root, id), id)
            assert reply["id"] == id and type(reply["id"]) is type(id)


def test_the_servers_question_for_roots_is_not_the_clients_to_answer(
    files: Lychgate, root: Path, server_log: peers.ServerLog, tmp_path: Path
) -> None:
    # The bare server takes the client's roots in place of its own.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    hello = json.loads(json.dumps(INITIALIZE))
    hello["params"]["capabilities"] = {"roots": {"listChanged": True}}
    with wire(files, "files") as client:
        client.answer(hello, "hello")
        client.send(INITIALIZED)
        client.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        while (message := client.receive(2)) is not None:
            assert message.get("method") != "roots/list", message
        roots = [{"uri": elsewhere.as_uri()}]
        client.send({"jsonrpc": "2.0", "id": 0, "result": {"roots": roots}})
        allowed = {"name": "list_allowed_directories", "arguments": {}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": allowed}
        reply = json.dumps(client.answer(call, 2))
        assert str(root) in reply and str(elsewhere) not in reply, reply
    assert elsewhere.as_uri() not in "".join(server_log.lines())


def test_a_client_that_is_killed_takes_its_server_with_it(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    def servers() -> list[str]:
        return [line for _, line in processes_of(files.folder) if "server-filesystem" in line]

    with wire(files, "files") as client:
        client.handshake()
        assert client.answer(listing(root), 99)
        assert servers()
        client.process.kill()
        client.process.wait()
        deadline = time.monotonic() + 10
        while servers() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert servers() == []
