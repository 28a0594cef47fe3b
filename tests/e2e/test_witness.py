"""`lychgate witness`: cosigns what provably grew, remembers it through a crash, and never tells two stories."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import peers
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from harness import BINARY, PASSPHRASE, Lychgate, until
from test_verify import Both

ORIGIN = "log.example/one"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def root(leaves: list[bytes]) -> bytes:
    """RFC 9162 §2.1.1."""
    if len(leaves) == 1:
        return leaves[0]
    if not leaves:
        return hashlib.sha256(b"").digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return node(root(leaves[:split]), root(leaves[split:]))


def consistency(old: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    """RFC 9162 §2.1.4.1."""
    if old == len(leaves):
        return [] if whole else [root(leaves)]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    if old <= split:
        return [*consistency(old, leaves[:split], whole), root(leaves[split:])]
    return [*consistency(old - split, leaves[split:], False), root(leaves[:split])]


class Log:
    """Somebody's log, made here from the specifications; `fork` is a record that it tells differently."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes_raw()
        id = hashlib.sha256(ORIGIN.encode() + b"\n\x01" + self.public).digest()[:4]
        self.id = id
        self.verifier = f"{ORIGIN}+{id.hex()}+{b64(bytes([1]) + self.public)}"

    def leaves(self, size: int, fork: int | None = None) -> list[bytes]:
        entries = [b"other" if at == fork else str(at).encode() for at in range(size)]
        return [hashlib.sha256(b"\0" + entry).digest() for entry in entries]

    def request(self, old: int, size: int, fork: int | None = None, origin: str = ORIGIN) -> str:
        leaves = self.leaves(size, fork)
        text = f"{origin}\n{size}\n{b64(root(leaves))}\n"
        signature = b64(self.id + self.key.sign(text.encode()))
        proof = consistency(old, leaves) if 0 < old < size else []
        lines = "".join(b64(hash) + "\n" for hash in proof)
        return f"old {old}\n{lines}\n{text}\n— {ORIGIN} {signature}\n"


