"""Signatures by hardware tokens, and edits of them, for the parsers of both sides.

A signature is real in all but the bytes that an edit replaces: so what it says of its key, its application,
its flags and its counter is read, and not only its armor.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from prereg.seal import sshsig

_VECTORS = json.loads((Path(__file__).resolve().parents[1] / "unit" / "seal_tokens.json").read_text())
MESSAGE = _VECTORS["message"].encode()
NAMESPACE = _VECTORS["namespace"]
ARMORED = ["\n".join(v["signature"]).encode() + b"\n" for v in _VECTORS["vectors"] if v["touched"]]
"""Signatures that hold."""
BLOBS = [base64.b64decode(b"".join(armored.split(b"\n")[1:-2])) for armored in ARMORED]
LINES = [v["public"] for v in _VECTORS["vectors"]]
"""Public keys, as in a `.pub` file."""


def _edit(whole: bytes, data: bytes) -> bytes:
    """Replace bytes of `whole`: the first two bytes say from where, the third how many, the rest by what."""
    at, count = int.from_bytes(data[:2], "big") % (len(whole) + 1), data[2] % 9
    return whole[:at] + data[3:] + whole[at + count :]


def edited_signature(data: bytes) -> bytes:
    """A signature with an edit, which the first byte chooses."""
    data = data.ljust(4, b"\x00")
    return sshsig._armor(_edit(BLOBS[data[0] % len(BLOBS)], data[1:]))


def edited_line(data: bytes) -> bytes:
    """A line of allowed_signers with an edit of its key."""
    data = data.ljust(4, b"\x00")
    kind, key = LINES[data[0] % len(LINES)].split(" ")[:2]
    edited = base64.b64encode(_edit(base64.b64decode(key), data[1:]))
    return b'ada@example.org namespaces="prereg-seal" ' + kind.encode() + b" " + edited + b"\n"
