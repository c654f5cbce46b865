"""What an earlier attempt stored and the one that counts stored too: two results of the same seeds (21)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from prereg.model.attempts import Copies, Tried
from prereg.model.plan import plan
from prereg.seal.duplicates import differing_lines
from prereg.seal.evidence import stored_files, told_before
from prereg.seal.packing import unpack
from prereg.seal.shard_set import Place
from prereg.seal.verified import VerifiedStudy


def redrawn(verified: VerifiedStudy) -> dict[str, Copies]:
    """How many shards of earlier attempts were drawn again, and how many of their draws came out differently.

    By unit. One shard is read at a time, in two attempts. Raises VerificationFailed for files that are not
    what the ledger stored.
    """
    found: dict[str, Copies] = {}
    study, stored = verified.study, verified.stored_in_all
    planned = {(s.unit.id, s.index): s for s in plan(study.protocol, study.seeds)}
    before = told_before(verified.entries)

    def lines(place: Place) -> bytes:
        """Without what tells the attempt, with which each begins."""
        shard = planned[place[0], place[2]]
        told = (verified.paths, study, verified.manifest, verified.seal, shard)
        gz, meta, where = stored_files(*told, stored[place], before[place])
        begin = b'{"attempt":%d,' % place[1]
        return b"".join(line.removeprefix(begin) for line in unpack(gz, meta, where).splitlines(True))

    for early, late in _pairs(stored, verified.tried):
        one, two = lines(early), lines(late)
        known = found.get(early[0], Copies(copies=0, differing=0))
        found[early[0]] = known + Copies(copies=1, differing=differing_lines(one, two))
    return found


def _pairs(stored: Collection[Place], standing: Mapping[str, Tried]) -> Iterator[tuple[Place, Place]]:
    """Each shard of an earlier attempt, and the same of the one that counts, where both are stored."""
    for unit, attempt, shard in stored:
        last = (unit, standing.get(unit, Tried()).attempt, shard)
        if attempt < last[1] and last in stored:
            yield (unit, attempt, shard), last
