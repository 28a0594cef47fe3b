"""A gate of its own for one test: home, configuration, state, clients, and a clean end.

Everything goes through the binary's public commands; the tests know nothing of its inside.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

BINARY = os.environ["LYCHGATE_BIN"]
PASSPHRASE = "four bells at the lych gate"
# A secret of the caller's environment that no server may ever see.
CALLER_SECRET = "caller-secret-5b1d"


class Refused(AssertionError):
    """A command of the binary that ended with another status than the test expects."""


class Lychgate:
    """One state folder and its gate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config" / "lychgate.toml"
        self.state = folder / "state"
        (folder / "config").mkdir()
        self.environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "LYCHGATE_CONFIG": str(self.config),
            "LYCHGATE_STATE_DIR": str(self.state),
            "CALLER_SECRET": CALLER_SECRET,
        }

    # -- commands -------------------------------------------------------------------------------

    def run(
        self,
        *arguments: str,
        passphrase: str | None = None,
        status: int | None = 0,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Runs one command; `passphrase` goes through a pipe, never through arguments."""
        command = [BINARY, *arguments]
        descriptors: tuple[int, ...] = ()
        if passphrase is not None:
            read, write = os.pipe()
            os.write(write, passphrase.encode() + b"\n")
            os.close(write)
            at = command.index("--") if "--" in command else len(command)
            command[at:at] = ["--passphrase-fd", str(read)]
            descriptors = (read,)
        try:
            done = subprocess.run(
                command,
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                pass_fds=descriptors,
                start_new_session=True,
            )
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if status is not None and done.returncode != status:
            raise Refused(
                f"`{' '.join(arguments)}` ended with {done.returncode}, expected {status}\n"
                f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}\n{self.logs()}"
            )
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)

    def init(self) -> None:
        self.run("init", passphrase=PASSPHRASE)

    def add(
        self, name: str, command: list[str], options: Iterable[str] = (), **classes: str
    ) -> str:
        """`add NAME -- COMMAND`, taking what is proposed except for the classes given."""
        chosen: list[str] = [*options]
        for tool, consequence in classes.items():
            chosen += ["--class", f"{tool}={consequence}"]
        command = ["add", name, "--accept-proposed", *chosen, "--", *command]
        return self.run(*command, passphrase=PASSPHRASE).stdout

    def configure(self, after: str, *lines: str) -> None:
        """Puts lines into the configuration, below the one that is `after`, and applies them."""
        text = self.config.read_text("utf-8")
        assert text.count(after + "\n") == 1, f"{after!r} is not one line of\n{text}"
        self.config.write_text(text.replace(after + "\n", "\n".join([after, *lines, ""])), "utf-8")
        self.run("apply", passphrase=PASSPHRASE)

    # -- approvals ------------------------------------------------------------------------------

    def pending(self) -> list[dict]:
        """The tickets that wait for a person."""
        return self.json("pending")["pending"]

    async def wait_pending(self, count: int = 1) -> list[dict]:
        """Waits until that many tickets wait, and gives them."""

        async def enough() -> list[dict] | None:
            tickets = await anyio.to_thread.run_sync(self.pending)
            return tickets if len(tickets) >= count else None

        return await eventually(enough, f"{count} pending ticket(s)")

    async def approve(self, ticket: str, status: int | None = 0) -> None:
        await anyio.to_thread.run_sync(
            lambda: self.run("approve", ticket, passphrase=PASSPHRASE, status=status)
        )

    async def deny(self, ticket: str) -> None:
        await anyio.to_thread.run_sync(lambda: self.run("deny", ticket, passphrase=PASSPHRASE))

    def acts(self, limit: int = 1000) -> list[dict]:
        """The newest acts, oldest first."""
        return self.json("acts", "--limit", str(limit))["acts"]

    def states(self) -> list[str]:
        """The lifecycle state of every act, oldest first."""
        return [act["state"] for act in self.acts()]

    def act(self, id: str) -> dict:
        [found] = [act for act in self.acts() if act["id"] == id]
        return found

    def status(self) -> dict | None:
        """How the gate is; nothing when none runs, or one that is on its way out."""
        done = self.run("gate", "status", "--json", status=None)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def pid(self) -> int:
        """The gate's process."""
        return self.status()["pid"]

    def kill(self) -> None:
        """Ends the gate as a crash would, and waits until it is gone."""
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        until(lambda: is_zombie(pid), "the gate's end")

    # -- clients --------------------------------------------------------------------------------

    def parameters(self, name: str) -> StdioServerParameters:
        return StdioServerParameters(command=BINARY, args=["mcp", name], env=self.environment)

    @contextlib.asynccontextmanager
    async def client(self, name: str, **options: Any) -> AsyncIterator[Client]:
        """The Python SDK's client, connected to `lychgate mcp NAME`."""
        async with Client(self.parameters(name), read_timeout_seconds=60, **options) as client:
            yield client

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Stops the gate; anything that is left of it then is a fault."""
        try:
            if self.state.exists():
                self.run("gate", "stop", status=None, timeout=20)
        finally:
            left = self._leftovers(patience=5)
        if left:
            raise AssertionError("processes left after `gate stop`:\n" + "\n".join(left) + self.logs())

    def _leftovers(self, patience: float) -> list[str]:
        deadline = time.monotonic() + patience
        while (found := dict(processes_of(self.folder))) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return [f"{pid}: {command}" for pid, command in found.items()]

    def logs(self) -> str:
        """The gate's own log files, for the report of a test that failed."""
        parts = []
        for path in sorted(self.state.rglob("*.log")) if self.state.exists() else []:
            parts.append(f"--- {path.name}\n{path.read_text('utf-8', 'replace')[-8000:]}")
        return "\n".join(parts)


def processes_of(folder: Path) -> Iterator[tuple[int, str]]:
    """Every other process that names the folder in its arguments, environment or working folder.

    Each test has a folder of its own, so these are processes that this test caused.
    """
    mark = str(folder).encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            seen = command + (entry / "environ").read_bytes()
            seen += os.readlink(entry / "cwd").encode()
        except OSError:
            continue
        # A process that has ended and was not waited for yet has no command line any more.
        if command and mark in seen:
            yield int(entry.name), command.replace(b"\0", b" ").decode("utf-8", "replace").strip()


def is_zombie(pid: int) -> bool:
    """Whether a process has ended with all its threads, waited for or not: its files are closed."""
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")
        return threads == [str(pid)] and ") Z" in Path(f"/proc/{pid}/stat").read_text()
    return True


def until(look: Callable[[], Any], what: str, patience: float = 30) -> Any:
    """Asks until the answer is true, and gives it."""
    deadline = time.monotonic() + patience
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.02)
    return found


async def eventually(look: Callable[[], Any], what: str, patience: float = 30) -> Any:
    """Asks until the answer is true, and gives it."""
    with anyio.move_on_after(patience):
        while True:
            if found := await look():
                return found
            await anyio.sleep(0.05)
    raise AssertionError(f"not within {patience} s: {what}")


def text(result: CallToolResult) -> str:
    """The text of a result."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def decision(result: CallToolResult) -> dict:
    """The decision object of a denial: under our own key in `_meta`, whatever that key is."""
    found = [
        value
        for value in (result.meta or {}).values()
        if isinstance(value, dict) and str(value.get("code", "")).startswith("EF-")
    ]
    assert len(found) == 1, f"no single decision object in {result.meta}"
    return found[0]


def assert_denied(result: CallToolResult, code: str) -> None:
    """A denial as PROFILE §6 says: an error result, a code and a name in text and decision."""
    assert result.is_error, result
    found = decision(result)
    assert found["code"] == code, found
    assert isinstance(found["retryable"], bool), found
    assert code in text(result) and found["name"] in text(result), result
    assert result.structured_content is None, result
