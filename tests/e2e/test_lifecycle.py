"""From `init` to `gate stop`: the commands around the calls."""

from __future__ import annotations

import os
import stat

import peers
from harness import PASSPHRASE, Lychgate, processes_of


def test_init_keeps_its_files_to_itself_and_never_overwrites(gate: Lychgate) -> None:
    before = gate.config.read_bytes()
    assert gate.run("init", passphrase=PASSPHRASE, status=None).returncode != 0
    assert gate.config.read_bytes() == before
    for folder, _, files in os.walk(gate.state):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
        for name in files:
            path = os.path.join(folder, name)
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, path


def test_adding_needs_the_approver(gate: Lychgate) -> None:
    command = ["add", "time", "--accept-proposed", "--", *peers.time()]
    gate.run(*command, passphrase="something else", status=1)
    gate.run("mcp", "time", status=2)


def test_a_server_that_was_never_added_is_wrong_usage(gate: Lychgate) -> None:
    gate.run("mcp", "nobody", status=2)


async def test_the_gate_outlives_its_client_and_ends_when_told(gate: Lychgate) -> None:
    gate.add("time", peers.time(), get_current_time="INFORMATIONAL")
    async with gate.client("time") as client:
        await client.call_tool("get_current_time", {"timezone": "UTC"})
    gate.run("gate", "status")
    gate.run("gate", "stop")
    assert gate.run("gate", "status", status=None).returncode != 0
    assert list(processes_of(gate.folder)) == []


async def test_acts_shows_what_happened(gate: Lychgate) -> None:
    gate.add("time", peers.time(), get_current_time="INFORMATIONAL")
    async with gate.client("time") as client:
        await client.call_tool("get_current_time", {"timezone": "UTC"})
        await client.call_tool("set_time", {})
    assert sorted(gate.states()) == ["effected", "refused"]
    shown = gate.run("acts", "--json").stdout
    assert "timezone" not in shown and "UTC" not in shown, "raw arguments stay out of listings"
