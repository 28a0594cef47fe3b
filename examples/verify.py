#!/usr/bin/env python3
"""A second opinion on a mailed receipt: what `lychgate verify` checks, written again from the specifications alone.

    python3 verify.py receipt.json --trust trust.json [--origin NAME] [--witness KEY]... [--quorum N]

Nothing but Python's standard library, so that all of it can be read: RFC 8032 (Ed25519), RFC 9162 (Merkle trees),
C2SP signed-note, tlog-checkpoint and tlog-cosignature. Exit status 0: proven. 1: not proven, with the reason.
"""

import argparse
import base64
import hashlib
import json
import re
import sys


class NotProven(Exception):
    """Why, with the step that failed."""


def need(condition, step, reason):
    if not condition:
        raise NotProven(f"{step}: {reason}")


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# -- Ed25519 (RFC 8032 §5.1.7), for public data only: nothing here is constant-time ---------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def point(data):
    """Decodes a point, in its one spelling; None when it is none."""
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    if y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if (v * x * x - u) % P:
        x = x * SQRT_M1 % P
    if (v * x * x - u) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, p):
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = add(result, p)
        p, number = add(p, p), number >> 1
    return result


def same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def is_sound(public):
    """On the curve and of no small order, so that nobody can sign for it without its private half."""
    found = point(public) if len(public) == 32 else None
    return found is not None and not same(times(8, found), (0, 1, 1, 0))


BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def signed(public, message, signature):
    if len(signature) != 64 or not is_sound(public) or not is_sound(signature[:32]):
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    return same(times(s, BASE), add(point(signature[:32]), times(h, point(public))))


# -- one spelling for everything -------------------------------------------------------------------


def unbase64(text, url, step):
    """Base64, or base64url without padding, in its one spelling."""
    try:
        padded = text + "=" * (-len(text) % 4) if url else text
        data = base64.b64decode(padded, altchars=b"-_" if url else None, validate=True)
    except ValueError:
        raise NotProven(f"{step}: not base64") from None
    again = (base64.urlsafe_b64encode if url else base64.b64encode)(data).decode()
    need((again.rstrip("=") if url else again) == text, step, "base64 in another spelling")
    return data


def unique(pairs):
    need(len(dict(pairs)) == len(pairs), "json", "a member is there twice")
    return dict(pairs)


def parse(data, step, canonical=True):
    try:
        value = json.loads(data.decode(), object_pairs_hook=unique)
        # RFC 8785, as far as our objects go: integers, and names in ASCII.
        again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise NotProven(f"{step}: not JSON") from None
    need(isinstance(value, dict), step, "not an object")
    need(not canonical or again == data, step, "not in canonical form")
    return value


# -- the steps -------------------------------------------------------------------------------------

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
ROLES = {"ped", "sink", "ledger", "approver"}
ENTRY = {"role", "key_id", "algorithm", "public", "valid_from"}


def read_trust(data):
    """The ledger keys of a trust bundle: public key -> when it was retired, if it was."""
    bundle, ids, ledger = parse(data, "trust", canonical=False), set(), {}
    need(set(bundle) == {"version", "object_type", "keys"}, "trust", "not a trust bundle")
    need((bundle["version"], bundle["object_type"]) == ("1.0", "trust_bundle"), "trust", "not a trust bundle")
    for key in bundle["keys"]:
        need(ENTRY <= set(key) <= ENTRY | {"retired_at"}, "trust", "not a key")
        need(key["role"] in ROLES and key["algorithm"] == "Ed25519", "trust", "not a key of ours")
        times_of = [key["valid_from"], key.get("retired_at", key["valid_from"])]
        need(all(TIME.fullmatch(time) for time in times_of) and times_of == sorted(times_of), "trust", "times")
        public = unbase64(key["public"], True, "trust")
        need(is_sound(public), "trust", "a key is not sound")
        jwk = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": key["public"]}, separators=(",", ":"))
        thumbprint = base64.urlsafe_b64encode(sha256(jwk.encode())).decode().rstrip("=")
        need(key["key_id"] == thumbprint and thumbprint not in ids, "trust", "a key is not the one it is called")
        ids.add(thumbprint)
        if key["role"] == "ledger":
            ledger[public] = key.get("retired_at")
    current = [key["role"] for key in bundle["keys"] if "retired_at" not in key and key["role"] != "approver"]
    need(len(current) == len(set(current)), "trust", "two current keys of one role")
    return ledger


def read_note(text):
    """A signed note: its text, and (name, key id, signature) of each line."""
    need("\n\n" in text and text.endswith("\n"), "file", "checkpoint is not signed")
    body, _, lines = text.rpartition("\n\n")
    found = []
    for line in lines[:-1].split("\n"):
        mark, name, data = (line.split(" ") + ["", ""])[:3]
        need(mark == "—" and line.count(" ") == 2, "file", "malformed signature line")
        need(0 < len(name.encode()) <= 255, "file", "malformed key name")
        need(not any(c.isspace() or c == "+" or c < " " for c in name), "file", "malformed key name")
        data = unbase64(data, False, "file")
        need(len(data) > 4, "file", "malformed signature line")
        found.append((name, data[:4], data[4:]))
    need(len(found) <= 100, "file", "too many signatures")
    return body + "\n", found


def key_id(name, kind, public):
    return sha256(name.encode(), b"\n", bytes([kind]), public)[:4]


def of_key(signatures, name, kind, public):
    """The signature of this key; None without one."""
    found = [signature for other, id, signature in signatures if (other, id) == (name, key_id(name, kind, public))]
    need(len(found) < 2, "signature", "one key signed twice")
    return found[0] if found else None


