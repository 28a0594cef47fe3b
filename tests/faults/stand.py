"""A home that can be put back as it was, the gate on it, a client, and a server whose own log is the witness."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))
from harness import BINARY, Lychgate, processes_of, until  # noqa: E402
from peers import Notes  # noqa: E402
from raw import INITIALIZE, INITIALIZED, call  # noqa: E402

# How long anything may take before it counts as hanging.
PATIENCE = 20.0


@dataclass
class Told:
    """What the client knows of one call."""

    name: str
    # `effected`, the state or code of a decision object, `error`, or nothing when no answer came.
    word: str | None = None
    # The act, where the answer names it.
    act: str | None = None


@dataclass
class Client:
    """One `lychgate mcp notes`."""

    process: subprocess.Popen
    root: Path
    buffer: bytes = b""
    ids: Iterator[int] = field(default_factory=lambda: iter(range(1, 1 << 30)))

    def send(self, message: dict) -> None:
        # A gate that is gone takes the client with it.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def receive(self, patience: float = PATIENCE) -> dict | None:
        """The next line; nothing when the gate has gone. Silence with the gate alive is a fault."""
        os.set_blocking(self.process.stdout.fileno(), False)
        deadline = time.monotonic() + patience
        while b"\n" not in self.buffer:
            chunk = self.process.stdout.read(65536)
            if chunk == b"":
                return None
            if chunk:
                self.buffer += chunk
                continue
            if time.monotonic() > deadline:
                raise AssertionError(f"no answer within {patience} s, and no end of the connection")
            time.sleep(0.002)
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def look(self) -> dict | None:
        """The next line if one is there already."""
        os.set_blocking(self.process.stdout.fileno(), False)
        self.buffer += self.process.stdout.read(65536) or b""
        if b"\n" not in self.buffer:
            return None
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def handshake(self) -> bool:
        self.send(INITIALIZE)
        reply = self.receive()
        if reply is None or "result" not in reply:
            return False
        self.send(INITIALIZED)
        return True

    def ask(self, name: str) -> int:
        """Sends the call that writes the note `name`."""
        id = next(self.ids)
        self.send(call(id, "write_note", arguments(self.root, name)))
        return id

    def write(self, name: str) -> Told:
        """Calls and waits."""
        id = self.ask(name)
        while (reply := self.receive()) is not None:
            if reply.get("id") == id and "method" not in reply:
                return judge(name, reply)
        return Told(name)

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(3)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def arguments(root: Path, name: str) -> dict:
    return {"content": name, "path": str(root / f"{name}.txt")}


def judge(name: str, reply: dict) -> Told:
    """Puts an answer into one word."""
    if "error" in reply:
        return Told(name, "error")
    result = reply["result"]
    meta = (result.get("_meta") or {}).get("dev.lychgate/decision", {})
    # An answer whose outcome could not be recorded is passed on with that mark.
    if meta.get("state") == "indeterminate":
        return Told(name, "indeterminate", meta.get("act_id"))
    if not result.get("isError"):
        return Told(name, "effected")
    return Told(name, meta.get("code") or meta.get("state") or "error", meta.get("act_id"))


class Stand:
    """One home below `folder`, made once and put back before every run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.outside = folder / "outside"
        self.kept = folder / "kept"
        self.gate: subprocess.Popen | None = None
        self.home.mkdir()
        self.lychgate = Lychgate(self.home)
        self.state = self.lychgate.state
        self.root = self.home / "root"
        self.root.mkdir()
        self.notes = Notes(self.home / "notes")
        self.notes.folder.mkdir()
        self.lychgate.init()
        self.lychgate.add("notes", self.notes.command(), ["--root", f"{self.root}:recoverable"])
        self.lychgate.run("gate", "stop")
        self.settle()
        with self.running(), self.client() as client:
            assert client.write("before").word == "effected", "the stand itself does not work"
        shutil.copytree(self.home, self.kept, symlinks=True)

    def reset(self, kept: Path | None = None) -> None:
        """Everything as it was when the stand was made, or as in `kept`; nothing may be running."""
        shutil.rmtree(self.home)
        shutil.copytree(kept or self.kept, self.home, symlinks=True)

    # -- the gate -------------------------------------------------------------------------------

    def start(self, *wrapper: str, restore_signals: bool = True) -> bool:
        """Starts the gate, below `wrapper` if there is one. Whether it came up."""
        with open(self.folder / "gate-stderr.txt", "wb") as errors:
            self.gate = subprocess.Popen(
                [*wrapper, BINARY, "gate"],
                env=self.lychgate.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                restore_signals=restore_signals,
            )
        deadline = time.monotonic() + PATIENCE
        while self.gate.poll() is None:
            # It listens a moment before it catches the signal that is to end it.
            if listening(self.state / "gate.sock") and all(map(catches_term, self.gate_pids())):
                return True
            if time.monotonic() > deadline:
                raise AssertionError("the gate neither starts nor ends\n" + self.said())
            time.sleep(0.005)
        return False

    def said(self) -> str:
        """What the gate said on its standard error and in its log."""
        said = (self.folder / "gate-stderr.txt").read_text("utf-8", "replace")
        return said[-2000:] + self.lychgate.logs()[-4000:]

    def stop(self) -> int:
        """Asks the gate to end, waits for it, and gives its status; kills it when it does not."""
        assert self.gate is not None
        if self.gate.poll() is None:
            # A wrapper passes nothing on, and ends with what it wraps.
            for pid in self.gate_pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        try:
            return self.gate.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the gate does not end\n" + self.said()) from None

    def kill(self) -> None:
        assert self.gate is not None
        for pid in [*self.gate_pids(), self.gate.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.gate.wait()

    def gate_pids(self) -> list[int]:
        """The gate's own process, also when it runs below a wrapper."""
        assert self.gate is not None
        mine = [self.gate.pid]
        for child in Path(f"/proc/{self.gate.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                mine += map(int, child.read_text().split())
        return [pid for pid in mine if command_of(pid)[:2] == [BINARY, "gate"]]

    @contextlib.contextmanager
    def running(self, *wrapper: str) -> Iterator[None]:
        """A gate that comes up, is stopped, and says nothing bad."""
        assert self.start(*wrapper), "the gate does not start\n" + self.said()
        try:
            yield
        finally:
            status = self.stop()
        assert status == 0, f"the gate ended with {status}\n" + self.said()

    @contextlib.contextmanager
    def client(self, shake: bool = True) -> Iterator[Client]:
        # It must find the gate that was started for it and never start one of its own.
        with open(self.folder / "mcp-stderr.txt", "ab") as errors:
            process = subprocess.Popen(
                [BINARY, "mcp", "notes"],
                env=self.lychgate.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        client = Client(process, self.root)
        try:
            if shake:
                assert client.handshake(), "no handshake\n" + self.said()
            yield client
        finally:
            client.close()

    @contextlib.contextmanager
    def attempt(self, what: str, failures: list[str]) -> Iterator[None]:
        """Keeps a violation and the home it was found in, cleans up, and goes on."""
        try:
            yield
        except (AssertionError, sqlite3.Error) as fault:
            kept = self.folder / f"failed-{len(failures)}"
            shutil.copytree(self.home, kept, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
            failures.append(f"{what}: {fault}\n  the home it was found in: {kept}")
            for pid in dict(processes_of(self.home)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.settle()

    def anchors(self) -> list[Path]:
        """The record's newest heads outside the state folder."""
        return sorted(self.home.glob(".local/share/lychgate/anchors/*.checkpoint"))

    def log_name(self) -> str:
        """The record's name, as its anchor is called."""
        [anchor] = sorted(self.kept.glob(".local/share/lychgate/anchors/*.checkpoint"))
        return anchor.name.removesuffix(".checkpoint")

    def verify(self) -> None:
        """The whole record against every head signed over it and the anchor, by the product's own command."""
        self.lychgate.run("ledger", "verify")

    def settle(self) -> None:
        """Waits until nothing that belongs to the home is left: then its logs are whole."""
        until(lambda: not dict(processes_of(self.home)), f"the end of all of {self.home}")

    def effects(self, name: str) -> int:
        """How often the note `name` was written, by the server's own durable log."""
        return sum(effect["content"] == name for effect in self.notes.effects())

    def reached(self, name: str) -> int:
        """How often a call for it arrived."""
        return sum(params["arguments"]["content"] == name for params in self.notes.calls())


def command_of(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def catches_term(pid: int) -> bool:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(line for line in lines if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
