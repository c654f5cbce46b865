"""What confirms is tried once: a second try is a second chance."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "third"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    protocol, seeds = study / "protocol.json", study / "seeds.json"
    text = protocol.read_bytes().replace(b'"purpose": "discovery"', b'"purpose": "confirmation"')
    forge.sealed_file(study, "protocol.json", text)
    text = seeds.read_bytes().replace(b'"role": "discovery"', b'"role": "confirmation"')
    forge.sealed_file(study, "seeds.json", text)
