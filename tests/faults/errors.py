"""EIO, ENOSPC and short writes at every call the gate makes on its store."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from . import strace, witness
from .kills import DELIVERED
from .stand import Client, Stand, Told
from .strace import Attached, Call
from .witness import AT_REST

FILES = ["store.db", "store.db-wal", "store.db-shm", "store.db-journal"]
# What the store and the anchor do to their files, and how each can fail. `N` once, `N+` from then on, as a disk that stays full.
FAULTS = {
    "pwrite64": [("error=EIO", ""), ("error=ENOSPC", "+"), ("retval=0", "")],
    "pread64": [("error=EIO", "")],
    "fdatasync": [("error=EIO", ""), ("error=ENOSPC", "+")],
    "fsync": [("error=EIO", ""), ("error=ENOSPC", "+")],
    "ftruncate": [("error=EIO", ""), ("error=ENOSPC", "+")],
    "fallocate": [("error=ENOSPC", "+")],
    "openat": [("error=EIO", ""), ("error=ENOSPC", "+"), ("error=EMFILE", "")],
    "fcntl": [("error=EIO", "")],
    "mmap": [("error=ENOMEM", "")],
    "unlink": [("error=EIO", "")],
    "newfstatat": [("error=EIO", "")],
    # Only the anchor is written so.
    "write": [("error=EIO", ""), ("error=ENOSPC", "+")],
    "rename": [("error=EIO", ""), ("error=ENOSPC", "+")],
    "mkdir": [("error=EACCES", "")],
}
CALLS = ["a", "b", "c"]
# The store writes its log back into the file when it has so many pages (crates/store/src/sqlite/open.rs).
CHECKPOINT = 1000
FRAME = 4096 + 24


@dataclass
class Report:
    """What was injected, and what became of gate and calls."""

    # (phase, call, fault) -> how many runs.
    injected: Counter = field(default_factory=Counter)
    # (phase, call, fault) -> what the gate did.
    gate: dict[tuple[str, str, str], Counter] = field(default_factory=dict)
    told: Counter = field(default_factory=Counter)
    planned: int = 0
    missed: int = 0
    failures: list[str] = field(default_factory=list)

    def note(self, key: tuple[str, str, str], gate: str, told: list[Told]) -> None:
        self.injected[key] += 1
        self.gate.setdefault(key, Counter())[gate] += 1
        for one in told:
            self.told[one.word or "no answer"] += 1


class Errors:
    """All of it on one stand."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.report = Report()
        self.brink = stand.folder / "brink"

    def prepare(self) -> None:
        """Keeps a home whose log is nearly full, so that three calls go through a checkpoint as well."""
        stand = self.stand
        stand.reset()
        with stand.running(), stand.client() as client:
            number = 0
            while wal_frames(stand.state) < CHECKPOINT - 40:
                number += 1
                assert client.write(f"fill{number}").word == "effected"
            time.sleep(DELIVERED)
        stand.settle()
        assert wal_frames(stand.state) < CHECKPOINT + 20, "the log was written back already"
        shutil.copytree(stand.home, self.brink, symlinks=True)
        made = witness.read(stand.kept / "state")
        self.before = {"work": witness.read(stand.state), "start": made, "control": made}

    def reset(self, phase: str) -> None:
        """The home on the brink of a checkpoint, or as it was made, where the log is shorter to read."""
        self.stand.reset(self.brink if phase == "work" else None)

    # -- what there is to fail ------------------------------------------------------------------

    def record(self) -> dict[tuple[str, str], int]:
        """How often the busiest thread makes each call, in each phase, with nothing wrong."""
        log = self.stand.folder / "io.log"
        self.reset("start")
        with self.stand.running(*self.wrapper(log, [])):
            pass
        self.stand.settle()
        most = {("start", name): n for name, n in busiest(strace.parse_all(log)).items()}
        self.reset("work")
        with self.stand.running(), self.stand.client() as client:
            attached = Attached(self.stand.gate.pid, log, self.options([]))
            self.work(client)
            self.stand.stop()
            attached.detach()
        self.stand.settle()
        calls = strace.parse_all(log)
        written = any(c.name == "pwrite64" and c.target.endswith("store.db") for c in calls)
        assert written, "no checkpoint in the recorded run"
        return most | {("work", name): n for name, n in busiest(calls).items()}

    def options(self, inject: list[str]) -> list[str]:
        names = [self.stand.state / name for name in [*FILES, ""]]
        for anchor in self.stand.anchors():
            names += [anchor, anchor.with_name(anchor.name + ".new"), anchor.parent]
        paths = [option for name in names for option in ("-P", str(name))]
        return ["-e", "trace=" + ",".join("?" + name for name in FAULTS), *paths, *inject]

    def wrapper(self, log: Path, inject: list[str]) -> list[str]:
        return ["strace", "-f", "-y", "-o", str(log), *self.options(inject)]

    # -- runs -----------------------------------------------------------------------------------

    def plan(self) -> list[tuple]:
        """Every strike there is to make, by one recording."""
        self.prepare()
        strikes: list[tuple] = [
            (phase, call, fault, onward, n)
            for (phase, call), most in sorted(self.record().items())
            for fault, onward in FAULTS.get(call, [])
            for n in range(1, most + 1)
        ]
        frames = range(CHECKPOINT - wal_frames(self.brink / "state"))
        return strikes + [("cut", n, part) for n in frames for part in (1, 12, 24, 24 + 512, 24 + 4095)]

    def run(self, strikes: list[tuple], last: dict[tuple, int]) -> Report:
        """Makes them. `last` says after which N to go on until nothing is left: threads interleave differently."""
        self.prepare()
        self.report.planned = len(strikes)
        size = (self.brink / "state" / "store.db-wal").stat().st_size
        for strike in strikes:
            if strike[0] == "cut":
                _, frame, part = strike
                with self.stand.attempt(f"the log {strike}", self.report.failures):
                    self.report.missed += not self.cut(size + FRAME * frame + part)
            else:
                self.report.missed += not any(self.attempt(*strike) for _ in range(2))
        for group, n in last.items():
            while self.attempt(*group, n + 1):
                n += 1
        return self.report

    def attempt(self, *strike) -> bool:
        struck = True
        with self.stand.attempt(f"fault {strike}", self.report.failures):
            struck = self.strike(*strike)
        return struck

    def control(self) -> str:
        """A disk that says it wrote and did not: nothing could stand that, so it must not pass."""
        self.prepare()
        try:
            # Not on the brink: a checkpoint writes the newest version of every page again, and heals it.
            self.strike("control", "pwrite64", "retval=4096", "", 2)
        except (AssertionError, sqlite3.Error) as fault:
            return str(fault)
        raise AssertionError("a write that never was passes: these checks see nothing")

    def strike(self, phase: str, call: str, fault: str, onward: str, n: int) -> bool:
        """One run with one fault. Whether it came to it."""
        inject = ["-e", f"inject={call}:{fault}:when={n}{onward}"]
        log = self.stand.folder / "io.log"
        self.reset(phase)
        what = f"{phase}: {call} {n}{onward} {fault}"
        told: list[Told] = []
        if phase == "start":
            up = self.stand.start(*self.wrapper(log, inject))
            if up:
                with self.stand.client(shake=False) as client:
                    if client.handshake():
                        told = self.work(client)
            status = self.end(what)
        else:
            assert self.stand.start(), "the gate does not start\n" + self.stand.said()
            up = True
            with self.stand.client() as client:
                attached = Attached(self.stand.gate.pid, log, self.options(inject))
                told = self.work(client)
                status = self.end(what)
                attached.detach()
        self.stand.settle()
        struck = "(INJECTED)" in log.read_text("utf-8", "replace")
        self.judge(phase, what, up, status, told)
        if phase == "start" and any(one.word == "effected" for one in told):
            self.check_name_is_safe(strace.parse_all(log), what)
        if struck:
            gate = ("ended itself" if status else "went on") if up else "did not start"
            self.report.note((phase, call, fault + (" onward" if onward else "")), gate, told)
        return struck

    def check_name_is_safe(self, calls: list[Call], what: str) -> None:
        """Nothing is acknowledged while the name of the log it is in may be lost: SQLite lets a failed sync of the
        folder pass (the sync that a power cut would have needed)."""
        log = str(self.stand.state / "store.db-wal")
        made = next(n for n, c in enumerate(calls) if c.name == "openat" and c.target == log and "O_CREAT" in c.rest)
        synced = [c for c in calls[made:] if "sync" in c.name and c.target == str(self.stand.state)]
        assert any(c.result.startswith("0") for c in synced), f"{what}: the folder was never synced: {synced}"

    def end(self, what: str) -> int:
        """The gate's end, its own or on demand; a status of ours, never a signal or a panic."""
        status = self.stand.stop()
        assert status in (0, 1, 2, 3, 4, 5, 70), f"{what}: the gate ended with {status}\n{self.stand.said()}"
        assert "panicked" not in self.stand.said(), f"{what}: {self.stand.said()}"
        return status

    def work(self, client: Client) -> list[Told]:
        """Three calls one after another, as far as they get."""
        told = []
        for name in CALLS:
            told.append(client.write(name))
            if told[-1].word is None:
                break
        else:
            # Once more than needed: deliveries are written a little later.
            time.sleep(DELIVERED)
        return told

    def cut(self, limit: int) -> bool:
        """A real short write: the kernel cuts what goes beyond a limit, and refuses the next (EFBIG)."""
        what = f"work: the log cut at {limit}"
        self.reset("work")
        # Python ignores SIGXFSZ; so does what it starts, and writes say EFBIG.
        assert self.stand.start(restore_signals=False), self.stand.said()
        with self.stand.client() as client:
            resource.prlimit(self.stand.gate.pid, resource.RLIMIT_FSIZE, (limit, limit))
            told = self.work(client)
            reached = (self.stand.state / "store.db-wal").stat().st_size == limit
            status = self.end(what)
        self.stand.settle()
        self.judge("work", what, True, status, told)
        if reached:
            gate = "ended itself" if status else "went on"
            self.report.note(("work", "pwrite64", "cut short, then EFBIG"), gate, told)
        return reached

    def judge(self, phase: str, what: str, up: bool, status: int, told: list[Told]) -> None:
        """What must hold in the image, and once a gate runs on it with a storage that works again."""
        stand = self.stand
        image = witness.read(stand.state)
        witness.check_follows(self.before[phase], image, what)
        assert up or status != 0, f"{what}: it did not start and says nothing of it"
        for name in CALLS:
            witness.check_effect(image, stand.root, name, max(stand.reached(name), stand.effects(name)), what)
        for one in told:
            witness.check_told(image, stand.root, one, what)
            denied = (one.word or "").startswith("EF-")
            assert not denied or stand.reached(one.name) == 0, f"{what}: {one} and yet it was sent"
        heard = {one.name: one for one in told}
        with stand.running(), stand.client() as client:
            for name in CALLS:
                # A client calls again what it was told did not happen, or nothing of.
                if heard.get(name) is None or heard[name].word not in ("effected", "indeterminate"):
                    again = client.write(name)
                    assert again.word in ("effected", "EF-063"), f"{what}: {name} again: {again}"
            assert client.write("last").word == "effected", what
            stand.verify()
        stand.settle()
        later = witness.read(stand.state)
        witness.check_follows(image, later, what)
        assert {act.state for act in later.acts} <= AT_REST, f"{what}: {later.acts}"
        for name in CALLS:
            total = stand.effects(name)
            assert total <= 1, f"{what}: {name} ran {total} times"
            witness.check_effect(later, stand.root, name, total, what)
            if name in heard and heard[name].word == "effected":
                assert total == 1, f"{what}: {name} was told and never ran"


def last(strikes: list[tuple]) -> dict[tuple, int]:
    """The highest N of each fault of each call."""
    highest: dict[tuple, int] = {}
    for *group, n in (strike for strike in strikes if strike[0] != "cut"):
        highest[tuple(group)] = max(n, highest.get(tuple(group), 0))
    return highest


def wal_frames(state: Path) -> int:
    """How many pages the log has, by its size."""
    log = state / "store.db-wal"
    return max(0, log.stat().st_size - 32) // FRAME if log.exists() else 0


def busiest(calls: list[Call]) -> dict[str, int]:
    """How often the thread that makes it oftenest makes each call."""
    counts = Counter((call.name, call.thread) for call in calls)
    most: dict[str, int] = {}
    for (name, _), n in counts.items():
        most[name] = max(n, most.get(name, 0))
    return most
