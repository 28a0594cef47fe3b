"""The mailed receipt: two verifiers that share no line of code agree on every file."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from harness import BINARY

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "verify.py"
GOOD = REPOSITORY / "crates" / "cli" / "tests" / "cmd" / "verify.in"


def load() -> ModuleType:
    """The second verifier, as a module."""
    spec = importlib.util.spec_from_file_location("verify_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Both:
    """Asks both and wants one answer."""

    def __init__(self, folder: Path) -> None:
        self.file, self.trust = folder / "asked.json", folder / "asked-trust.json"
        self.second = load()

    def proven(self, file: bytes, trust: bytes, **asked: object) -> bool:
        self.file.write_bytes(file)
        self.trust.write_bytes(trust)
        words: list[str] = []
        for name, value in asked.items():
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{name}", str(one)]
        command = [BINARY, "verify", str(self.file), "--trust", str(self.trust), *words]
        ours = subprocess.run(command, capture_output=True, env={}, timeout=60)
        assert ours.returncode in (0, 1), ours.stderr
        words = {("witnesses" if name == "witness" else name): value for name, value in asked.items()}
        try:
            self.second.verify(file, trust, **words)
            theirs = True
        except (self.second.NotProven, AttributeError, KeyError, TypeError, UnicodeError):
            theirs = False
        assert (ours.returncode == 0) == theirs, (ours.stderr, file)
        return theirs


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(tmp_path)


@pytest.fixture(scope="module")
def good() -> tuple[bytes, bytes, str]:
    """A proof, a trust bundle and the witness that cosigned."""
    names = ("receipt.json", "trust.json", "witness.txt")
    proof, trust, witness = ((GOOD / name).read_bytes() for name in names)
    return proof, trust, witness.decode().strip()


def canonical(value: dict) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def other_letter(text: str, at: int) -> str:
    return text[:at] + ("B" if text[at] == "A" else "A") + text[at + 1 :]


def mutations(proof: bytes) -> Iterator[tuple[str, bytes]]:
    """The file with one thing changed in each part of it, still well formed as a whole."""

    def changed(change: Callable[[dict], None]) -> bytes:
        value = json.loads(proof)
        change(value)
        return canonical(value)

    def note(line: int, change: Callable[[str], str]) -> bytes:
        def edit(value: dict) -> None:
            lines = value["checkpoint"].split("\n")
            lines[line] = change(lines[line])
            value["checkpoint"] = "\n".join(lines)

        return changed(edit)

    def put(name: str, value: object) -> bytes:
        return changed(lambda whole: whole.update({name: value}))

    value = json.loads(proof)
    yield "nothing", b""
    yield "two newlines", proof + b"\n"
    yield "a space", b" " + proof
    yield "a member twice", proof.replace(b'"index"', b'"index":77,"index"', 1)
    yield "a member more", put("more", 1)
    yield "an older version", put("version", "0.9")
    yield "receipt", put("receipt", value["receipt"].replace("dispatched", "allowed"))
    yield "receipt, spelled otherwise", put("receipt", " " + value["receipt"])
    yield "index", put("index", value["index"] + 1)
    yield "index, negative", put("index", -1)
    yield "index, a fraction", put("index", 77.5)
    yield "index, beyond", put("index", 10**9)
    yield "path, swapped", put("inclusion", value["inclusion"][::-1])
    yield "path, shorter", put("inclusion", value["inclusion"][:-1])
    yield "path, longer", put("inclusion", [*value["inclusion"], "A" * 43])
    for at in range(len(value["inclusion"])):
        hashes = [*value["inclusion"]]
        hashes[at] = other_letter(hashes[at], 7)
        yield f"path, hash {at}", put("inclusion", hashes)
    yield "origin", note(0, lambda line: line + "x")
    yield "size", note(1, lambda line: str(int(line) + 1))
    yield "size, zero before it", note(1, lambda line: "0" + line)
    yield "root", note(2, lambda line: other_letter(line, 5))
    yield "extension line", note(2, lambda line: line + "\nmore")
    yield "signature", note(4, lambda line: other_letter(line, len(line) - 20))
    yield "signature, its key's name", note(4, lambda line: line.replace("gate", "gatf"))
    yield "signature, its key's id", note(4, lambda line: other_letter(line, line.rindex(" ") + 1))
    yield "signature, none", changed(lambda whole: whole.update(checkpoint=whole["checkpoint"].split("\n\n")[0] + "\n"))
    for at, opening in enumerate(value["openings"]):
        for member in ("salt", "value"):
            openings = json.loads(json.dumps(value["openings"]))
            openings[at][member] = other_letter(opening[member], 4)
            yield f"opening {at}, {member}", put("openings", openings)
    yield "opening, twice", put("openings", [value["openings"][0]] * 2)
    yield "opening, of another field", put("openings", [value["openings"][0] | {"field": "destination"}])


def test_both_believe_the_good_file(both: Both, good: tuple[bytes, bytes, str]) -> None:
    proof, trust, witness = good
    assert both.proven(proof, trust)
    assert both.proven(proof.rstrip(b"\n"), trust)
    assert both.proven(proof, trust, witness=[witness])
    assert not both.proven(proof, trust, witness=[witness], quorum=2)
    origin = json.loads(proof)["checkpoint"].split("\n")[0]
    assert both.proven(proof, trust, origin=origin)
    assert not both.proven(proof, trust, origin=origin + "x")


def test_the_example_works_as_its_help_says(good: tuple[bytes, bytes, str]) -> None:
    words = [str(GOOD / "receipt.json"), "--trust", str(GOOD / "trust.json")]
    command = [sys.executable, "-I", str(EXAMPLE), *words, "--witness", good[2]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("proven: record 77 of 300: dispatched"), done
    words[0] = str(GOOD / "changed.json")
    done = subprocess.run([sys.executable, "-I", str(EXAMPLE), *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "inclusion" in done.stderr, done


def test_neither_believes_a_file_changed_in_any_part(both: Both, good: tuple[bytes, bytes, str]) -> None:
    proof, trust, witness = good
    for what, file in mutations(proof):
        assert file != proof, what
        assert not both.proven(file, trust), what
    cosigned = json.loads(proof)
    lines = cosigned["checkpoint"].split("\n")
    lines[5] = other_letter(lines[5], len(lines[5]) - 20)
    cosigned["checkpoint"] = "\n".join(lines)
    assert not both.proven(canonical(cosigned), trust, witness=[witness])


def test_neither_believes_a_changed_trust_bundle(both: Both, good: tuple[bytes, bytes, str]) -> None:
    proof, trust, _ = good
    bundle = json.loads(trust)
    [ledger] = [key for key in bundle["keys"] if key["role"] == "ledger"]
    [ped] = [key for key in bundle["keys"] if key["role"] == "ped"]
    assert both.proven(proof, canonical(bundle))
    for change in (
        {"role": "sink"},
        {"key_id": other_letter(ledger["key_id"], 3)},
        {"public": other_letter(ledger["public"], 3)},
        {"public": ped["public"]},
        {"retired_at": json.loads(json.loads(proof)["receipt"])["at"]},
        {"algorithm": "Ed448"},
        # A point of small order: anybody can sign for it.
        {"public": "A" * 43},
    ):
        other = [ledger | change if key is ledger else key for key in bundle["keys"]]
        assert not both.proven(proof, canonical(bundle | {"keys": other})), change
    assert not both.proven(proof, canonical(bundle | {"keys": [ped]}))
    assert not both.proven(proof, b"{}")


@pytest.mark.timeout(300)
def test_no_byte_of_the_file_may_change(both: Both, good: tuple[bytes, bytes, str]) -> None:
    """With the witness asked for, everything in the file counts."""
    proof, trust, witness = good
    random.seed(7)
    for at in range(random.randrange(3), len(proof) - 1, 3):
        other = bytearray(proof)
        other[at] ^= 1 << random.randrange(8)
        assert not both.proven(bytes(other), trust, witness=[witness]), at
