"""Repositories that are not as ours: of another user, or with ids that no manifest can name."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from prereg.errors import EvidenceIncomplete, PreregError, WrongState
from prereg.store.files import read_once

DUBIOUS = "dubious ownership"
"""What git says of a repository whose folder belongs to another user."""
_SHA_256 = re.compile(rb"^[ \t]*objectformat[ \t]*=[ \t]*\"?sha256\b", re.IGNORECASE | re.MULTILINE)


def refuse_long_ids(folder: Path) -> None:
    """Raise WrongState if the repository around `folder` names its objects by SHA-256.

    Manifests, tags and ledgers name commits by 40 hex digits (docs/formats.md). git is not asked.
    """
    top = top_above(folder)
    if top is None:
        return
    try:
        settings = read_once(top / ".git" / "config", limit=1_000_000)
    except PreregError:  # of a further work tree, or not ours to read
        return
    if _SHA_256.search(settings):
        raise WrongState(
            "its repository names commits by SHA-256, and a manifest names them by 40 hex digits",
            where=str(top),
            next_step="git init without --object-format=sha256, in a new folder",
        )


def top_above(folder: Path) -> Path | None:
    """The nearest folder at or above that holds a .git: what git calls the top of a work tree, or None."""
    whole = folder.resolve()
    return next((place for place in (whole, *whole.parents) if os.path.lexists(place / ".git")), None)


def safe(top: Path) -> dict[str, str]:
    """What makes git read a repository of another user; only where it is said from outside does git obey."""
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": str(top)}


def not_ours(top: Path) -> EvidenceIncomplete:
    return EvidenceIncomplete(
        "belongs to another user, and git does not work there",
        where=str(top),
        next_step=f"git config --global --add safe.directory {shlex.quote(str(top))}, if you trust its owner",
    )
