"""The reviewed entries against the real servers: every definition is the one reviewed, and each call is judged as meant."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import peers
import pytest
from harness import PASSPHRASE, Lychgate, until
from raw import Wire, call, decision_of, wire

OUTSIDE = "/etc/hostname"
PASS, ASK, DENY = "passes", "asks", "is denied"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with one commit and one change."""
    folder = tmp_path / "work"
    folder.mkdir()

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "a").write_text("first\n")
    git("init", "--quiet", "--initial-branch=main")
    git("config", "user.name", "somebody")
    git("config", "user.email", "somebody@example.org")
    git("add", "a")
    git("commit", "--quiet", "-m", "first")
    (folder / "a").write_text("second\n")
    return folder


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        found = self.path != "/robots.txt"
        body = b"<html><body><p>the page</p></body></html>" if found else b""
        self.send_response(200 if found else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def website() -> Iterator[ThreadingHTTPServer]:
    """A website on this machine that keeps what it was asked for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.asked = []
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def command(name: str, work: Path) -> list[str]:
    return {
        "filesystem": peers.filesystem(work),
        "everything": peers.everything(),
        "memory": peers.memory(),
        "time": peers.time(),
        "git": peers.git(work),
        "fetch": peers.fetch(),
    }[name]


SERVERS = ["everything", "fetch", "filesystem", "git", "memory", "time"]


def add(gate: Lychgate, name: str, work: Path, *options: str) -> list[dict]:
    """Adds a server just as it is proposed. Gives its tools as they were shown."""
    given = ["--json", "--root", f"{work}:recoverable", *options]
    return json.loads(gate.add(name, command(name, work), given))["tools"]


@pytest.mark.parametrize("name", SERVERS)
def test_every_tool_is_reviewed_for_exactly_this_definition(
    gate: Lychgate, work: Path, name: str
) -> None:
    tools = add(gate, name, work)
    assert tools and [tool for tool in tools if not tool["reviewed"] or tool["note"]] == []
    # Nothing of it is withheld from the client.
    with wire(gate, name) as client:
        client.handshake()
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        offered = client.answer(listing, 1)["result"]["tools"]
    assert sorted(tool["name"] for tool in offered) == sorted(tool["function"] for tool in tools)


def test_another_package_is_not_the_reviewed_one(gate: Lychgate, tmp_path: Path) -> None:
    # The same definitions, told by somebody else.
    script = tmp_path / "clock.py"
    run = "runpy.run_module('mcp_server_time', run_name='__main__')"
    script.write_text(f"import runpy, sys\nsys.argv = ['', '--local-timezone', 'UTC']\n{run}\n")
    tools = json.loads(gate.add("clock", [peers.PYTHON, str(script)], ["--json"]))["tools"]
    assert tools
    assert [tool["function"] for tool in tools if tool["reviewed"]] == []


def test_another_definition_is_not_the_reviewed_one(gate: Lychgate) -> None:
    # The zone stands in the descriptions.
    elsewhere = [*peers.time()[:-1], "Asia/Kathmandu"]
    tools = json.loads(gate.add("time", elsewhere, ["--json"]))["tools"]
    assert [tool["function"] for tool in tools if tool["reviewed"]] == []
    assert {tool["note"] for tool in tools} == {"not the reviewed definition"}


def judged(gate: Lychgate, client: Wire, tool: str, arguments: dict) -> str:
    """What becomes of a call. A question is answered with no."""
    client.send(call(tool, tool, arguments))
    asked = False
    while (reply := client.receive(0.2)) is None or reply.get("id") != tool:
        for ticket in gate.pending():
            gate.run("deny", ticket["id"], passphrase=PASSPHRASE)
            asked = True
    code = decision_of(reply).get("code")
    assert asked == (code == "EF-071"), reply
    return ASK if asked else DENY if code else PASS


CALLS = {
    "filesystem": [
        ("read_text_file", {"path": "{work}/a"}, PASS),
        ("read_text_file", {"path": OUTSIDE}, ASK),
        ("read_multiple_files", {"paths": ["{work}/a", OUTSIDE]}, ASK),
        ("list_allowed_directories", {}, PASS),
        # The gate's own files lie beneath.
        ("directory_tree", {"path": "{home}"}, DENY),
        ("list_directory", {"path": "{home}"}, ASK),
        ("write_file", {"path": "{work}/a", "content": "x"}, PASS),
        ("write_file", {"path": "{work}/a"}, DENY),
        ("write_file", {"path": "{work}/.git/hooks/pre-commit", "content": "x"}, ASK),
        ("write_file", {"path": "{home}/config/lychgate.toml", "content": "x"}, DENY),
        ("move_file", {"source": "{work}/a", "destination": "{home}/a"}, ASK),
        ("edit_file", {"path": "{work}/a", "edits": [{"oldText": "x", "newText": "y"}]}, PASS),
        ("create_directory", {"path": "{work}/new"}, PASS),
    ],
    "git": [
        ("git_status", {"repo_path": "{work}"}, PASS),
        ("git_log", {"repo_path": "{work}"}, PASS),
        ("git_diff_unstaged", {"repo_path": "{work}"}, PASS),
        ("git_add", {"repo_path": "{work}", "files": ["a"]}, PASS),
        ("git_commit", {"repo_path": "{work}", "message": "second"}, PASS),
        ("git_create_branch", {"repo_path": "{work}", "branch_name": "other"}, PASS),
        # It brings in whatever files the branch has, hooks' and clients' configurations among them.
        ("git_checkout", {"repo_path": "{work}", "branch_name": "other"}, ASK),
        ("git_commit", {"repo_path": "{home}/elsewhere", "message": "m"}, ASK),
        ("git_status", {"repo_path": OUTSIDE}, ASK),
    ],
    "fetch": [
        ("fetch", {"url": "https://example.com/"}, ASK),
        ("fetch", {"url": "http://169.254.169.254/latest"}, DENY),
        ("fetch", {"url": "http://2852039166/"}, DENY),
        ("fetch", {"url": "http://[::ffff:169.254.169.254]/"}, DENY),
        ("fetch", {"url": "http://user@example.com\\@evil.example/"}, DENY),
    ],
    "time": [
        ("get_current_time", {"timezone": "Europe/Berlin"}, PASS),
        (
            "convert_time",
            {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
            PASS,
        ),
    ],
    "everything": [
        ("echo", {"message": "hi"}, PASS),
        ("get-sum", {"a": 1, "b": 2}, PASS),
        ("get-env", {}, ASK),
        ("echo", {"message": 1}, DENY),
    ],
    "memory": [
        ("read_graph", {}, PASS),
        ("search_nodes", {"query": "x"}, PASS),
        ("create_entities", {"entities": []}, ASK),
        ("delete_entities", {"entityNames": ["x"]}, ASK),
    ],
}


@pytest.mark.parametrize("name", SERVERS)
def test_ordinary_work_passes_and_the_rest_asks(gate: Lychgate, work: Path, name: str) -> None:
    add(gate, name, work)

    def filled(value: object) -> object:
        text = json.dumps(value).replace("{work}", str(work))
        return json.loads(text.replace("{home}", str(gate.folder)))

    with wire(gate, name) as client:
        client.handshake()
        for tool, arguments, expected in CALLS[name]:
            found = judged(gate, client, tool, filled(arguments))
            assert found == expected, f"{tool} {arguments} {found}"


# -- what the servers really did -----------------------------------------------------------------------


async def test_a_real_client_commits_through_the_gate(gate: Lychgate, work: Path) -> None:
    add(gate, "git", work)
    repository = {"repo_path": str(work)}
    async with gate.client("git") as client:
        for tool, more in [
            ("git_add", {"files": ["a"]}),
            ("git_commit", {"message": "through the gate"}),
        ]:
            done = await client.call_tool(tool, repository | more)
            assert not done.is_error, done
        # An option in a place of a name must not write a file.
        await client.call_tool("git_diff", repository | {"target": f"--output={work}/made"})
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=work, capture_output=True, text=True, check=True
    )
    assert log.stdout.splitlines() == ["through the gate", "first"]
    assert not (work / "made").exists()


async def test_memory_in_a_recoverable_file_is_kept_without_asking(
    gate: Lychgate, work: Path
) -> None:
    file = work / "memory.jsonl"
    tools = add(gate, "memory", work, "--env", f"MEMORY_FILE_PATH={file}")
    assert all(tool["reviewed"] for tool in tools)
    entity = {"name": "gate", "entityType": "thing", "observations": ["it has two doors"]}
    async with gate.client("memory") as client:
        made = await client.call_tool("create_entities", {"entities": [entity]})
        assert not made.is_error, made
        graph = await client.call_tool("read_graph", {})
        assert graph.structured_content["entities"] == [entity]
    assert "it has two doors" in file.read_text()
    assert set(gate.states()) == {"effected"} and gate.pending() == []


def test_a_fetch_asks_and_goes_out_once(gate: Lychgate, website: ThreadingHTTPServer) -> None:
    gate.add("fetch", peers.fetch("--allow-private-ips"))
    url = f"http://127.0.0.1:{website.server_port}/page"
    with wire(gate, "fetch") as client:
        client.handshake()
        client.send(call(1, "fetch", {"url": url}))
        [ticket] = until(gate.pending, "the question")
        assert website.asked == [] and ticket["class"] == "DATA_DISCLOSURE"
        gate.run("approve", ticket["id"], passphrase=PASSPHRASE)
        reply = client.receive()
        assert "the page" in reply["result"]["content"][0]["text"], reply
        assert website.asked.count("/page") == 1
        client.send(call(2, "fetch", {"url": url}))
        [again] = until(gate.pending, "the next question")
        gate.run("deny", again["id"], passphrase=PASSPHRASE)
        assert decision_of(client.receive())["code"] == "EF-071"
    assert website.asked.count("/page") == 1
