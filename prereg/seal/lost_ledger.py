"""A study whose ledger is gone is no draft."""

from __future__ import annotations

import os

from prereg.errors import EvidenceIncomplete, WrongState
from prereg.store.layout import StudyPaths
from prereg.store.repo import Repo


def refuse_lost_ledger(paths: StudyPaths) -> None:
    """Raise EvidenceIncomplete where HEAD holds a ledger that does not lie here.

    A seal/ alone says nothing: a `seal` that was killed leaves one before any ledger, and goes on.
    """
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
        where=paths.ledger.name,
        next_step=f"git checkout HEAD -- {paths.ledger.name}",
    )
