"""Folders within folders, deeper than any program may follow, end in a word and not in a bug."""

import os
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "aaa"


def apply(study: Path, tools: ModuleType) -> None:
    os.makedirs(study / "aaa")
    here = os.open(study / "aaa", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("a", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
