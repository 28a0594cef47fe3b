"""What a state folder says when nobody runs on it, and what must hold of it whatever happened.

Reads the SQLite file with Python's own library, so that the product is not its own witness.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

from .stand import Told, arguments

# PROFILE §5, written again from docs/ARCHITECTURE.md.
STATES = [
    "allowed", "refused", "escalated", "expired", "withdrawn", "dispatched", "effected", "failed",
    "input_required", "indeterminate", "reconciled_effect", "reconciled_no_effect",
]  # fmt: skip
MAY_BECOME = {
    "allowed": {"dispatched", "refused", "expired", "withdrawn"},
    "escalated": {"allowed", "dispatched", "refused", "expired", "withdrawn"},
    "dispatched": {"effected", "failed", "input_required", "indeterminate"},
    "indeterminate": {"effected", "failed", "reconciled_effect", "reconciled_no_effect"},
}
# The authority is consumed and cannot be used again.
CONSUMED = {"dispatched", "indeterminate", "effected", "reconciled_effect"}
# What a gate that has just started leaves of anything.
AT_REST = set(STATES) - {"allowed", "escalated", "dispatched"}


@dataclass
class Act:
    id: str
    state: str
    arguments: bytes


@dataclass
class Image:
    """One reading of a store."""

    record: list[tuple[bytes, bytes]]
    acts: list[Act]

    def of(self, root: Path, name: str) -> list[Act]:
        """The acts that would write the note `name`, oldest first."""
        canonical = json.dumps(arguments(root, name), separators=(",", ":")).encode()
        wanted = hashlib.sha256(canonical).digest()
        return [act for act in self.acts if act.arguments == wanted]

    def steps(self) -> dict[str, list[str]]:
        """The states each act went through, by the record."""
        found: dict[str, list[str]] = {}
        for _, line in self.record:
            if line is None:
                continue
            receipt = json.loads(line)
            if receipt.get("act") and receipt.get("state"):
                states = found.setdefault(receipt["act"]["candidate_act_id"], [])
                if not states or states[-1] != receipt["state"]:
                    states.append(receipt["state"])
        return found


def read(state: Path) -> Image:
    """Reads a copy: opening the file itself would mend it."""
    with tempfile.TemporaryDirectory(dir=state.parent) as scratch:
        for file in state.glob("store.db*"):
            # The index of the log is rebuilt by whoever opens it first, as after a crash.
            if not file.name.endswith("-shm"):
                shutil.copy(file, scratch)
        connection = sqlite3.connect(Path(scratch) / "store.db")
        try:
            return _read(connection)
        finally:
            connection.close()


def _read(connection: sqlite3.Connection) -> Image:
    said = connection.execute("PRAGMA integrity_check").fetchall()
    assert said == [("ok",)], f"integrity_check: {said}"
    record = []
    for position, (index, leaf, line) in enumerate(
        connection.execute("SELECT idx, leaf, bytes FROM record ORDER BY idx")
    ):
        assert index == position, f"the record has {index} where {position} should be"
        # Lines that were archived and pruned leave their hash.
        assert line is None or hashlib.sha256(b"\0" + line).digest() == leaf, f"leaf {index} is of other bytes"
        record.append((leaf, line))
    acts = [
        Act(f"act-{uuid.UUID(bytes=id)}", STATES[state], digest)
        for id, state, digest in connection.execute(
            "SELECT id, state, arguments_digest FROM acts ORDER BY id"
        )
    ]
    image = Image(record, acts)
    counts = dict(connection.execute("SELECT state, n FROM counts"))
    for number, name in enumerate(STATES):
        found = sum(act.state == name for act in acts)
        assert counts.get(number, 0) == found, f"{found} acts are {name}, counted {counts}"
    check_lifecycle(image)
    return image


def check_lifecycle(image: Image) -> None:
    """Every act is in one of the lifecycle's states, came there by its ways, and the record says the same."""
    steps = image.steps()
    for act in image.acts:
        went = steps.pop(act.id, [])
        assert went and went[-1] == act.state, f"{act} but its receipts say {went}"
        for before, after in zip(went, went[1:], strict=False):
            assert after in MAY_BECOME.get(before, ()), f"{act} went {went}"
        consumed = act.state in CONSUMED
        assert not consumed or "dispatched" in went, f"{act} without a receipt of its dispatch: {went}"
    assert not steps, f"receipts of acts that are not there: {steps}"


def check_follows(before: Image, after: Image, what: str) -> None:
    """The record only grew, and every act stands where it stood or further."""
    same = after.record[: len(before.record)] == before.record
    assert same, f"{what}: a receipt of the record was lost or changed"
    now = {act.id: act.state for act in after.acts}
    for act in before.acts:
        state = now.get(act.id)
        reached = {act.state}
        for _ in STATES:
            reached |= {n for s in reached for n in MAY_BECOME.get(s, ())}
        assert state in reached, f"{what}: {act} is {state} now"


def check_effect(image: Image, root: Path, name: str, ran: int, what: str) -> None:
    """An effect that may have run has used its authority up."""
    consumed = [act for act in image.of(root, name) if act.state in CONSUMED | {"failed"}]
    assert ran <= len(consumed), (
        f"{what}: {name} reached its server {ran} times, consumed {consumed}, all {image.of(root, name)}"
    )


def check_told(image: Image, root: Path, told: Told, what: str) -> None:
    """An answer is given after the receipt it rests on, and that receipt is still there."""
    states = [act.state for act in image.of(root, told.name)]
    if told.word == "effected":
        assert "effected" in states, f"{what}: told {told.word}, the store says {states}"
    elif told.word == "indeterminate":
        # Its dispatch is recorded; its outcome is, or will be at the next start.
        assert set(states) & CONSUMED, f"{what}: told {told.word}, the store says {states}"
    elif told.word in ("EF-080", "EF-081"):
        # Denied because it could not be recorded: then there is no act, or, where the sync of its dispatch failed and
        # nobody knows what the disk has, one that stands as dispatched. It was not sent either way.
        assert set(states) <= {"dispatched", "indeterminate", "refused", "failed"}, f"{what}: {told}: {states}"
