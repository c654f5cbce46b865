"""A certificate says itself for whom and how long; it stands where only a key may."""

import base64
import struct
from pathlib import Path
from types import ModuleType

AT = "sealed"
EXIT = {"verify": 1, "collect": 2, "auditor": 1}
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "allowed_signers"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"
    kind = b"ssh-ed25519-cert-v01@openssh.com"
    key = base64.b64decode((study.parents[2] / "keys/eve.pub").read_text().split()[1])
    authority, name = key, struct.pack(">I", 3) + b"eve"
    signature = b"".join(struct.pack(">I", len(part)) + part for part in (b"ssh-ed25519", bytes(64)))
    parts = (kind, bytes(32), key[-32:], 1, b"eve", name, b"", b"", b"", authority, signature)
    blob = b""
    for number, part in enumerate(parts):
        blob += struct.pack(">QI", 0, 1) if number == 3 else struct.pack(">I", len(part)) + part
        blob += struct.pack(">QQ", 0, 2**64 - 1) if part is name else b""
    p.write_text(f"{p.read_text()}eve@example.org {kind.decode()} {base64.b64encode(blob).decode()}\n")
