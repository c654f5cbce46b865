"""Gathers the verbs, in the order of a study's life."""

from __future__ import annotations

import importlib

from prereg.cli.app import run

VERBS = (
    "draft",
    "events",
    "check",
    "seal",
    "cosign",
    "timestamp",
    "collect",
    "analyse",
    "audit",
    "amend",
    "deviate",
    "relocate",
    "push",
    "close",
    "status",
    "verify",
    "diff",
    "report",
    "seeds",
    "key",
    "build",
    "probe",
    "sweep",
    "demo",
)
"""The modules that register a verb, in the order of the help page."""

for _verb in VERBS:
    importlib.import_module(f"prereg.cli.{_verb}")

__all__ = ["run"]
