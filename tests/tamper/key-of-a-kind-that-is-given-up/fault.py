"""Keys of DSA are no keys any more, and refuse the file that trusts one."""

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
    parts = (b"ssh-dss", *(b"\0" + ((1 << bits) - 1).to_bytes(bits // 8) for bits in (1024, 160, 1024, 1024)))
    blob = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    p.write_text(f"{p.read_text()}eve@example.org ssh-dss {base64.b64encode(blob).decode()}\n")
