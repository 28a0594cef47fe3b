"""SIGKILL before and after every system call of a dispatch that changes something."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

from . import witness
from .stand import Client, Stand, Told, judge
from .strace import CHANGING, Attached, Call
from .witness import AT_REST, CONSUMED

# Longer than the store waits before it writes down deliveries (250 ms).
DELIVERED = 0.45
# In place of the name of the log, which is another on every stand.
LOG = "NAME"
HELD = "delay_exit=20000000"


@dataclass(frozen=True, order=True)
class Point:
    """Where in a dispatch: during which part, which call, on what."""

    part: str
    call: str
    target: str


@dataclass
class Report:
    """What was struck, and in which state the act was found."""

    points: dict[Point, Counter] = field(default_factory=dict)
    found: Counter = field(default_factory=Counter)
    after: Counter = field(default_factory=Counter)
    runs: int = 0
    planned: int = 0
    missed: int = 0
    failures: list[str] = field(default_factory=list)


def kind(stand: Stand, target: str) -> str:
    """A name for what a call is on that is the same in every run on every stand."""
    for anonymous in ("pipe", "socket", "anon_inode:[eventfd]"):
        if target.startswith(anonymous):
            return anonymous
    return target.removeprefix(f"{stand.home}/").replace(stand.log_name(), LOG)


def filters(stand: Stand, kind: str) -> list[str]:
    """The `-P` options that pick exactly this kind in the gate that is running now."""
    names = [kind] if kind.startswith("anon_inode") else [str(stand.home / kind.replace(LOG, stand.log_name()))]
    if kind in ("pipe", "socket"):
        [pid] = stand.gate_pids()
        links = set()
        for entry in os.listdir(f"/proc/{pid}/fd"):
            links.add(os.readlink(f"/proc/{pid}/fd/{entry}"))
        names = sorted(link for link in links if link.startswith(f"{kind}:"))
    return [option for name in names for option in ("-P", name)]


def record(stand: Stand) -> list[tuple[Point, Call]]:
    """The calls of one whole dispatch, with nothing wrong."""
    stand.reset()
    with stand.running(), stand.client() as client:
        warm(client)
        attached = trace(stand, [])
        assert client.write("x").word == "effected"
        time.sleep(DELIVERED)
        calls = attached.detach()
    stand.settle()
    part, recorded = "dispatch commit", []
    for call in calls:
        where = kind(stand, call.target)
        if where == "pipe" and part == "dispatch commit":
            part = "effect"
        elif where.startswith("state/") and part == "effect":
            part = "outcome commit"
        elif where == "socket" and part == "outcome commit":
            part = "answer"
        elif where.startswith("state/") and part == "answer":
            part = "delivery"
        # Written beside all of these, at its own pace.
        at = "anchor" if "/anchors" in where else part
        recorded.append((Point(at, call.name, where), call))
    return recorded


def warm(client: Client) -> None:
    """One dispatch with all it leaves behind, so that the next one is like any other."""
    assert client.write("warm").word == "effected"
    time.sleep(DELIVERED)


def trace(stand: Stand, options: list[str]) -> Attached:
    [pid] = stand.gate_pids()
    calls = ",".join(f"?{call}" for call in CHANGING)
    return Attached(pid, stand.folder / "calls.log", ["-e", f"trace={calls}", *options])


def groups(recorded: list[tuple[Point, Call]]) -> dict[tuple[str, str], list[Point]]:
    """For each call on each kind of thing, the points of its first, second … in the busiest thread."""
    threads: dict[tuple[str, str], dict[int, list[Point]]] = {}
    for point, call in recorded:
        of = threads.setdefault((point.call, point.target), {})
        of.setdefault(call.thread, []).append(point)
    return {key: max(of.values(), key=len) for key, of in threads.items()}


@dataclass
class Plan:
    """Every strike there is to make, by one recording."""

    known: dict[tuple[str, str], list[Point]]
    strikes: list[tuple[tuple[str, str], int, str]]


def plan(stand: Stand) -> Plan:
    known = groups(record(stand))
    strikes = [
        (group, n, side)
        for group, points in known.items()
        for n in range(1, len(points) + 1)
        for side in ("before", "after")
    ]
    return Plan(known, strikes)


def run(stand: Stand, plan: Plan, beyond: bool) -> Report:
    """Makes the strikes; with `beyond` those after the last recorded one too, until nothing is left to strike."""
    report = Report(planned=len(plan.strikes))
    for group, n, side in plan.strikes:
        # Another interleaving than the recorded one leaves nothing to strike; once more, then.
        struck = any(attempt(stand, report, plan.known, group, n, side) for _ in range(4))
        report.missed += not struck
    for group, points in plan.known.items() if beyond else ():
        n = len(points) + 1
        while attempt(stand, report, plan.known, group, n, "before"):
            n += 1
    return report


def attempt(stand: Stand, report: Report, known: dict, group: tuple[str, str], n: int, side: str) -> bool:
    struck = True
    with stand.attempt(f"kill {side} {group} {n}", report.failures):
        struck = strike(stand, report, known[group], group, n, side)
    return struck


def control(stand: Stand) -> str:
    """What a gate that forgets would look like: killed after the effect, the store put back. It must not pass."""
    stand.reset()
    assert stand.start(), stand.said()
    with stand.client() as client:
        warm(client)
        attached = trace(stand, [*filters(stand, "pipe"), "-e", f"inject=write:{HELD}:when=1"])
        told, killed = wait(stand, client, attached, "after")
        attached.detach()
    stand.settle()
    assert killed and stand.reached("x") == 1, "the control's own kill missed"
    shutil.rmtree(stand.state)
    shutil.copytree(stand.kept / "state", stand.state)
    try:
        check(stand, Report(), told, "control")
    except AssertionError as fault:
        return str(fault)
    raise AssertionError("a store that forgot a dispatch passes: these checks see nothing")


def strike(
    stand: Stand, report: Report, points: list[Point], group: tuple[str, str], n: int, side: str
) -> bool:
    """One kill and all that must hold after it. Whether there was anything to strike."""
    call, target = group
    action = "signal=SIGKILL" if side == "before" else HELD
    stand.reset()
    assert stand.start(), "the gate does not start\n" + stand.said()
    with stand.client() as client:
        warm(client)
        options = [*filters(stand, target), "-e", f"inject={call}:{action}:when={n}"]
        attached = trace(stand, options)
        told, killed = wait(stand, client, attached, side)
        attached.detach()
    stand.kill()
    stand.settle()
    what = f"killed {side} {call} {n} on {target}" if killed else f"nothing to kill at {call} {n} on {target}"
    check(stand, report if killed else Report(), told, what)
    if killed:
        report.runs += 1
        point = points[n - 1] if n <= len(points) else points[-1]
        report.points.setdefault(point, Counter())[side] += 1
    return killed


def wait(stand: Stand, client: Client, attached: Attached, side: str) -> tuple[Told, bool]:
    """Calls, and waits until the gate is dead, or all is done and it is not."""
    told, done = Told("x"), 0.0
    id = client.ask("x")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if stand.gate.poll() is not None:
            break
        if side == "after" and attached.delayed():
            os.kill(stand.gate.pid, signal.SIGKILL)
            # strace holds the thread until the delay is over; without it the dead are free to go.
            attached.process.kill()
            stand.gate.wait()
            break
        if (reply := client.look()) and reply.get("id") == id:
            told, done = judge("x", reply), time.monotonic()
        if done and time.monotonic() > done + DELIVERED:
            return told, False
        time.sleep(0.001)
    else:
        raise AssertionError("neither an answer nor an end\n" + stand.said())
    # What was on its way when the gate died has arrived.
    while told.word is None and (reply := client.receive()) is not None:
        if reply.get("id") == id:
            told = judge("x", reply)
    return told, True


def check(stand: Stand, report: Report, told: Told, what: str) -> None:
    """What must hold in the image, and once a gate runs on it again."""
    image = witness.read(stand.state)
    reached, ran = stand.reached("x"), stand.effects("x")
    witness.check_effect(image, stand.root, "x", max(reached, ran), what)
    witness.check_told(image, stand.root, told, what)
    states = [act.state for act in image.of(stand.root, "x")]
    assert len(states) <= 1, f"{what}: {states}"
    report.found[states[0] if states else "no act"] += 1

    # A client that was told nothing calls again; one that was told goes on.
    next = "x" if told.word is None else "y"
    with stand.running():
        with stand.client() as client:
            again = client.write(next)
        stand.verify()
    stand.settle()
    later = witness.read(stand.state)
    witness.check_follows(image, later, what)
    total = stand.effects("x")
    assert total <= 1, f"{what}: the effect ran {total} times"
    assert told.word != "effected" or total == 1, f"{what}: told of an effect that never ran"
    assert {act.state for act in later.acts} <= AT_REST, f"{what}: {later.acts}"
    consumed = set(states) & CONSUMED
    if next == "y" or not consumed:
        assert again.word == "effected" and stand.effects(next) == 1, f"{what}: {again}"
    else:
        # The recorded answer, or nobody knows; never another effect.
        assert again.word in ("effected", "EF-063"), f"{what}: {again}"
    last = later.of(stand.root, "x")[-1:]
    report.after[last[0].state if last else "no act"] += 1
    witness.check_effect(later, stand.root, "x", total, what)
