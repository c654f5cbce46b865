"""A file that git would not commit cannot be sealed."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 2}
CAUGHT_BY = ("seal",)
NAMED = "coin.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study.parent.parent / ".git/info/exclude").write_text("coin.json\n")
    (study / "coin.json").write_text("{}\n")
