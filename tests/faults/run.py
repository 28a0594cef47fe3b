"""The parts of a run, some at a time, and what came of them."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from . import errors, kills, powercut, strace, table
from .stand import Stand

# One strike of so many is made in the short run.
SHORT = {"kills": 5, "errors": 45}
# Calls of each client, and images, of one recorded run.
CUTS = {"short": (16, 70), "full": (60, 250)}
SHARDS = 6
PARTS = ["controls", "kills", "errors", "power"]


def controls(folder: Path, seed: int) -> list[str]:
    """Three things that must not pass; what the checks said of each."""
    said = []
    for name, control in {
        "a store that forgot a dispatch": kills.control,
        "a write that never was": lambda stand: errors.Errors(stand).control(),
        "a disk on which no sync does anything": lambda stand: powercut.control(stand, seed),
    }.items():
        place = folder / name.replace(" ", "-")
        place.mkdir()
        said.append(f"{name}: {control(Stand(place)).splitlines()[0][:160]}")
    return said


def plan(folder: Path, part: str) -> object:
    return kills.plan(Stand(folder)) if part == "kills" else errors.Errors(Stand(folder)).plan()


def kill(folder: Path, plan: kills.Plan, beyond: bool) -> kills.Report:
    return kills.run(Stand(folder), plan, beyond)


def error(folder: Path, strikes: list[tuple], last: dict[tuple, int]) -> errors.Report:
    return errors.Errors(Stand(folder)).run(strikes, last)


def power(folder: Path, seed: int, full: bool) -> powercut.Report:
    """Each of these records a run of its own."""
    return powercut.run(Stand(folder), *CUTS["full" if full else "short"], seed)


def main(folder: Path) -> int:
    parser = argparse.ArgumentParser(prog="cargo xtask faults")
    parser.add_argument("--full", action="store_true", help="every point instead of a sample")
    parser.add_argument("--table", action="store_true", help="write the counts into docs/RELIABILITY.md")
    parser.add_argument("--seed", type=int, help="repeat a run's draws")
    parser.add_argument("--jobs", type=int, default=2, help="how many gates at a time")
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    print(f"faults: seed {seed}, in {folder}", flush=True)
    try:
        version = strace.check_usable(folder)
    except strace.Unusable as why:
        print(f"faults: NOTHING WAS TESTED: {why}", file=sys.stderr)
        return 1
    started = time.monotonic()
    reports, failures = run(folder, seed, options)
    took = time.monotonic() - started
    text = table.text(reports, failures, version, seed, took, options.full)
    print(text)
    for failure in failures:
        print(f"faults: VIOLATION: {failure}", file=sys.stderr)
    if options.table and not options.only:
        table.write(text)
    return 1 if failures else 0


def run(folder: Path, seed: int, options: argparse.Namespace) -> tuple[dict[str, list], list[str]]:
    """All parts, some at a time. Their reports and every violation."""
    reports: dict[str, list] = {name: [] for name in PARTS}
    failures: list[str] = []
    with ProcessPoolExecutor(options.jobs) as pool:

        def submit(work: Callable, name: str, *arguments: object) -> tuple[str, Future]:
            return name, pool.submit(one, work, folder / name, *arguments)

        wanted = [options.only] if options.only else PARTS
        plans = {
            name: submit(plan, f"plan-{name}", name)[1] for name in ("kills", "errors") if name in wanted
        }
        running = [submit(controls, "controls", seed)] if "controls" in wanted else []
        for name, future in plans.items():
            found, why = future.result()
            failures += [f"{name}: {why}"] if why else []
            running += shards(submit, name, found, seed, options.full) if found else []
        if "power" in wanted:
            count = SHARDS if options.full else 1
            running += [submit(power, f"power{n}", seed + n, options.full) for n in range(count)]
        for name, future in running:
            report, why = future.result()
            print(f"faults: {name} done", flush=True)
            if why:
                failures.append(f"{name}: {why}")
                continue
            reports[name.rstrip("0123456789")].append(report)
            failures += getattr(report, "failures", [])
    return reports, failures


def shards(submit: Callable, name: str, found, seed: int, full: bool) -> Iterator[tuple[str, Future]]:
    """One plan dealt out, so that every strike is made exactly once."""
    strikes = found.strikes if name == "kills" else found
    last = errors.last(strikes) if name == "errors" and full else {}
    random.Random(seed).shuffle(strikes)
    count = SHARDS if full else 1
    for n in range(count):
        mine = strikes[n::count] if full else strikes[: len(strikes) // SHORT[name]]
        if name == "kills":
            yield submit(kill, f"kills{n}", kills.Plan(found.known, mine), full and n == 0)
        else:
            ends = {group: end for at, (group, end) in enumerate(last.items()) if at % count == n}
            yield submit(error, f"errors{n}", mine, ends)


def one(work: Callable, place: Path, *arguments: object) -> tuple[object, str | None]:
    place.mkdir()
    try:
        return work(place, *arguments), None
    except Exception:
        return None, traceback.format_exc()
