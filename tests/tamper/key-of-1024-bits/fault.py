"""A key that others can compute signs nothing, and refuses the file that trusts it."""

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
    parts = (b"ssh-rsa", b"\1\0\1", b"\0" + ((1 << 1024) - 1).to_bytes(128))
    blob = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    p.write_text(f"{p.read_text()}eve@example.org ssh-rsa {base64.b64encode(blob).decode()}\n")
