"""kill -9 of the gate at random moments under load. The server's durable log counts the effects.

LYCHGATE_KILLS says how often (200 by default), LYCHGATE_SEED repeats a run's moments.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import BINARY, Lychgate, is_zombie, until
from peers import Notes
from raw import INITIALIZE, INITIALIZED, call

KILLS = int(os.environ.get("LYCHGATE_KILLS", "200"))
# Kills that share one state folder and one test.
SHARED = 50
WRITERS = 3
# Calls of one connection under way at a time.
DEPTH = 4
CERTAINLY_NO_EFFECT = {"refused", "failed", "withdrawn", "expired"}


class Writer(threading.Thread):
    """Writes through the gate for ever, each thing once, over as many connections as it takes.

    What was not answered is called again, just as a client does that knows no better.
    """

    def __init__(self, gate: Lychgate, root: Path, number: int) -> None:
        super().__init__(daemon=True)
        self.gate, self.root, self.number = gate, root, number
        self.stopping = False
        self.count = 0
        self.answered: dict[str, str] = {}
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            unanswered: list[str] = []
            while not self.stopping:
                unanswered = self.connection(unanswered)
        except BaseException as fault:
            self.fault = fault

    def connection(self, first: list[str]) -> list[str]:
        """One connection until it breaks. Gives what was sent over it and not answered."""
        process = subprocess.Popen(
            [BINARY, "mcp", "notes"],
            env=self.gate.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        waiting: dict[int, str] = {}
        try:
            ids = iter(range(1 << 30))
            send(process, INITIALIZE)
            if not process.stdout.readline():
                return first
            send(process, INITIALIZED)
            todo = list(first)
            while not self.stopping:
                while len(waiting) < DEPTH:
                    name = todo.pop() if todo else self.fresh()
                    waiting[(id := next(ids))] = name
                    send(process, call(id, "write_note", arguments(self.root, name)))
                if not (line := process.stdout.readline()):
                    break
                reply = json.loads(line)
                name = waiting.pop(reply["id"])
                state = self.judge(reply["result"])
                if state in CERTAINLY_NO_EFFECT:
                    # Certainly none: the same may be written again.
                    todo.append(name)
                else:
                    self.answered[name] = state
            return [*todo, *waiting.values()]
        except BrokenPipeError:
            return [*first, *waiting.values()]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass

    def fresh(self) -> str:
        self.count += 1
        return f"{self.number}-{self.count}"

    @staticmethod
    def judge(result: dict) -> str:
        """What the client knows: an effect, none, or that it must not repeat."""
        if not result.get("isError"):
            return "effected"
        found = result["_meta"]["dev.lychgate/decision"]
        return "unresolved" if found.get("code") == "EF-063" else found["state"]


def send(process: subprocess.Popen, message: dict) -> None:
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def arguments(root: Path, name: str) -> dict:
    return {"content": name, "path": str(root / f"n{len(name)}")}


def digest(arguments: dict) -> str:
    """The arguments digest that `acts` shows (these keys and texts need no escaping and are in order)."""
    canonical = json.dumps(arguments, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(hashlib.sha256(canonical).digest()).decode().rstrip("=")


def rounds() -> Iterator[int]:
    for start in range(0, KILLS, SHARED):
        yield min(SHARED, KILLS - start)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number, kills", list(enumerate(rounds())))
def test_killed_at_random_moments_under_load(
    gate: Lychgate, notes: Notes, root: Path, number: int, kills: int
) -> None:
    seed = os.environ.get("LYCHGATE_SEED", str(random.randrange(1 << 32)))
    print(f"LYCHGATE_SEED={seed}")
    moments = random.Random(f"{seed}/{number}")
    acts: dict[str, dict] = {}
    for kill in range(kills):
        writers = [Writer(gate, root, kill * WRITERS + index) for index in range(WRITERS)]
        for writer in writers:
            writer.start()
        pid = until(lambda: running(gate), "a gate")
        time.sleep(moments.uniform(0, 0.35))
        kill_gate(pid)
        # They reconnect, and so start the next gate, which meets repeated calls.
        time.sleep(moments.uniform(0, 0.35))
        for writer in writers:
            writer.stopping = True
        if (pid := running(gate)) and moments.random() < 0.5:
            kill_gate(pid)
        for writer in writers:
            writer.join(30)
            assert not writer.is_alive() and writer.fault is None, writer.fault
        check(gate, notes, writers, acts)
    assert len(notes.effects()) > kills, "there was no load"


def check(gate: Lychgate, notes: Notes, writers: list[Writer], acts: dict[str, dict]) -> None:
    """Everybody has gone; what is there now must fit together."""
    until(lambda: quiet(gate), "the end of what was under way")
    newest = gate.acts()
    for act in newest:
        before = acts.get(act["id"])
        assert before is None or before["state"] == act["state"] or may_follow(before, act)
        acts[act["id"]] = act
    counted = gate.json("acts", "--limit", "1")["counts"]
    assert counted == dict(Counter(act["state"] for act in acts.values()))
    assert set(counted) <= {"effected", "indeterminate", "refused", "failed", "withdrawn", "expired"}

    effects = [effect["content"] for effect in notes.effects()]
    twice = [name for name, count in Counter(effects).items() if count > 1]
    assert twice == [], "an effect that ran twice"
    consumed = {
        act["arguments_digest"]: act["state"]
        for act in acts.values()
        if act["state"] in ("effected", "indeterminate")
    }
    for effect in notes.effects():
        assert digest(effect) in consumed, f"{effect} ran without an act"
    done = set(effects)
    for writer in writers:
        for name, state in writer.answered.items():
            if state == "effected":
                assert name in done, f"{name} was answered and has no effect"
                assert digest(effect_of(notes, name)) in consumed


def effect_of(notes: Notes, name: str) -> dict:
    return next(effect for effect in notes.effects() if effect["content"] == name)


def may_follow(before: dict, after: dict) -> bool:
    return (before["state"], after["state"]) == ("indeterminate", "effected")


def quiet(gate: Lychgate) -> bool | None:
    """Nothing is held or dispatched, and no client is left."""
    gate.acts(1)
    status = gate.status()
    return status and status["clients"] == 0 and not {"dispatched", "allowed", "escalated"} & set(status["acts"])


def kill_gate(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_zombie(pid), "the gate's end")


def running(gate: Lychgate) -> int | None:
    status = gate.status()
    return status["pid"] if status else None
