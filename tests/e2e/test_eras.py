"""One gate for both eras: real clients, each in the era it speaks, before real servers."""

from __future__ import annotations

import anyio
import peers
import pytest
from harness import CALLER_SECRET, Lychgate, assert_denied, text
from mcp import Client, StdioServerParameters

MODERN = "2026-07-28"
TIME = {"get_current_time": "INFORMATIONAL", "convert_time": "INFORMATIONAL"}


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
async def test_time_is_told_in_every_era(
    gate: Lychgate, server_log: peers.ServerLog, mode: str
) -> None:
    gate.add("time", server_log.wrap(peers.time()), **TIME)
    before = len(server_log.methods())
    async with gate.client("time", mode=mode) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["get_current_time", "convert_time"]
        result = await client.call_tool("get_current_time", {"timezone": "Asia/Kathmandu"})
        assert not result.is_error, result
        assert result.structured_content["timezone"] == "Asia/Kathmandu"
        # A tool's own refusal comes through as it is.
        failed = await client.call_tool("get_current_time", {"timezone": "Nowhere/At_All"})
        assert failed.is_error and "Nowhere/At_All" in text(failed)
        assert_denied(await client.call_tool("set_time", {}), "EF-015")
    methods = server_log.methods()[before:]
    assert ("initialize" in methods) == (mode == "legacy"), methods
    assert len(server_log.calls()) == 2


async def test_the_modern_list_is_the_servers_own(gate: Lychgate) -> None:
    gate.add("time", peers.time(), **TIME)
    command, *rest = peers.time()
    async with Client(StdioServerParameters(command=command, args=rest)) as bare:
        direct = await bare.list_tools()
    async with gate.client("time") as client:
        gated = await client.list_tools()
    assert gated.tools == direct.tools


async def test_everything_answers_and_reports_progress(
    gate: Lychgate, server_log: peers.ServerLog
) -> None:
    free = ("echo", "get-sum", "get-structured-content", "trigger-long-running-operation")
    gate.add("all", server_log.wrap(peers.everything()), **dict.fromkeys(free, "INFORMATIONAL"))
    steps: list[float] = []

    async def progress(done: float, _total: float | None, _message: str | None) -> None:
        steps.append(done)

    async with gate.client("all") as client:
        assert text(await client.call_tool("echo", {"message": "ä\u2028😀"})) == "Echo: ä\u2028😀"
        assert "is 3." in text(await client.call_tool("get-sum", {"a": 1, "b": 2}))
        weather = await client.call_tool("get-structured-content", {"location": "Chicago"})
        assert weather.structured_content is not None
        slow = {"duration": 1, "steps": 4}
        name = "trigger-long-running-operation"
        done = await client.call_tool(name, slow, progress_callback=progress)
        assert not done.is_error, done
        resources = await client.list_resources()
        assert resources.resources
    # What was hashed is what was sent: one call each, with exactly these arguments.
    assert [call["arguments"] for call in server_log.calls()] == [
        {"message": "ä\u2028😀"},
        {"a": 1, "b": 2},
        {"location": "Chicago"},
        slow,
    ]
    assert steps == sorted(steps) and len(steps) >= 3


async def test_parallel_calls_are_answered_each_with_its_own_result(gate: Lychgate) -> None:
    gate.add("all", peers.everything(), echo="INFORMATIONAL")
    answers: dict[int, str] = {}
    async with gate.client("all") as client, anyio.create_task_group() as group:

        async def call(number: int) -> None:
            answers[number] = text(await client.call_tool("echo", {"message": str(number)}))

        for number in range(40):
            group.start_soon(call, number)
    assert answers == {number: f"Echo: {number}" for number in range(40)}


async def test_a_cancelled_call_leaves_the_connection_usable(
    gate: Lychgate, server_log: peers.ServerLog
) -> None:
    name = "trigger-long-running-operation"
    classes = {name: "INFORMATIONAL", "echo": "INFORMATIONAL"}
    gate.add("all", server_log.wrap(peers.everything()), **classes)
    async with gate.client("all") as client:
        with anyio.move_on_after(1):
            await client.call_tool(name, {"duration": 30, "steps": 30})
        assert text(await client.call_tool("echo", {"message": "still here"})) == "Echo: still here"
    assert "notifications/cancelled" in server_log.methods()
    assert len(server_log.calls(name)) == 1


async def test_a_server_sees_nothing_of_the_callers_environment(gate: Lychgate) -> None:
    gate.add("all", peers.everything(), **{"get-env": "INFORMATIONAL"})
    async with gate.client("all") as client:
        result = await client.call_tool("get-env", {})
    shown = text(result)
    assert not result.is_error, result
    assert CALLER_SECRET not in shown and "LYCHGATE_" not in shown
