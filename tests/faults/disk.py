"""A disk that keeps what was synced and, of the rest, whatever a seeded generator likes.

The model: a file's data is safe once the file was synced after it was written; a name is safe once its folder was synced
after the name was made, moved or removed. Nothing else is safe, and unsynced writes reach the disk in any order, in
part, or not at all. That is harsher than any journalling file system.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

SECTOR, PAGE = 512, 4096
# How the unsynced writes of an image were chosen.
MODES = ["dropped", "kept", "in order", "any subset", "torn", "length only"]


@dataclass
class Write:
    at: int
    data: bytes


@dataclass
class Cut:
    """The file was cut, or grown with zeros, to this size."""

    size: int


@dataclass
class Inode:
    safe: bytearray = field(default_factory=bytearray)
    pending: list[Write | Cut] = field(default_factory=list)
    size: int = 0

    def image(self, mode: str, draw: random.Random) -> bytes:
        content = bytearray(self.safe)
        for operation in chosen(self.pending, mode, draw):
            apply(content, operation)
        return bytes(content)


def apply(content: bytearray, operation: Write | Cut) -> None:
    if isinstance(operation, Cut):
        del content[operation.size :]
        content.extend(bytes(operation.size - len(content)))
        return
    end = operation.at + len(operation.data)
    content.extend(bytes(max(0, end - len(content))))
    content[operation.at : end] = operation.data


def chosen(pending: list[Write | Cut], mode: str, draw: random.Random) -> list[Write | Cut]:
    if mode == "dropped":
        return []
    if mode == "kept":
        return pending
    if mode == "in order":
        # As far as the disk came, the last one in part.
        whole = draw.randint(0, len(pending))
        return pending[:whole] + [part for each in pending[whole : whole + 1] for part in torn(each, draw)]
    share = draw.choice([0.1, 0.5, 0.9])
    kept = [each for each in pending if draw.random() < share]
    if mode == "torn":
        return [part for each in kept for part in torn(each, draw)]
    if mode == "length only":
        # The new length was written down, the data was not.
        return [zeros(each) if draw.random() < 0.5 else each for each in kept]
    return kept


def torn(operation: Write | Cut, draw: random.Random) -> list[Write | Cut]:
    """Some of the sectors, or pages, that the write touches."""
    if isinstance(operation, Cut):
        return [operation] if draw.random() < 0.5 else []
    unit = draw.choice([SECTOR, PAGE])
    parts, at, end = [], operation.at, operation.at + len(operation.data)
    while at < end:
        to = min(end, (at // unit + 1) * unit)
        if draw.random() < 0.5:
            parts.append(Write(at, operation.data[at - operation.at : to - operation.at]))
        at = to
    return parts


def zeros(operation: Write | Cut) -> Write | Cut:
    return operation if isinstance(operation, Cut) else Write(operation.at, bytes(len(operation.data)))


class Disk:
    """Every file below a folder."""

    def __init__(self, folder: Path, skip: tuple[str, ...]) -> None:
        self.folder, self.skip = folder, skip
        self.now: dict[str, Inode] = {}
        for file in sorted(folder.rglob("*")):
            name = str(file.relative_to(folder))
            if file.is_file() and not self.skipped(name):
                content = file.read_bytes()
                self.now[name] = Inode(bytearray(content), [], len(content))
        self.safe_names = dict(self.now)
        # (folder, name, what it is from then on)
        self.pending_names: list[tuple[str, str, Inode | None]] = []

    def skipped(self, name: str) -> bool:
        return name.startswith(self.skip) or name.endswith("-shm")

    def create(self, name: str) -> None:
        if name not in self.now:
            self.now[name] = Inode()
            self.rename_to(name, self.now[name])

    def rename_to(self, name: str, inode: Inode | None) -> None:
        self.pending_names.append((parent(name), name, inode))

    def write(self, name: str, at: int, data: bytes) -> None:
        inode = self.now.setdefault(name, Inode())
        inode.pending.append(Write(at, data))
        inode.size = max(inode.size, at + len(data))

    def truncate(self, name: str, size: int) -> None:
        inode = self.now.setdefault(name, Inode())
        inode.pending.append(Cut(size))
        inode.size = size

    def rename(self, old: str, new: str) -> None:
        inode = self.now.pop(old)
        self.now[new] = inode
        # Two steps on the disk as well: the new name may be there with the old one, or neither is new.
        self.rename_to(new, inode)
        self.rename_to(old, None)

    def unlink(self, name: str) -> None:
        if self.now.pop(name, None) is not None:
            self.rename_to(name, None)

    def sync(self, name: str) -> None:
        """`fsync` or `fdatasync` has come back."""
        if name in self.now:
            inode = self.now[name]
            for operation in inode.pending:
                apply(inode.safe, operation)
            inode.pending = []
            return
        left = []
        for folder, entry, inode in self.pending_names:
            if folder != name:
                left.append((folder, entry, inode))
            elif inode is None:
                self.safe_names.pop(entry, None)
            else:
                self.safe_names[entry] = inode
        self.pending_names = left

    def unsynced(self) -> int:
        return len(self.pending_names) + sum(len(inode.pending) for inode in self.now.values())

    def build(self, place: Path, mode: str, draw: random.Random) -> None:
        """Writes one possible image below `place`, in place of what stands there."""
        names = dict(self.safe_names)
        kept = {"dropped": 0, "kept": len(self.pending_names)}.get(
            mode, draw.randint(0, len(self.pending_names))
        )
        # Names reach the disk in their order: file systems keep a journal of them.
        for _, name, inode in self.pending_names[:kept]:
            if inode is None:
                names.pop(name, None)
            else:
                names[name] = inode
        for old in place.rglob("*"):
            if old.is_file() and not self.skip_existing(old, place):
                old.unlink()
        for name, inode in names.items():
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(inode.image(mode, draw))
            file.chmod(0o600)

    def skip_existing(self, file: Path, place: Path) -> bool:
        return str(file.relative_to(place)).startswith(self.skip)


def parent(name: str) -> str:
    return name.rpartition("/")[0]


def copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
