"""A gate's life as strace wrote it down, turned into what happened to its files and what others learned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .stand import Stand, Told, judge

TRACED = (
    "pwrite64,write,writev,pwritev,pwritev2,sendto,sendmsg,ftruncate,truncate,fallocate,fdatasync,fsync,syncfs,"
    "sync_file_range,msync,openat,creat,rename,renameat,renameat2,unlink,unlinkat,link,linkat,mkdir,mkdirat,"
    "copy_file_range,sendfile,lseek"
)
# What this replay knows; any other call on a file of ours is a fault of the test.
UNKNOWN = {"writev", "pwritev", "pwritev2", "truncate", "fallocate", "sync_file_range", "msync", "link", "linkat"}
UNKNOWN |= {"copy_file_range", "sendfile", "creat", "mkdir", "mkdirat"}
# The server's own folders, and what is not written by the gate.
NOT_OURS = ("notes", "root", "config")


@dataclass
class Event:
    """One thing that the gate did, in its order."""

    # `write`, `truncate`, `create`, `rename`, `unlink`, `syncing`, `synced`, `asked` (the server), `told` (the client)
    kind: str
    name: str = ""
    at: int = 0
    data: bytes = b""
    other: str = ""
    told: Told | None = None


HEX = re.compile(r"(?:\\x[0-9a-f]{2})+")
LINE = re.compile(r"^(\d+) +(.*)$")


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


class Files:
    """Which file a descriptor of the gate is, and where it stands in it."""

    def __init__(self) -> None:
        self.at: dict[int, int] = {}
        self.appends: set[int] = set()


def replay(stand: Stand, log: Path) -> Iterator[Event]:
    """The log as events. A write counts when it has come back, what goes to others when it begins."""
    begun: dict[str, str] = {}
    files = Files()
    known = {str(file.relative_to(stand.kept)) for file in stand.kept.rglob("*") if file.is_file()}
    sizes: dict[str, int] = {name: (stand.kept / name).stat().st_size for name in known}
    with open(log, encoding="ascii", errors="replace") as lines:
        for line in lines:
            if not (found := LINE.match(line.rstrip("\n"))):
                continue
            thread, said = found[1], found[2]
            if said.endswith("<unfinished ...>"):
                begun[thread] = said.removesuffix("<unfinished ...>").rstrip()
                yield from began(begun[thread])
                continue
            if said.startswith("<... "):
                said = begun.pop(thread, "") + said.partition(" resumed>")[2]
            else:
                yield from began(said)
            if (at := said.find("(")) > 0 and " = -1 " not in said[-90:]:
                yield from ended(stand, said[:at], said[at + 1 :], files, sizes)


def began(said: str) -> Iterator[Event]:
    """What leaves the gate: from here on others may know."""
    if said.startswith(("fdatasync(", "fsync(")):
        yield Event("syncing")
    if not said.startswith(("write(", "sendto(", "sendmsg(", "writev(")):
        return
    target = path_of(said[said.find("(") + 1 :])
    if target is None or not target.startswith(("pipe:", "socket:")):
        return
    assert not said.startswith(("sendmsg(", "writev(")), f"a call that the replay does not know: {said[:80]}"
    data = unhex("".join(HEX.findall(said.split(", ", 1)[1])[:1]))
    for message in messages(data):
        if message.get("method") == "tools/call":
            yield Event("asked", message["params"]["arguments"]["content"])
        elif target.startswith("socket:") and "id" in message and str(message["id"]).startswith("n"):
            yield Event("told", message["id"], told=judge(message["id"], message))


def messages(data: bytes) -> Iterator[dict]:
    """Every JSON object in a line or a frame."""
    text = data.decode("utf-8", "replace")
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        yield found


def path_of(rest: str) -> str | None:
    """The file behind the descriptor that is the first argument."""
    found = re.match(r"\d+<((?:\\x[0-9a-f]{2})*)>", rest)
    return unhex(found[1]).decode() if found else None


def ended(stand: Stand, name: str, rest: str, files: Files, sizes: dict[str, int]) -> Iterator[Event]:
    """What a call that has come back did to a file of ours."""
    inside = lambda path: ours(stand, path)  # noqa: E731
    if name == "openat":
        yield from opened(stand, rest, files, sizes)
        return
    if name in ("rename", "renameat", "renameat2", "unlink", "unlinkat"):
        paths = [inside(unhex(found).decode()) for found in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', rest)]
        if name.startswith("unlink") and paths[0]:
            sizes.pop(paths[0], None)
            yield Event("unlink", paths[0])
        elif name.startswith("rename") and (paths[0] or paths[1]):
            assert paths[0] and paths[1], f"a rename into or out of the folder: {paths}"
            sizes[paths[1]] = sizes.pop(paths[0], 0)
            yield Event("rename", paths[0], other=paths[1])
        return
    target = path_of(rest)
    file = inside(target) if target and target.startswith("/") else None
    if file is None:
        return
    assert name not in UNKNOWN, f"a call that the replay does not know: {name} on {file}"
    fd = int(rest.split("<", 1)[0])
    result = int(rest.rsplit(" = ", 1)[1].split()[0].split("<")[0])
    if name in ("fdatasync", "fsync"):
        yield Event("synced", file)
    elif name == "ftruncate":
        sizes[file] = int(re.split(r"\) += ", rest)[0].rsplit(", ", 1)[1])
        yield Event("truncate", file, at=sizes[file])
    elif name == "lseek":
        files.at[fd] = result
    elif name in ("write", "pwrite64"):
        data = unhex(HEX.findall(rest.split(", ", 1)[1])[0])[:result]
        if name == "pwrite64":
            at = int(re.split(r"\) += ", rest)[0].rsplit(", ", 1)[1])
        else:
            at = sizes.get(file, 0) if fd in files.appends else files.at.get(fd, 0)
            files.at[fd] = at + len(data)
        sizes[file] = max(sizes.get(file, 0), at + len(data))
        yield Event("write", file, at=at, data=data)


def opened(stand: Stand, rest: str, files: Files, sizes: dict[str, int]) -> Iterator[Event]:
    found = re.search(r'"((?:\\x[0-9a-f]{2})*)", ([A-Z_|0-9a-z]+)', rest)
    result = re.match(r"(\d+)", rest.rsplit(" = ", 1)[1])
    file = ours(stand, unhex(found[1]).decode()) if found else None
    if file is None or not result:
        return
    fd = int(result[1])
    files.at[fd] = 0
    files.appends.discard(fd)
    if "O_APPEND" in found[2]:
        files.appends.add(fd)
    if "O_CREAT" in found[2] and file not in sizes:
        sizes[file] = 0
        yield Event("create", file)
    elif "O_TRUNC" in found[2]:
        sizes[file] = 0
        yield Event("truncate", file, at=0)


def ours(stand: Stand, path: str) -> str | None:
    home = f"{stand.home}/"
    name = path.removeprefix(home) if path.startswith(home) else None
    return None if name is None or name.startswith(NOT_OURS) or name.endswith("-shm") else name
