"""strace: how it is started, how it attaches, and what its log says.

How injection behaves (strace 6.1, seen by experiment and relied on here):
- `when=N` counts separately for every thread and every system call, from the moment of attaching, and only those calls
  that match `-P`.
- `signal=SIGKILL` strikes on entry: the call is not performed. That is "before".
- `delay_exit=T` performs the call, writes the line with `(DELAYED)` at once, and holds the thread in it. A kill in that
  time is "after": the call has happened, its caller never learns of it.
- `error=E` does not perform the call.
- `-P` takes the names of pipes and sockets (`pipe:[123]`) as well as paths.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Whatever changes something outside the process: files, pipes, sockets, locks.
CHANGING = [
    "write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg", "sendfile",
    "fsync", "fdatasync", "sync_file_range", "msync", "ftruncate", "truncate", "fallocate",
    "openat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "link", "linkat", "symlinkat",
    "mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "fcntl", "flock",
]  # fmt: skip
# `fcntl` counts only where it takes or gives a lock.
LOCKS = ("F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW")


class Unusable(Exception):
    """strace is not there, or may not do its work: then nothing of this can be tested."""


def check_usable(folder: Path) -> str:
    """Tries a kill for real, and gives strace's version."""
    if shutil.which("strace") is None:
        raise Unusable("`strace` is not installed (Debian: apt-get install strace)")
    log = folder / "usable.log"
    command = ["strace", "-f", "-o", str(log), "-e", "trace=write"]
    command += ["-e", "inject=write:signal=SIGKILL:when=1", "echo", "alive"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.stdout or "killed by SIGKILL" not in (log.read_text() if log.exists() else ""):
        raise Unusable(
            "strace cannot trace and inject here (is ptrace forbidden, by seccomp, yama or a container?): "
            + (done.stderr.strip() or f"status {done.returncode}")
        )
    version = subprocess.run(["strace", "--version"], capture_output=True, text=True).stdout
    return version.split("\n")[0].rpartition(" ")[2]


@dataclass(frozen=True)
class Call:
    """One system call of the log."""

    thread: int
    name: str
    rest: str
    # What its descriptor or its first path is.
    target: str
    result: str
    injected: bool
    delayed: bool


LINE = re.compile(r"^(\d+) +(?:\d+\.\d+ )?(.*)$")
CALL = re.compile(r"^(\w+)\((.*)$", re.S)
FILE = re.compile(r"^\d+<([^>]*)>|^(?:AT_FDCWD(?:<[^>]*>)?, )?\"([^\"]*)\"")


def parse(lines: Iterable[str]) -> list[Call]:
    """The calls of a log that change something, each where it ended, or where it began when it never did."""
    return [call for call in parse_all(lines) if changes(call)]


def changes(call: Call) -> bool:
    """Whether a call changes anything: not every `fcntl` and `openat` does."""
    if call.name == "fcntl":
        return any(f", {lock}, " in call.rest for lock in LOCKS)
    return call.name != "openat" or bool(re.search(r"O_CREAT|O_TRUNC", call.rest))


def parse_all(log: Path | Iterable[str]) -> list[Call]:
    """The same with the calls that only look."""
    lines = log.read_text("utf-8", "replace").split("\n") if isinstance(log, Path) else log
    begun: dict[int, str] = {}
    calls = []
    for line in lines:
        if not (found := LINE.match(line.rstrip("\n"))):
            continue
        thread, said = int(found[1]), found[2]
        if said.endswith("<unfinished ...>"):
            begun[thread] = said.removesuffix("<unfinished ...>").rstrip()
            continue
        if said.startswith("<... "):
            said = begun.pop(thread, "") + said.partition(" resumed>")[2]
        if call := _call(thread, said):
            calls.append(call)
    calls += [call for thread, said in begun.items() if (call := _call(thread, said + ") = ?"))]
    return calls


def _call(thread: int, said: str) -> Call | None:
    if not (found := CALL.match(said)):
        return None
    name, rest = found[1], found[2]
    at = FILE.match(rest)
    target = (at[1] or at[2] or "") if at else ""
    result = re.split(r"\) += ", rest)[-1]
    return Call(thread, name, rest, target, result, "(INJECTED)" in result, "(DELAYED)" in result)


class Attached:
    """strace on every thread of a process."""

    def __init__(self, pid: int, log: Path, options: Iterable[str]) -> None:
        self.pid, self.log = pid, log
        log.unlink(missing_ok=True)
        command = ["strace", "-f", "-y", "-o", str(log), *options, "-p", str(pid)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 10
        while not self.on():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self.process.stderr.read().decode().strip()
                raise Unusable(f"strace does not attach (the gate closes itself to others; be root): {said}")
            time.sleep(0.002)

    def on(self) -> bool:
        try:
            statuses = [file.read_text() for file in Path(f"/proc/{self.pid}/task").glob("*/status")]
        except OSError:
            return False
        return bool(statuses) and all("TracerPid:\t0\n" not in status for status in statuses)

    def delayed(self) -> bool:
        """Whether a thread is held, or was."""
        return self.log.exists() and b"(DELAYED)" in self.log.read_bytes()

    def detach(self) -> list[Call]:
        """Ends strace; the process goes on if it lives. Gives what it saw."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        return parse(self.log.read_text("utf-8", "replace").splitlines()) if self.log.exists() else []
