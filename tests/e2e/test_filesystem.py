"""The filesystem server behind the gate: allowed, denied, asked. The proof is on the disk."""

from __future__ import annotations

from pathlib import Path

import anyio
import peers
from harness import PASSPHRASE, Lychgate, assert_denied, decision, eventually, text
from mcp import Client, StdioServerParameters


async def test_an_allowed_read_is_answered_as_without_the_gate(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    arguments = {"path": str(root / "old.txt")}
    command, *rest = peers.filesystem(root)
    async with Client(StdioServerParameters(command=command, args=rest)) as bare:
        direct = await bare.call_tool("read_text_file", arguments)
    async with files.client("files") as client:
        gated = await client.call_tool("read_text_file", arguments)
    assert not gated.is_error and text(gated) == "as it was"
    assert gated.content == direct.content
    assert gated.structured_content == direct.structured_content
    assert [call["arguments"] for call in server_log.calls()] == [arguments]


async def test_the_same_tools_are_offered_as_without_the_gate(files: Lychgate, root: Path) -> None:
    command, *rest = peers.filesystem(root)
    async with Client(StdioServerParameters(command=command, args=rest)) as bare:
        direct = await bare.list_tools()
    async with files.client("files") as client:
        gated = await client.list_tools()
    assert gated.tools == direct.tools


async def test_a_tool_that_is_not_listed_never_reaches_the_server(
    files: Lychgate, server_log: peers.ServerLog
) -> None:
    async with files.client("files") as client:
        assert_denied(await client.call_tool("format_disk", {"path": "/"}), "EF-015")
    assert server_log.calls() == []


async def test_arguments_against_the_schema_never_reach_the_server(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    async with files.client("files") as client:
        result = await client.call_tool("write_file", {"path": str(root / "new.txt")})
        assert_denied(result, "EF-012")
    assert server_log.calls() == []
    assert not (root / "new.txt").exists()
    assert files.pending() == [], "nobody is asked about a call that would fail anyway"


async def test_an_escalated_write_runs_after_approval_and_only_once(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    target = root / "new.txt"
    arguments = {"path": str(target), "content": "once"}
    async with files.client("files") as client, anyio.create_task_group() as group:
        answers: list = []

        async def write() -> None:
            answers.append(await client.call_tool("write_file", arguments))

        group.start_soon(write)
        [ticket] = await files.wait_pending()
        assert not target.exists() and server_log.calls("write_file") == []

        await files.approve(ticket["id"])
        [first] = await eventually(lambda: _given(answers, 1), "the answer to the approved call")
        assert not first.is_error, first
        assert target.read_text() == "once"

        # The approval is spent: the same click does nothing, an equal call asks again.
        target.unlink()
        await files.approve(ticket["id"], status=1)
        group.start_soon(write)
        [again] = await files.wait_pending()
        assert again["id"] != ticket["id"]
        assert not target.exists()
        await files.deny(again["id"])
        _, second = await eventually(lambda: _given(answers, 2), "the answer to the denied call")
    assert_denied(second, "EF-071")
    assert not target.exists()
    assert [call["arguments"] for call in server_log.calls("write_file")] == [arguments]


async def test_a_write_that_a_person_denies_leaves_the_disk_alone(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    async with files.client("files") as client, anyio.create_task_group() as group:
        answers: list = []

        async def move() -> None:
            source, destination = str(root / "old.txt"), str(root / "gone.txt")
            arguments = {"source": source, "destination": destination}
            answers.append(await client.call_tool("move_file", arguments))

        group.start_soon(move)
        [ticket] = await files.wait_pending()
        await files.deny(ticket["id"])
    assert_denied(answers[0], "EF-071")
    assert sorted(path.name for path in root.iterdir()) == ["old.txt"]
    assert server_log.calls() == []


async def test_without_the_right_passphrase_nothing_is_approved(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    target = root / "new.txt"
    async with files.client("files") as client, anyio.create_task_group() as group:

        async def write() -> None:
            result = await client.call_tool("write_file", {"path": str(target), "content": "x"})
            assert_denied(result, "EF-071")

        group.start_soon(write)
        [ticket] = await files.wait_pending()

        def try_both() -> None:
            wrong = files.run("approve", ticket["id"], passphrase=PASSPHRASE + "!", status=1)
            assert PASSPHRASE not in wrong.stdout + wrong.stderr
            # An agent's shell has no terminal to ask on and no passphrase to give.
            assert files.run("approve", ticket["id"], status=None).returncode != 0

        await anyio.to_thread.run_sync(try_both)
        assert [waiting["id"] for waiting in files.pending()] == [ticket["id"]]
        await files.deny(ticket["id"])
    assert not target.exists() and server_log.calls() == []


async def test_a_call_whose_caller_left_is_never_sent_but_its_approval_serves_an_equal_call(
    files: Lychgate, root: Path, server_log: peers.ServerLog
) -> None:
    target = root / "new.txt"
    arguments = {"path": str(target), "content": "later"}
    async with files.client("files") as client:
        with anyio.move_on_after(1):
            await client.call_tool("write_file", arguments)
        [ticket] = await files.wait_pending()
    # The caller cancelled and its connection is gone; only now somebody approves.
    await files.approve(ticket["id"])
    await anyio.sleep(1)
    assert not target.exists() and server_log.calls() == []

    async with files.client("files") as client:
        result = await client.call_tool("write_file", arguments)
        assert not result.is_error, result
        assert target.read_text() == "later"
        # Once: the next equal call asks again.
        target.unlink()
        with anyio.move_on_after(1):
            await client.call_tool("write_file", arguments)
        [again] = await files.wait_pending()
    assert again["id"] != ticket["id"]
    assert not target.exists()
    assert len(server_log.calls("write_file")) == 1


async def test_a_denial_tells_the_model_a_constant_text_and_no_argument(
    files: Lychgate, root: Path
) -> None:
    async with files.client("files") as client:
        one = await client.call_tool("format_disk", {"path": "/a/first/secret"})
        two = await client.call_tool("erase_disk", {"path": "/a/second/secret"})
    assert text(one) == text(two)
    assert "secret" not in text(one) + str(decision(one))


async def _given(answers: list, count: int) -> list | None:
    return answers if len(answers) >= count else None