def read_checkpoint(text):
    lines = text[:-1].split("\n")
    need(len(lines) >= 3 and all(lines), "file", "checkpoint wants an origin, a size and a root")
    need(all(c >= " " for c in text.replace("\n", "")), "file", "control character in the checkpoint")
    need(re.fullmatch(r"0|[1-9][0-9]{0,19}", lines[1]) and int(lines[1]) < 2**64, "file", "checkpoint's size")
    root = unbase64(lines[2], False, "file")
    need(len(root) == 32, "file", "checkpoint's root")
    return lines[0], int(lines[1]), root


def check_inclusion(leaf, index, size, proof, root):
    """RFC 9162 §2.1.3.2."""
    need(0 <= index < size, "inclusion", "the index is beyond the log")
    at, last, found = index, size - 1, leaf
    for hash in proof:
        need(last > 0, "inclusion", "the proof is too long")
        if at & 1 or at == last:
            found = sha256(b"\x01", hash, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = sha256(b"\x01", found, hash)
        at, last = at >> 1, last >> 1
    need(last == 0, "inclusion", "the proof is too short")
    need(found == root, "inclusion", "the proof leads to another root")


def check_witnesses(text, signatures, witnesses, quorum, log_signers):
    cosigned = set()
    for witness in witnesses:
        name, _, rest = witness.partition("+")
        id, _, data = rest.partition("+")
        data = unbase64(data, False, "witnesses")
        need(len(data) == 33 and data[0] == 4 and is_sound(data[1:]), "witnesses", "not a witness' key")
        need(id == key_id(name, 4, data[1:]).hex(), "witnesses", "not a witness' key")
        signature = of_key(signatures, name, 4, data[1:])
        if signature is None:
            continue
        time = int.from_bytes(signature[:8], "big")
        message = f"cosignature/v1\ntime {time}\n{text}".encode()
        good = len(signature) == 72 and time < 2**63 and signed(data[1:], message, signature[8:])
        need(good, "signature", f"that of {name} does not verify")
        cosigned.add(data[1:])
    found = len(cosigned - log_signers)
    need(found >= quorum, "witnesses", f"{found} of {quorum} cosigned")


def check_opening(opening, act, opened):
    need(set(opening) == {"field", "salt", "value"}, "file", "not an opening")
    field = opening["field"]
    need(field in ("arguments_digest", "destination") and field not in opened, "opening", "of what?")
    salt, value = (unbase64(opening[name], True, "file") for name in ("salt", "value"))
    need(len(salt) == 16, "file", "a salt has 16 bytes")
    committed = act.get(field.removesuffix("_digest") + "_commitment")
    made = base64.urlsafe_b64encode(sha256(salt, field.encode(), b"\0", value)).decode().rstrip("=")
    need(committed == made, "opening", f"{field} is not what the receipt commits to")
    opened[field] = value


def verify(data, trust, origin=None, witnesses=(), quorum=None):
    """Gives (receipt, index, size of the head, opened values), or raises NotProven."""
    ledger = read_trust(trust)
    proof = parse(data.removesuffix(b"\n"), "file")
    members = {"version", "object_type", "receipt", "index", "inclusion", "checkpoint", "openings"}
    need(set(proof) == members, "file", "not a receipt proof")
    need((proof["version"], proof["object_type"]) == ("1.0", "receipt_proof"), "file", "not a receipt proof")
    receipt = parse(proof["receipt"].encode(), "receipt")
    need(receipt.get("object_type") == "validation_receipt", "receipt", "not a receipt")
    inclusion = [unbase64(hash, True, "file") for hash in proof["inclusion"]]
    need(all(len(hash) == 32 for hash in inclusion), "file", "a hash has 32 bytes")

    text, signatures = read_note(proof["checkpoint"])
    name, size, root = read_checkpoint(text)
    need(origin in (None, name), "origin", f"the log is {name}")
    signers = set()
    for public in ledger:
        signature = of_key(signatures, name, 1, public)
        if signature is not None:
            need(signed(public, text.encode(), signature), "signature", "that of the log does not verify")
            signers.add(public)
    need(signers, "key", "the checkpoint is not signed by a ledger key of the trust bundle")
    in_time = [ledger[public] is None or receipt["at"] < ledger[public] for public in signers]
    need(any(in_time), "key", "the key was retired before the receipt")
    check_witnesses(text, signatures, witnesses, len(witnesses) if quorum is None else quorum, signers)

    need(type(proof["index"]) is int, "file", "index")
    check_inclusion(sha256(b"\0", proof["receipt"].encode()), proof["index"], size, inclusion, root)
    opened = {}
    for opening in proof["openings"]:
        check_opening(opening, receipt.get("act", {}), opened)
    return receipt, proof["index"], size, opened


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("file")
    words.add_argument("--trust", required=True)
    words.add_argument("--origin")
    words.add_argument("--witness", action="append", default=[])
    words.add_argument("--quorum", type=int)
    asked = words.parse_args()
    try:
        with open(asked.file, "rb") as file, open(asked.trust, "rb") as trust:
            data, bundle = file.read(), trust.read()
        receipt, index, size, opened = verify(data, bundle, asked.origin, asked.witness, asked.quorum)
    except NotProven as why:
        sys.exit(f"not proven: {why}")
    except (AttributeError, KeyError, TypeError, UnicodeError) as why:
        sys.exit(f"not proven: file: it has another shape ({why})")
    print(f"proven: record {index} of {size}: {receipt['kind']} at {receipt['at']}")
    for field, value in opened.items():
        print(f"  {field}: {value.decode() if field == 'destination' else value.hex()}")


if __name__ == "__main__":
    main()
