"""Gate 7: the seeds that a study reserves are nobody else's, reserved or used."""

from __future__ import annotations

from prereg.codec.overlap import overlaps
from prereg.errors import UsageError, VerificationFailed
from prereg.model.study import Seeds
from prereg.store.layout import StudyPaths
from prereg.store.seeds import repository_spans, span_of


def refuse_spent_seeds(paths: StudyPaths, seeds: Seeds) -> int:
    """Compare the blocks of a study with every other study; returns how many intervals it was compared with.

    Raises VerificationFailed that names both studies, both blocks and the interval.
    """
    ours = [span_of(paths.name, block) for block in seeds.blocks]
    if not ours:
        raise UsageError("reserves no seeds", where=str(paths.root / "seeds.json"))
    own = overlaps(ours, within=True)
    theirs = repository_spans(paths.studies, without=paths.name)
    across = [o for o in overlaps([*ours, *theirs]) if paths.name in (o.study_a, o.study_b)]
    found = [*own, *across]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise VerificationFailed(
            f"seeds are taken: {found[0]}{more}", where="seeds.json#/blocks", next_step="prereg seeds check"
        )
    return len(theirs)
