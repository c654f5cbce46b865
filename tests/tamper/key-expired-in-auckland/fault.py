"""The days of a key are those of UTC, wherever the reader sits."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType

AT = "sealed"
ENV = {"TZ": "Pacific/Auckland"}
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = {"verify": "valid", "collect": "valid", "auditor": "not an allowed key"}


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"

    created = json.loads((study / "seal/manifest.json").read_bytes())["created"]
    before = datetime.fromisoformat(created) - timedelta(seconds=1)
    option = f'valid-before="{before:%Y%m%d%H%M%S}"'
    p.write_text(p.read_text().replace("ada@example.org namespaces", f"ada@example.org {option},namespaces"))
