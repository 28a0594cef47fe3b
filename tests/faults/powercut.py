"""Power cuts: everything the gate wrote, recorded; a disk image for many moments; the gate started on each."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from . import witness
from .disk import MODES, Disk
from .kills import DELIVERED
from .recording import NOT_OURS, TRACED, Event, replay
from .stand import Stand, Told, call
from .witness import AT_REST, CONSUMED, Image

CLIENTS, DEPTH = 3, 4


@dataclass
class Report:
    events: int = 0
    acts: int = 0
    syncs: int = 0
    # Pages that a checkpoint wrote back.
    pages: int = 0
    # (where, mode) -> images
    images: Counter = field(default_factory=Counter)
    lost: Counter = field(default_factory=Counter)
    repeated: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


# -- recording ----------------------------------------------------------------------------------


def record(stand: Stand, calls: int) -> tuple[list[Event], Image]:
    """Clients at work under strace, from the gate's start to its end. What it did, and what its store says in the end."""
    stand.reset()
    log = stand.folder / "powercut.log"
    wrapper = ["strace", "-f", "-y", "-xx", "-s", "2000000", "-o", str(log), "-e", f"trace={TRACED}"]
    faults: list[BaseException] = []
    with stand.running(*wrapper):
        threads = [threading.Thread(target=load, args=(stand, n, calls, faults)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(DELIVERED)
    stand.settle()
    assert not faults, faults
    events = list(replay(stand, log))
    log.unlink()
    return events, witness.read(stand.state)


def load(stand: Stand, number: int, calls: int, faults: list[BaseException]) -> None:
    """One client with some calls under way at a time, and now and then one that is denied."""
    try:
        with stand.client() as client:
            todo = [f"n{number}x{n}" for n in range(calls)]
            under_way: set[str] = set()
            while todo or under_way:
                while todo and len(under_way) < DEPTH:
                    name = todo.pop()
                    under_way.add(name)
                    arguments = {"content": name, "path": str(stand.root / f"{name}.txt")}
                    if name.endswith("7"):
                        arguments["unknown"] = "so this is denied"
                    client.send(call(name, "write_note", arguments))
                reply = client.receive()
                assert reply is not None, "the gate has gone\n" + stand.said()
                under_way.discard(reply.get("id"))
    except BaseException as fault:
        faults.append(fault)


# -- cutting ------------------------------------------------------------------------------------


@dataclass
class Facts:
    """What the world outside knows at some moment."""

    asked: list[str] = field(default_factory=list)
    told: dict[str, Told] = field(default_factory=dict)


def run(stand: Stand, calls: int, images: int, seed: int) -> Report:
    """Records one run and cuts it `images` times; each time the gate starts on what is left."""
    report = Report()
    events, final = record(stand, calls)
    report.events, report.acts = len(events), len(final.acts)
    report.syncs = sum(event.kind == "synced" for event in events)
    report.pages = sum(event.kind == "write" and event.name.endswith("store.db") for event in events)
    plan = cuts(events, images, random.Random(seed))
    images_of(stand, report, events, final, plan, seed)
    return report


def control(stand: Stand, seed: int) -> str:
    """A disk on which no sync does anything: the same cuts must find lost receipts on it."""
    report = Report()
    events, final = record(stand, 4)
    lying = [event for event in events if event.kind != "synced"]
    images_of(stand, report, lying, final, {len(lying) - 1: [("between", "dropped")] * 2}, seed)
    assert report.failures, "a disk that never syncs passes: these checks see nothing"
    return report.failures[0]


def images_of(
    stand: Stand, report: Report, events: list[Event], final: Image, plan: dict[int, list], seed: int
) -> None:
    needed = receipts_needed(final)
    disk, facts = Disk(stand.kept, NOT_OURS), Facts()
    number = 0
    for position, event in enumerate(events):
        for where, mode in plan.get(position, []):
            number += 1
            what = f"power cut {number} before event {position} ({where}, unsynced writes: {mode}, seed {seed})"
            with stand.attempt(what, report.failures):
                cut(stand, report, disk, facts, final, needed, mode, what)
                report.images[where, mode] += 1
        step(disk, facts, event)


def cuts(events: list[Event], images: int, draw: random.Random) -> dict[int, list[tuple[str, str]]]:
    """At each sync, before it came back and after; the rest anywhere. Cuts come before the event of that number."""
    plan: dict[int, list[tuple[str, str]]] = {}
    synced = [n for n, event in enumerate(events) if event.kind == "synced"]
    wanted = []
    for n in synced:
        wanted += [(n, "in a sync", mode) for mode in MODES]
        wanted += [(n + 1, "after a sync", mode) for mode in ("dropped", "any subset")]
    draw.shuffle(wanted)
    if len(wanted) > images * 3 // 4:
        # Every sync point once before any comes twice.
        first = list({cut[0]: cut for cut in wanted}.values())
        rest = [cut for cut in wanted if cut not in first]
        wanted = (first + rest)[: max(len(first), images * 3 // 4)]
    writes = [n for n, event in enumerate(events) if event.kind in ("write", "truncate", "rename", "told", "asked")]
    while len(wanted) < images:
        wanted.append((draw.choice(writes), "between", draw.choice(MODES)))
    for n, where, mode in wanted:
        plan.setdefault(n, []).append((where, mode))
    return plan


def step(disk: Disk, facts: Facts, event: Event) -> None:
    match event.kind:
        case "write":
            disk.write(event.name, event.at, event.data)
        case "truncate":
            disk.truncate(event.name, event.at)
        case "create":
            disk.create(event.name)
        case "rename":
            disk.rename(event.name, event.other)
        case "unlink":
            disk.unlink(event.name)
        case "synced":
            disk.sync(event.name)
        case "asked":
            facts.asked.append(event.name)
        case "told":
            facts.told[event.name] = event.told


def receipts_needed(final: Image) -> dict[str, dict[str, int]]:
    """For each act, the index of its receipt of each state."""
    found: dict[str, dict[str, int]] = {}
    for index, (_, line) in enumerate(final.record):
        receipt = json.loads(line)
        if receipt.get("act") and receipt.get("state"):
            found.setdefault(receipt["act"]["candidate_act_id"], {})[receipt["state"]] = index
    return found


def cut(
    stand: Stand,
    report: Report,
    disk: Disk,
    facts: Facts,
    final: Image,
    needed: dict[str, dict[str, int]],
    mode: str,
    what: str,
) -> None:
    """One image, all that must hold of it, and a gate on it."""
    draw = random.Random(what)
    stand.reset()
    disk.build(stand.home, mode, draw)
    if draw.random() < 0.3:
        # The index of the log lives in shared memory; what a crash leaves of it means nothing.
        (stand.state / "store.db-shm").write_bytes(draw.randbytes(32768))
        (stand.state / "store.db-shm").chmod(0o600)
    image = witness.read(stand.state)
    witness.check_follows(image, final, what)
    for name in facts.asked:
        acts = image.of(stand.root, name)
        assert any(act.state in CONSUMED for act in acts), f"{what}: {name} reached its server, the store says {acts}"
        assert all(needed[act.id]["dispatched"] < len(image.record) for act in acts), what
    for told in facts.told.values():
        acknowledged(image, final, stand, told, needed, what)
    report.lost["images that lost receipts nobody was told of"] += len(image.record) < len(final.record)
    restart(stand, report, image, facts, draw, what)


def acknowledged(
    image: Image, final: Image, stand: Stand, told: Told, needed: dict[str, dict[str, int]], what: str
) -> None:
    """The receipts behind an answer are in the record, at their index, with their leaf hash."""
    ids = [told.act] if told.act else [act.id for act in final.of(stand.root, told.name)]
    assert ids, f"{what}: {told} was answered and has no act"
    for id in ids:
        state = "effected" if told.word == "effected" else "refused"
        index = needed.get(id, {}).get(state)
        assert index is not None, f"{what}: {told} of {id} has receipts {needed.get(id)}"
        assert index < len(image.record), f"{what}: receipt {index} of {told} is lost"
        assert image.record[index] == final.record[index], f"{what}: receipt {index} of {told} is another"


def restart(stand: Stand, report: Report, image: Image, facts: Facts, draw: random.Random, what: str) -> None:
    """A gate starts on it and leaves nothing open; a client that heard nothing calls again."""
    unheard = [name for name in facts.asked if name not in facts.told]
    with stand.running():
        if unheard:
            name = draw.choice(unheard)
            with stand.client() as client:
                again = client.write(name)
            # Its effect may have run before the cut: whatever the answer, it does not run now.
            assert stand.reached(name) == 0, f"{what}: {name} was sent again: {again}"
            assert again.word in ("effected", "EF-063"), f"{what}: {name} again: {again}"
            report.repeated[again.word] += 1
        stand.verify()
    stand.settle()
    later = witness.read(stand.state)
    witness.check_follows(image, later, what)
    assert {act.state for act in later.acts} <= AT_REST, f"{what}: {later.acts}"
