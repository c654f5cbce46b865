"""A line that allows nothing is no line: whoever reads it otherwise would allow all."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
EXIT = {"verify": 1, "collect": 2, "auditor": 1}
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "allowed_signers"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"
    who, line = "eve@example.org", (study.parents[2] / "keys/eve.pub").read_text()
    p.write_text(f'{p.read_text()}{who} namespaces="" {line}')
