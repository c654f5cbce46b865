"""Engines keep the low 32 bits; equal low bits are equal seeds."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("auditor",)
NAMED = "twin"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sibling(study, "twin", shift=2**32)
