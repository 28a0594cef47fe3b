"""The parts of a run, some at a time, and what came of them."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from . import errors, kills, powercut, strace, table
from .stand import Stand

# One strike of so many is made in the short run.
SHORT = {"kills": 5, "errors": 45}
CUTS = {"short": (16, 70), "full": (60, 250)}
SHARDS = 6


def kill(folder: Path, seed: int, full: bool, shard: tuple[int, int]) -> kills.Report:
    return kills.run(Stand(folder), 1 if full else SHORT["kills"], seed, shard)


def error(folder: Path, seed: int, full: bool, shard: tuple[int, int]) -> errors.Report:
    return errors.Errors(Stand(folder)).run(1 if full else SHORT["errors"], seed, shard)


def power(folder: Path, seed: int, full: bool, shard: tuple[int, int]) -> powercut.Report:
    # Each shard records a run of its own.
    return powercut.run(Stand(folder), *CUTS["full" if full else "short"], seed + shard[0])


def controls(folder: Path, seed: int, full: bool, shard: tuple[int, int]) -> list[str]:
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


PARTS: dict[str, Callable] = {"controls": controls, "kills": kill, "errors": error, "power": power}


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
    shards = SHARDS if options.full else 1
    names = [options.only] if options.only else list(PARTS)
    tasks = [(name, (n, shards)) for name in names for n in range(1 if name == "controls" else shards)]
    reports: dict[str, list] = {name: [] for name in PARTS}
    failures: list[str] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [
            (name, pool.submit(one, name, folder, seed, options.full, shard)) for name, shard in tasks
        ]
        for name, future in running:
            report, why = future.result()
            if why:
                failures.append(f"{name}: {why}")
            else:
                reports[name].append(report)
                failures += getattr(report, "failures", [])
            print(f"faults: {name} done", flush=True)
    return reports, failures


def one(name: str, folder: Path, seed: int, full: bool, shard: tuple[int, int]) -> tuple[object, str | None]:
    place = folder / f"{name}{shard[0]}"
    place.mkdir()
    try:
        return PARTS[name](place, seed, full, shard), None
    except Exception:
        return None, traceback.format_exc()
