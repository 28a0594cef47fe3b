"""Telemetry, and that nothing an agent wrote is in it, nor in anything else that the gate leaves behind."""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import peers
import pytest
from harness import PASSPHRASE, Lychgate, until
from raw import Wire, call, wire

# Of characters that each way of writing writes otherwise; the middle is the same in most.
MARK = "Zq7xVr0ubador9Kw"
SECRET = f'ž"&+/ {MARK} \\=?ž'
# Where a secret is a file's name.
NAME = f"n{MARK}ž+ &=.txt"
HERE = Path(__file__).parent


class Collector(ThreadingHTTPServer):
    """What an OTLP collector is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Take)
        self.posts: list[tuple[str, bytes]] = []

    def bodies(self, path: str) -> list[bytes]:
        return [body for where, body in self.posts if where == path]


class Take(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = f"{self.requestline}\n{self.headers}".encode()
        self.server.posts.append((self.path, body))
        self.server.posts.append(("head", head))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def tell(gate: Lychgate, collector: Collector) -> int:
    """Switches everything on; gives the port of the metrics endpoint."""
    port = free_port()
    with gate.config.open("a", encoding="utf-8") as file:
        file.write(
            f'\n[telemetry]\nprometheus = "127.0.0.1:{port}"\n'
            f'otlp = "http://127.0.0.1:{collector.server_port}"\nevery = "200ms"\n'
        )
    gate.run("apply", passphrase=PASSPHRASE)
    gate.status() or gate.run("acts")
    # From the first export on traces are kept.
    until(lambda: collector.posts, "an export")
    return port


def metrics(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return answer.read()


def ways(text: str) -> dict[str, bytes]:
    """A text in every way of writing it that somebody might think of."""
    raw = text.encode()
    plain = json.dumps(text)[1:-1]
    found = {
        "as it is": raw,
        "JSON": plain.encode(),
        "JSON, not ASCII": json.dumps(text, ensure_ascii=False)[1:-1].encode(),
        "JSON in JSON": json.dumps(plain)[1:-1].encode(),
        "percent": urllib.parse.quote(text, safe="").encode(),
        "percent, small": urllib.parse.quote(text, safe="").lower().encode(),
        "form": urllib.parse.quote_plus(text).encode(),
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "UTF-16": text.encode("utf-16-le"),
        "bytes, as Rust and Python list them": ", ".join(map(str, raw)).encode(),
        "JSON, a list": ",".join(map(str, raw)).encode(),
    }
    # Base64 looks otherwise by where in the whole the text begins; what depends on neighbours is cut away.
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw)
        inner = coded[(before * 8 + 5) // 6 : len(raw + b"\0" * before) * 8 // 6]
        found[f"base64 {before}"] = inner
        found[f"base64url {before}"] = inner.replace(b"+", b"-").replace(b"/", b"_")
    return found


NEEDLES = {
    f"{what}: {way}": needle
    for what, text in (("the secret", SECRET), ("its middle", MARK), ("the name", NAME))
    for way, needle in ways(text).items()
}


def leaks(where: str, heap: bytes) -> list[str]:
    return [f"{where}: {way}" for way, needle in NEEDLES.items() if needle in heap]


def leaks_on_disk(gate: Lychgate, but: set[Path]) -> list[str]:
    """Everything below the test's folder, the tools' own places apart."""
    found = []
    for path in sorted(gate.folder.rglob("*")):
        if path.is_file() and not any(path.is_relative_to(place) for place in but):
            found += leaks(str(path.relative_to(gate.folder)), path.read_bytes())
        if not any(path.is_relative_to(place) for place in but):
            found += leaks("a name", os.fsencode(path.name))
    return found


def test_the_search_finds_what_it_is_to_find() -> None:
    for before in (b"", b"a", b"ab"):
        heap = before + SECRET.encode()
        assert leaks("x", base64.b64encode(heap + b"more"))
        assert leaks("x", base64.urlsafe_b64encode(heap + b"more"))
        assert leaks("x", heap) and leaks("x", heap.hex().encode())
    assert not leaks("x", b"nothing of it")


def whole_story(client: Wire, inside: Path, forbidden: Path) -> None:
    """The secret in every place of a call, and in calls that end in every way."""

    def put(id: int, **more: object) -> dict:
        arguments = {"path": str(inside / "a.txt"), **more}
        return client.answer(call(id, "put", arguments), id)

    # Allowed: plain, nested, in keys, in a path, in something large.
    assert "result" in put(1, data=SECRET)
    assert "result" in put(2, data={"deep": [{"er": [SECRET, {"key": SECRET}]}]})
    assert "result" in put(3, data={SECRET: {MARK: 1}})
    assert "result" in put(4, path=str(inside / NAME))
    assert "result" in put(5, data="x" * 700_000 + SECRET)
    # Errors in the server's own words, and lines of its own that are none.
    put(6, mode="garbage", data=SECRET)
    put(7, mode="rpc", data=SECRET)
    put(8, mode="error", data=SECRET)
    # Denied: a forbidden place, another shape, a tool that does not exist, an unknown member.
    put(9, path=str(forbidden / NAME), data=SECRET)
    put(10, mode=SECRET)
    put(11, **{SECRET: SECRET})
    client.answer(call(12, f"tool-{MARK}", {"path": SECRET}), 12)
    client.answer(call(13, SECRET, {"path": SECRET}), 13)
    client.answer(call(14, "put", {"path": str(inside / "b.txt")}, extra=SECRET), 14)
    # Malformed: several megabytes, doubled keys, not JSON, a method and an id of its own.
    client.answer(call(15, "put", {"path": str(inside / "c.txt"), "data": SECRET * 100_000}), 15)
    twice = json.dumps(call(16, "put", {"path": "p", "data": 0})).replace(
        '"data": 0', f"{json.dumps(SECRET)}: 1, {json.dumps(SECRET)}: 2"
    )
    client.answer(twice.encode(), 16)
    client.send(f'{{"jsonrpc": "2.0", "id": 17, {json.dumps(SECRET)}'.encode())
    client.answer({"jsonrpc": "2.0", "id": SECRET, "method": MARK, "params": {SECRET: 1}}, SECRET)
    client.answer(call(f"id-{MARK}", "put", {"path": str(inside / "d.txt")}), f"id-{MARK}")
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": SECRET, "reason": SECRET}})


def test_a_secret_in_arguments_is_nowhere_else(
    gate: Lychgate, root: Path, tmp_path: Path, collector: Collector
) -> None:
    told = tmp_path / "told"
    command = [peers.PYTHON, str(HERE / "leaky.py"), str(told)]
    gate.add(
        "leaky",
        command,
        ["--root", f"{root}:recoverable", "--class", "odd=OTHER"],
        put="PERSISTENT_STATE_CHANGE",
    )
    port = tell(gate, collector)
    answers = []
    with wire(gate, "leaky") as client:
        client.handshake()
        whole_story(client, root, gate.state)
        # Escalated, and nobody decides while its caller is there.
        client.send(call(30, "odd", {"path": str(root / "e.txt"), "data": SECRET}))
        until(gate.pending, "a ticket")
        answers.append(gate.run("pending", "--json").stdout.encode())
        [ticket] = gate.pending()
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 30}})
        # Indeterminate: the server ends under it.
        client.answer(call(31, "put", {"path": str(root / "f.txt"), "mode": "die", "data": SECRET}), 31)
    assert MARK in told.read_text("utf-8"), "nothing came through: the test tests nothing"
    states = set(gate.states())
    assert {"effected", "refused", "indeterminate", "withdrawn"} <= states, states
    for words in (["acts", "--limit", "1000"], ["gate", "status"]):
        answers.append(gate.run(*words).stdout.encode())
        answers.append(gate.run(*words, "--json").stdout.encode())
    measured = metrics(port)
    assert b"lychgate_decisions_total{" in measured
    limits = Path(f"/proc/{gate.pid()}/limits").read_text()
    assert next(line for line in limits.splitlines() if "core file" in line).split()[4:6] == ["0", "0"]
    # While it runs, the write-ahead log is there too.
    assert (gate.state / "gate.log").exists() or list(gate.state.rglob("*.log"))
    own = {root, told}
    found = leaks_on_disk(gate, own)
    gate.run("gate", "stop")
    found += leaks_on_disk(gate, own)
    found += leaks("/metrics", measured)
    for answer in answers:
        found += leaks("an answer of the gate", answer)
    spans = b"".join(collector.bodies("/v1/traces"))
    assert b"execute_tool put" in spans and b"gen_ai.tool.name" in spans, "no traces were sent"
    for where, body in collector.posts:
        found += leaks(where, body)
    assert found == []
