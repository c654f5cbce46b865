"""Gathers the verbs, in the order of a study's life."""
# ruff: noqa: I001, F401  (the order is the order of the help page; each module registers its verb)

from __future__ import annotations

from prereg.cli.app import run
from prereg.cli import draft
from prereg.cli import events
from prereg.cli import check
from prereg.cli import seal
from prereg.cli import collect
from prereg.cli import analyse
from prereg.cli import audit
from prereg.cli import status
from prereg.cli import verify
from prereg.cli import diff
from prereg.cli import report
from prereg.cli import seeds
from prereg.cli import key
from prereg.cli import build
from prereg.cli import demo

__all__ = ["run"]
