"""Other routes to the same effect: what one tool writes, another one runs or another client starts (CASES)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from uuid import uuid4

import peers
import pytest
from harness import PASSPHRASE, Lychgate
from raw import Wire, call, decision_of, wire


@pytest.fixture
def project(gate: Lychgate, tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    for arguments in (
        ["init", "--quiet"],
        ["config", "user.name", "n"],
        ["config", "user.email", "n@example.org"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    gate.add("files", peers.filesystem(folder), ["--root", f"{folder}:recoverable"])
    gate.add("git", peers.git(folder), ["--root", f"{folder}:recoverable"])
    return folder


def passes(client: Wire, tool: str, arguments: dict) -> None:
    reply = client.call(tool, arguments, id=str(uuid4()))
    assert "dev.lychgate/decision" not in str(reply), reply


def test_a_repository_by_another_name_runs_nothing(
    gate: Lychgate, project: Path, tmp_path: Path
) -> None:
    # git takes any folder with HEAD, config, objects and refs for a repository, and runs what its config says.
    proof = tmp_path / "ran"
    config = (
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        f"\tworktree = {project}/e\n\tfsmonitor = \"touch {proof}; false\"\n"
    )
    with wire(gate, "files") as client:
        client.handshake()
        for folder in ("e", "e/objects", "e/refs"):
            passes(client, "create_directory", {"path": f"{project}/{folder}"})
        passes(client, "write_file", {"path": f"{project}/e/HEAD", "content": "ref: refs/heads/main\n"})
        passes(client, "write_file", {"path": f"{project}/e/config", "content": config})
    assert (project / "e/config").read_text() == config
    with wire(gate, "git") as client:
        client.handshake()
        reply = client.call("git_status", {"repo_path": f"{project}/e"})
        assert reply["result"]["isError"] and "bare repository" in str(reply), reply
    assert not proof.exists()


@pytest.mark.parametrize(
    "name",
    [
        ".mcp.json",
        "deep/er/.mcp.json",
        "deep/.vscode/mcp.json",
        "deep/.vscode/tasks.json",
        ".cursor/mcp.json",
        "deep/.claude/settings.json",
        "deep/.Claude/settings.local.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        "deep/opencode.json",
    ],
)
def test_what_clients_start_servers_from_is_no_target_at_any_depth(
    gate: Lychgate, project: Path, name: str
) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    with wire(gate, "files") as client:
        client.handshake()
        reply = client.call("write_file", {"path": f"{project}/{name}", "content": "{}"})
        assert decision_of(reply)["code"] == "EF-020", reply
    assert not (project / name).exists()


def test_what_clients_start_servers_from_cannot_be_moved_into_place(
    gate: Lychgate, project: Path
) -> None:
    (project / "harmless").mkdir()
    (project / "harmless/mcp.json").write_text("{}")
    (project / "notes.json").write_text("{}")
    with wire(gate, "files") as client:
        client.handshake()
        for source, place in (("harmless", ".vscode"), ("harmless", ".cursor"), ("notes.json", ".mcp.json")):
            arguments = {"source": f"{project}/{source}", "destination": f"{project}/{place}"}
            reply = client.call("move_file", arguments, id=place)
            assert decision_of(reply)["code"] == "EF-020", reply
            assert not (project / place).exists()


def test_ordinary_git_work_in_a_root_is_not_interrupted(gate: Lychgate, project: Path) -> None:
    (project / ".vscode").mkdir()
    (project / ".vscode/settings.json").write_text("{}")
    (project / "a.txt").write_text("a")
    with wire(gate, "git") as client:
        client.handshake()
        passes(client, "git_status", {"repo_path": str(project)})
        passes(client, "git_add", {"repo_path": str(project), "files": ["a.txt"]})
        passes(client, "git_commit", {"repo_path": str(project), "message": "a"})
    log = subprocess.run(["git", "log", "--oneline"], cwd=project, check=True, capture_output=True)
    assert log.stdout.strip().endswith(b"a")


def test_a_failed_write_may_be_tried_again_once_its_folder_is_there(
    gate: Lychgate, project: Path
) -> None:
    write = {"path": f"{project}/new/a.txt", "content": "a"}
    with wire(gate, "files") as client:
        client.handshake()
        assert client.call("write_file", write, id=1)["result"]["isError"]
        passes(client, "create_directory", {"path": f"{project}/new"})
        passes(client, "write_file", write)
    assert (project / "new/a.txt").read_text() == "a"


def test_equal_calls_held_at_a_time_and_both_approved_are_two_effects(
    gate: Lychgate, notes: peers.Notes
) -> None:
    message = {"to": "z@example.com", "text": "twice"}
    with wire(gate, "notes") as client:
        client.handshake()
        for id in (1, 2):
            client.send(call(id, "send_message", message))
        tickets: list[dict] = []
        while len(tickets) < 2:
            tickets = gate.pending()
        for ticket in tickets:
            gate.run("approve", ticket["id"], passphrase=PASSPHRASE)
        for _ in range(2):
            reply = client.receive()
            assert reply and "dev.lychgate/decision" not in str(reply), reply
    assert len(notes.effects()) == 2
