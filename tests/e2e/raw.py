"""A client that sends any line it likes: `lychgate mcp` and its two pipes."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import time
from collections.abc import Iterator

from harness import BINARY, Lychgate

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Wire:
    """One `lychgate mcp` process and its two pipes."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.buffer = b""

    def send(self, message: dict | list | bytes) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self, patience: float = 20) -> dict | None:
        """The next line, or nothing when none came in time or the other side closed."""
        deadline = time.monotonic() + patience
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            if not (chunk := self.process.stdout.read1(65536)):
                return None
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def answer(self, message: dict | bytes, id: object) -> dict:
        """Sends and waits for the answer with that id; notifications in between are skipped."""
        self.send(message)
        while (reply := self.receive()) is not None:
            if reply.get("id") == id and "method" not in reply:
                return reply
        raise AssertionError(f"no answer to {message!r}")

    def call(self, tool: str, arguments: dict, id: object = 1) -> dict:
        """A call and its answer."""
        return self.answer(call(id, tool, arguments), id)

    def handshake(self) -> None:
        assert "result" in self.answer(INITIALIZE, "hello")
        self.send(INITIALIZED)


@contextlib.contextmanager
def wire(gate: Lychgate, name: str) -> Iterator[Wire]:
    with open(gate.folder / "mcp-stderr.txt", "ab") as errors:
        process = subprocess.Popen(
            [BINARY, "mcp", name],
            env=gate.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield Wire(process)
    finally:
        # What a test could not send before the other side ended is of no interest.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()


def decision_of(reply: dict) -> dict:
    """Our decision object in an answer to a call."""
    return reply["result"].get("_meta", {}).get("dev.lychgate/decision", {})


def call(id: object, tool: str, arguments: dict, **more: object) -> dict:
    params = {"name": tool, "arguments": arguments, **more}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
