"""The real servers behind the gate, and the log that stands on their side."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
NODE = os.environ["LYCHGATE_NODE"]
MODULES = Path(os.environ["LYCHGATE_NODE_MODULES"])
PYTHON = sys.executable


def _npm(name: str) -> str:
    return str(MODULES / "@modelcontextprotocol" / name / "dist" / "index.js")


def filesystem(root: Path) -> list[str]:
    return [NODE, _npm("server-filesystem"), str(root)]


def everything() -> list[str]:
    return [NODE, _npm("server-everything"), "stdio"]


def memory() -> list[str]:
    return [NODE, _npm("server-memory")]


def time() -> list[str]:
    # The zone stands in the tools' descriptions: fixed, so that their digests are.
    return [PYTHON, "-m", "mcp_server_time", "--local-timezone", "UTC"]


def git(repository: Path) -> list[str]:
    return [PYTHON, "-m", "mcp_server_git", "--repository", str(repository)]


def fetch(*options: str) -> list[str]:
    return [PYTHON, "-m", "mcp_server_fetch", *options]


@dataclass
class ServerLog:
    """What reached a server, written by `tee_server.py`."""

    path: Path

    def wrap(self, command: list[str]) -> list[str]:
        return [PYTHON, str(HERE / "tee_server.py"), str(self.path), *command]

    def lines(self) -> list[str]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]

    def messages(self) -> list[dict]:
        """Every message, batches taken apart, so that a call cannot hide in one."""
        found: list[dict] = []
        for line in self.lines():
            message = json.loads(line)
            found += message if isinstance(message, list) else [message]
        return found

    def calls(self, tool: str | None = None) -> list[dict]:
        """The params of the tool calls that arrived."""
        calls = [m["params"] for m in self.messages() if m.get("method") == "tools/call"]
        return [c for c in calls if tool is None or c["name"] == tool]

    def methods(self) -> list[str]:
        return [m["method"] for m in self.messages() if "method" in m]


@dataclass
class Notes:
    """The server that the binary carries: it logs what arrives and, durably, what it really did."""

    folder: Path

    def command(self) -> list[str]:
        places = {"log": "log", "effects": "effects", "switches": "switches"}
        options = [f"--{name}={self.folder / file}" for name, file in places.items()]
        return [os.environ["LYCHGATE_BIN"], "tour-server", *options]

    def behave(self, *switches: str) -> None:
        """From the next message on."""
        fresh = self.folder / "switches.new"
        fresh.write_text(" ".join(switches))
        fresh.rename(self.folder / "switches")

    def received(self) -> list[dict]:
        return _lines(self.folder / "log")

    def calls(self) -> list[dict]:
        return [m["params"] for m in self.received() if m.get("method") == "tools/call"]

    def effects(self) -> list[dict]:
        """The arguments of each call that changed something, in order."""
        done = _lines(self.folder / "effects")
        return [effect["arguments"] for effect in done if effect["tool"] != "read_note"]


@dataclass
class Adversary:
    """`adversary.py` and its folder."""

    folder: Path

    def command(self) -> list[str]:
        return [PYTHON, str(HERE / "adversary.py"), str(self.folder)]

    def behave(self, **manners: object) -> None:
        """From the next message on."""
        fresh = self.folder / "manners.new"
        fresh.write_text(json.dumps(manners))
        fresh.rename(self.folder / "manners.json")

    def received(self) -> list[dict]:
        return [json.loads(line) for line in _lines(self.folder / "received.jsonl")]

    def calls(self) -> list[dict]:
        return [m["params"] for m in self.received() if m.get("method") == "tools/call"]

    def effects(self) -> list[dict]:
        return _lines(self.folder / "effects.jsonl")


@dataclass
class Bank(Adversary):
    """`bank.py` and its folder: a destination that can be looked at."""

    def command(self) -> list[str]:
        return [PYTHON, str(HERE / "bank.py"), str(self.folder)]

    def asked(self) -> list[dict]:
        """The look-ups that arrived."""
        return [call for call in self.calls() if call["name"] == "find_entry"]


def _lines(path: Path) -> list:
    """Every whole line; the last one may still be being written."""
    if not path.exists():
        return []
    whole = path.read_text("utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.split("\n") if line]
