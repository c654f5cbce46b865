"""A reviewer whom the protocol names as an author does not get as far as an entry."""

from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
KEY = "rex"
EXIT = {"audit": 4}
CAUGHT_BY = ("audit",)
NAMED = "authors"


def apply(study: Path, tools: ModuleType) -> None:
    one = b'"principal": "ada@example.org"'
    more = one + b'}, {"name": "Rex", "principal": "rex@example.org"'
    forge.sealed_text(study, "protocol.json", one, more)
