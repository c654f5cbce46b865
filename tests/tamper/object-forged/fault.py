"""Other bytes under the name of an old commit: outsiders know the name, so it must be theirs."""

import subprocess
import zlib
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "git"


def apply(study: Path, tools: ModuleType) -> None:
    seal = tools.git(study, "log", "--format=%H", "--diff-filter=A", "--", "seal/manifest.json")
    first = tools.git(study, "log", "--format=%H", "--reverse", "--", "records").split()[0]
    show = ["git", "cat-file", "commit", first]
    raw = subprocess.run(show, cwd=study, capture_output=True, check=True).stdout
    data = raw.replace(seal.encode(), tools.git(study, "rev-parse", f"{seal}~1").encode())
    p = study.parent.parent / ".git/objects" / first[:2] / first[2:]
    p.unlink()
    p.write_bytes(zlib.compress(b"commit %d\0" % len(data) + data))