@dataclass
class Witness:
    process: subprocess.Popen[str]
    address: str
    key: str

    def post(self, body: str | bytes, path: str = "/add-checkpoint") -> tuple[int, str, str]:
        """Status, body, content type."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        with contextlib.closing(connection):
            connection.request("POST", path, body.encode() if isinstance(body, str) else body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers["Content-Type"]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)


@contextlib.contextmanager
def witness(folder: Path, *logs: str) -> Iterator[Witness]:
    command = [BINARY, "witness", "--listen", "127.0.0.1:0", "--dir", str(folder / "wit"), "--json"]
    for log in logs:
        command += ["--log", log]
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        said = json.loads(process.stdout.readline())
        yield Witness(process, said["url"].removeprefix("http://").rstrip("/"), said["key"])
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def cosigned(key: str, request: str, line: str) -> bool:
    """Whether the line is this witness' cosignature over the request's checkpoint (tlog-cosignature)."""
    name, id, data = key.split("+", 2)
    mark, by, signature = line.rstrip("\n").split(" ")
    raw = base64.b64decode(signature)
    text = request.split("\n\n")[1] + "\n"
    time = int.from_bytes(raw[4:12], "big")
    message = f"cosignature/v1\ntime {time}\n{text}".encode()
    public = base64.b64decode(data)
    assert (mark, by, raw[:4].hex(), public[0]) == ("—", name, id, 4)
    try:
        Ed25519PublicKey.from_public_bytes(public[1:]).verify(raw[12:], message)
    except InvalidSignature:
        return False
    return True


def test_growth_is_cosigned_and_remembered_through_a_crash(tmp_path: Path) -> None:
    log = Log()
    with witness(tmp_path, log.verifier) as first:
        for old, new in ((0, 1), (1, 2), (2, 7), (7, 7), (7, 300)):
            request = log.request(old, new)
            status, line, _ = first.post(request)
            assert status == 200 and cosigned(first.key, request, line), (old, new, line)
        first.kill()
    with witness(tmp_path, log.verifier) as second:
        assert second.key == first.key
        assert second.post(log.request(0, 400)) == (409, "300\n", "text/x.tlog.size")
        assert second.post(log.request(7, 400)) == (409, "300\n", "text/x.tlog.size")
        assert second.post(log.request(300, 400))[0] == 200


def test_a_fork_and_a_rollback_are_never_cosigned(tmp_path: Path) -> None:
    log = Log()
    with witness(tmp_path, log.verifier) as asked:
        assert asked.post(log.request(0, 20))[0] == 200
        assert asked.post(log.request(20, 20, fork=3)) == (409, "20\n", "text/x.tlog.size")
        assert asked.post(log.request(20, 30, fork=3))[0] == 422
        assert asked.post(log.request(20, 10))[0] == 400
        assert asked.post(log.request(0, 10))[0] == 409
        asked.kill()
    with witness(tmp_path, log.verifier) as asked:
        assert asked.post(log.request(20, 20, fork=3))[0] == 409
        assert asked.post(log.request(20, 30))[0] == 200
    assert len(list((tmp_path / "wit" / "forks").iterdir())) == 1, "the proof of the fork is kept"


def test_only_named_logs_and_only_their_keys_count(tmp_path: Path) -> None:
    log, stranger = Log(), Log()
    with witness(tmp_path, log.verifier) as asked:
        assert asked.post(log.request(0, 5, origin="other.example"))[0] == 404
        assert asked.post(stranger.request(0, 5))[0] == 403
        assert asked.post("old 0\n\nnothing\n")[0] == 400
        assert asked.post(b"\xff" * 100)[0] == 400
        assert asked.post("x" * 200_000)[0] == 413
        assert asked.post(log.request(0, 5), "/other")[0] == 404
        # One that sends half a request and stays holds up nobody.
        host, port = asked.address.split(":")
        with socket.create_connection((host, int(port)), 20) as half:
            half.sendall(b"POST /add-checkpoint HTTP/1.1\r\n")
            assert asked.post(log.request(0, 5))[0] == 200


def test_two_witnesses_do_not_share_a_memory(tmp_path: Path) -> None:
    log = Log()
    with witness(tmp_path, log.verifier):
        command = [BINARY, "witness", "--listen", "127.0.0.1:0", "--dir", str(tmp_path / "wit"), "--log", log.verifier]
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20)
        assert second.returncode == 3 and "another witness" in second.stderr


def test_a_cosigned_head_of_the_gate_convinces_both_verifiers(
    gate: Lychgate, notes: peers.Notes, tmp_path: Path
) -> None:
    shown = gate.json("ledger", "show")
    note, key = shown["head"], gate.json("ledger", "anchor")["log_key"]
    with witness(tmp_path, key) as asked:
        request = f"old 0\n\n{note}"
        status, line, _ = asked.post(request)
        assert status == 200 and cosigned(asked.key, request, line)
    trust = gate.run("keys", "export").stdout.encode()
    both = Both(tmp_path)
    proof = json.loads(gate.run("ledger", "prove", "0").stdout)
    assert proof["checkpoint"] == note, "nothing was recorded meanwhile"
    assert not both.proven(canonical(proof), trust, witness=[asked.key])
    proof["checkpoint"] = note + line
    assert both.proven(canonical(proof), trust, witness=[asked.key])


async def test_the_gate_has_its_heads_cosigned_and_mails_the_cosignature(
    gate: Lychgate, notes: peers.Notes, root: Path, tmp_path: Path
) -> None:
    with witness(tmp_path, gate.json("ledger", "anchor")["log_key"]) as asked:
        with gate.config.open("a") as file:
            file.write(f'\n[ledger.witness.near]\nurl = "http://{asked.address}"\nkey = "{asked.key}"\n')
        gate.run("apply", passphrase=PASSPHRASE)
        gate.run("gate", "stop")
        async with gate.client("notes") as client:
            await client.call_tool("write_note", {"path": str(root / "a.txt"), "content": "a"})
        [act] = gate.acts()
        trust = gate.run("keys", "export").stdout.encode()
        both = Both(tmp_path)

        def mailed() -> bool:
            proof = gate.run("ledger", "prove", act["id"]).stdout.encode()
            assert both.proven(proof, trust)
            return both.proven(proof, trust, witness=[asked.key])

        until(mailed, "a cosigned head over the act")
    assert gate.json("ledger", "verify")["whole"]


async def test_a_folder_restored_with_its_anchors_is_told_by_the_witness(
    gate: Lychgate, notes: peers.Notes, root: Path, tmp_path: Path
) -> None:
    anchors = Path(gate.json("ledger", "anchor")["place"]).parent
    with witness(tmp_path, gate.json("ledger", "anchor")["log_key"]) as asked:
        with gate.config.open("a") as file:
            file.write(f'\n[ledger.witness.near]\nurl = "http://{asked.address}"\nkey = "{asked.key}"\n')
        gate.run("apply", passphrase=PASSPHRASE)
        gate.run("gate", "stop")
        for path in (gate.state, anchors):
            shutil.copytree(path, tmp_path / f"older-{path.name}")
        async with gate.client("notes") as client:
            await client.call_tool("write_note", {"path": str(root / "a.txt"), "content": "a"})
        [head] = (tmp_path / "wit" / "heads").glob("*.checkpoint")
        size = gate.json("ledger", "show")["size"]
        until(lambda: int(head.read_text().splitlines()[1]) >= size, "the newest head with the witness")
        assert gate.json("ledger", "verify")["anchored_heads"] == 2
        gate.run("gate", "stop")
        for path in (gate.state, anchors):
            shutil.rmtree(path)
            shutil.copytree(tmp_path / f"older-{path.name}", path)

        refused = gate.run("acts", status=3).stderr
        assert "EF-080" in refused and "witness `near`" in refused
        told = json.loads(gate.run("ledger", "anchor", "--json", status=1).stdout)
        assert (told["contradicted_by"], told["difference"]) == ("witness", "rolled_back")
        # What lies on this disk agrees with itself.
        assert gate.json("ledger", "verify")["whole"]
        accept = ["ledger", "anchor", "--accept", "--reason", "the disk failed"]
        gate.run(*accept, passphrase="a guess", status=1)
        gate.run("acts", status=3)
        assert "will not cosign" in gate.run(*accept, passphrase=PASSPHRASE).stdout
        gate.run("acts")
        shown = gate.json("ledger", "show", "--from", "0", "--limit", "1000")["records"]
        [accepted] = [line["receipt"] for line in shown if line["receipt"]["kind"] == "anchor_accepted"]
        assert accepted["detail"].startswith("rolled_back witness:") and accepted["approver_key"]
        gate.run("gate", "stop")
        gate.run("acts")
        gate.run("gate", "stop")
        asked.kill()
        # A witness that is down says nothing.
        gate.run("acts")


def canonical(value: dict) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
