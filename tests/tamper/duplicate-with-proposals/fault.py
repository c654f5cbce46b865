"""A second result counts no proposals where nobody could propose."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00001.duplicate-1"


def apply(study: Path, tools: ModuleType) -> None:
    path = study / "records/drawn.same.off/00001.duplicate-1.jsonl.gz"
    lines = tries.lines_of(path)
    lines[0] = lines[0].replace(b'"proposals":0', b'"proposals":1')
    path.write_bytes(tries.packed(lines))
    told = {
        "records_sha256": tools.sha(path.read_bytes()),
        "records_size": path.stat().st_size,
        "lines_sha256": tools.sha(b"".join(lines)),
    }
    place = tries.place("drawn.same.off", 1, 1)
    tries.entries(study, lambda found: found[tries.at(found, "duplicate", **place)]["body"].update(told))
