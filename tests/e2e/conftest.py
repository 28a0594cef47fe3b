"""Fixtures: a gate of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import peers
import pytest
from harness import Lychgate


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Puts the gate's log beside the failure it belongs to."""
    report = yield
    gate = getattr(item, "funcargs", {}).get("gate")
    if report.failed and gate is not None and (logs := gate.logs()):
        report.sections.append(("the gate's log", logs))
    return report


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Lychgate]:
    """An initialised state folder; its gate is stopped and nothing of it is left afterwards."""
    lychgate = Lychgate(tmp_path)
    try:
        lychgate.init()
        yield lychgate
    finally:
        lychgate.close()


@pytest.fixture
def server_log(tmp_path: Path) -> peers.ServerLog:
    return peers.ServerLog(tmp_path / "reached-the-server.jsonl")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder the filesystem server may use, with one file in it."""
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "old.txt").write_text("as it was")
    return folder


@pytest.fixture
def files(gate: Lychgate, root: Path, server_log: peers.ServerLog) -> Lychgate:
    """A gate before the filesystem server: reading is free, writing and moving ask a person."""
    gate.add(
        "files",
        server_log.wrap(peers.filesystem(root)),
        read_text_file="INFORMATIONAL",
        list_directory="INFORMATIONAL",
        write_file="PERSISTENT_STATE_CHANGE",
        move_file="PERSISTENT_STATE_CHANGE",
    )
    return gate


@pytest.fixture
def notes(gate: Lychgate, root: Path, tmp_path: Path) -> peers.Notes:
    """The binary's own server behind the gate: writing notes into the recoverable root passes."""
    folder = tmp_path / "notes"
    folder.mkdir()
    server = peers.Notes(folder)
    gate.add("notes", server.command(), ["--root", f"{root}:recoverable"])
    return server


@pytest.fixture
def adversary(gate: Lychgate, root: Path, tmp_path: Path) -> peers.Adversary:
    """A server that does what no server should; both of its tools pass."""
    folder = tmp_path / "adversary"
    folder.mkdir()
    server = peers.Adversary(folder)
    options = ["--root", f"{root}:recoverable"]
    gate.add("adversary", server.command(), options, read_text="INFORMATIONAL")
    return server


@pytest.fixture
async def used(gate: Lychgate, root: Path, notes: peers.Notes) -> Lychgate:
    """A gate that did a few things."""
    async with gate.client("notes") as client:
        for number in range(3):
            note = {"path": str(root / f"{number}.txt"), "content": f"secret-{number}"}
            await client.call_tool("write_note", note)
        await client.call_tool("no_such_tool", {})
    return gate
