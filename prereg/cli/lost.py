"""A study whose ledger is gone is no draft."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from prereg.errors import EvidenceIncomplete, WrongState

if TYPE_CHECKING:
    from prereg.store.layout import StudyPaths


def refuse_lost_ledger(paths: StudyPaths, folder: Path) -> None:
    """Raise EvidenceIncomplete where HEAD holds a ledger that does not lie here.

    A seal/ alone says nothing: a `seal` that was killed leaves one before any ledger, and goes on.
    """
    from prereg.store.repo import Repo

    if os.path.lexists(paths.ledger):
        return
    try:
        repo = Repo.find(paths.root)
    except (WrongState, EvidenceIncomplete):
        return  # without a history that can be read nothing is known to have been lost
    head = repo.head()
    # By the tree of HEAD: that an object cannot be read must not look as if it were not there.
    if head is None or repo.relative(paths.ledger) not in repo.blobs_at(head, paths.ledger):
        return
    raise EvidenceIncomplete(
        "the ledger is missing: HEAD holds it, so the study is sealed and no draft",
        where=str(folder / paths.ledger.name),
        next_step=f"git checkout HEAD -- {shlex.quote(str(folder / paths.ledger.name))}",
    )
