"""`prereg analyse`: authenticated records in, decisions and one ledger entry out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from prereg.analyse.decide import decide
from prereg.analyse.redrawn import redrawn
from prereg.analyse.tally import tally
from prereg.analyse.tries import tries_of
from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.errors import EvidenceIncomplete, PreregError, VerificationFailed, WrongState
from prereg.model.places import bearing, place_fault
from prereg.model.plan import plan
from prereg.model.seal import Entry, State
from prereg.model.verdict import Decisions
from prereg.seal.agree import differences
from prereg.seal.evidence import authenticated_records, exact_trees
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.keys import SigningKey
from prereg.seal.shard_set import check_shard_set
from prereg.seal.trust import AUTHOR, LEDGER, check_own_signer, load_trust, refuse_uncommitted
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import NEXT, verify_study
from prereg.store.files import read_in, write_whole
from prereg.store.folder import partial_of, walk
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter, mend
from prereg.store.lock import outrun
from prereg.store.repo import Repo

NAME = "analysis/decisions.json"
_WRITTEN = {NAME, "ledger.head.json", "ledger.head.json.sig"}
"""The files of the study that an analysis writes whole."""
STATES: tuple[State, ...] = ("collecting", "collected", "analysed", "audited")
"""The states in which a study may be analysed; for `collecting` see `_refuse_open`."""
Progress = Callable[[str, int, int], None]
"""Called after each unit with its id, and the draws and leaves read so far and in all."""


def analyse_study(
    paths: StudyPaths, *, key: SigningKey, principal: str, progress: Progress | None = None
) -> Decisions:
    """Apply the sealed rules to the study's records; write the decisions, enter them in the ledger, commit.

    A study that is analysed already is analysed again and compared: nothing is written, and the decisions of
    the ledger are returned. What a killed analysis left is completed.

    Raises WrongState before the collection is complete, Untrusted unless `key` is an author's,
    EvidenceIncomplete for a missing unit that the protocol does not bound, and VerificationFailed if anything
    was altered or if a second analysis comes to other decisions.
    """
    verified = _gate(paths)
    _refuse_open(verified)
    check_own_signer(
        load_trust(paths),
        principal=principal,
        public_key=key.public_key,
        roles=AUTHOR,
        namespace=LEDGER,
        at=datetime.now(UTC),
        where="--key",
    )
    refuse_uncommitted(paths)
    decisions = decisions_of(verified, progress)
    data = dump_file(to_json(decisions))
    read_machine(data, "decisions", Decisions, where=NAME)
    entry = last_analysis(verified.entries)
    if entry is not None:
        decisions = _compare(paths, entry, data)
        if _finished(paths, verified):
            return decisions
    with LedgerWriter.open(paths) as writer:
        if writer.head != verified.head:
            raise outrun("another program added to it during the analysis")
        for name in walk(paths).files:
            if partial_of(name) in _WRITTEN:
                (paths.root / name).unlink()
        if entry is None:
            write_whole(paths.decisions, data)
            writer.append("analysis", {"seal": verified.seal, "decisions_sha256": digest(data)}, principal)
        sign_head_and_commit(
            paths,
            key=key,
            principal=principal,
            message=f"Analyse {paths.name}",
            touched=[paths.decisions],
        )
    return decisions


def decisions_of(verified: VerifiedStudy, progress: Progress | None = None) -> Decisions:
    """What the sealed rules say of a verified study's records. Writes nothing."""
    stored = verified.stored
    planned = sum(
        stored.get((shard.unit.id, shard.index), {"draws": 0})["draws"]
        if shard.channel == "exact"
        else shard.draws
        for shard in plan(verified.study.protocol, verified.study.seeds)
    )
    tallies = {}
    read = 0
    for unit, records in authenticated_records(verified):
        tallies[unit.id] = tally(unit.id, records)
        read += len(records)
        if progress is not None:
            progress(unit.id, read, planned)
    trees = exact_trees(verified)
    for unit_id, tree in trees.items():
        read += len(tree.leaves)
        if progress is not None:
            progress(unit_id, read, planned)
    tries = tries_of(verified.entries, verified.study.protocol, redrawn(verified))
    return decide(verified.study, verified.seal, tallies, verified.invalid.keys(), trees, tries)


def last_analysis(entries: tuple[Entry, ...]) -> Entry | None:
    """The ledger's last `analysis` entry, or None."""
    return next((e for e in reversed(entries) if e.type == "analysis"), None)


def _gate(paths: StudyPaths) -> VerifiedStudy:
    """Verify all but the records' bytes, and let nothing through but what a killed analysis leaves."""
    mend(paths)
    try:
        return verify_study(paths, need=STATES, records=False)
    except VerificationFailed as fault:
        verified = verify_study(paths, need=STATES, records=False, allow_partials=True)
        _refuse_killed(verified)
        if not _own_leftovers(paths, verified):
            raise fault from None
        return verified


def _refuse_killed(verified: VerifiedStudy) -> None:
    """Raise WrongState, in the words of `prereg audit`, where all that is amiss is a collection cut off."""
    probe = Entry(seq=0, time="", type="analysis", actor="", body={}, body_sha256="", prev="")
    if verified.state == "collecting" and (fault := place_fault(verified.entries, probe)):
        raise WrongState(
            f"the study is {verified.state}: {fault}",
            where=str(verified.paths.root),
            next_step=f"{NEXT[verified.state]} {verified.paths.root}",
        )


def _refuse_open(verified: VerifiedStudy) -> None:
    """An unfinished collection can be analysed once its last run has ended, if the protocol bounds it.

    Raises WrongState while a run is open, and EvidenceIncomplete where the protocol refuses a missing unit.
    """
    again = f"prereg collect {verified.paths.root}"
    if verified.state != "collecting":
        return
    if bearing(verified.entries).type != "collection-ended":
        raise WrongState(
            "a collection is open: it runs, or it was killed", where="ledger.jsonl", next_step=again
        )
    missing = verified.missing()
    if missing and verified.study.protocol.missing == "refuse":
        first = missing[0]
        raise EvidenceIncomplete(
            f"{len(missing)} shards are missing, and the protocol refuses a missing unit",
            where=f"records/{first.unit.id}/{first.name}.jsonl.gz",
            next_step=again,
        )


def _finished(paths: StudyPaths, verified: VerifiedStudy) -> bool:
    """Whether nothing of the last analysis is left to sign or to commit."""
    if verified.signed < len(verified.entries):
        return False
    if verified.entries[-1].type != "analysis":
        return True
    repo = Repo.find(paths.root)
    commit = repo.head()
    return commit is not None and all(
        repo.blob_at(commit, path) == read_in(paths.root, path.relative_to(paths.root).as_posix())[0]
        for path in (paths.decisions, paths.ledger, paths.head, paths.head_signature)
    )


def _own_leftovers(paths: StudyPaths, verified: VerifiedStudy) -> bool:
    """Whether the one thing amiss is an analysis cut off between its file, its entry and its head."""
    files = walk(paths).files
    partials = {target for name in files if (target := partial_of(name))}
    unsigned = verified.entries[verified.signed :]
    if partials - _WRITTEN or any(e.type != "analysis" for e in unsigned):
        return False
    shards = plan(verified.study.protocol, verified.study.seeds)
    planned = {(s.unit.id, s.index): s for s in shards}
    try:
        check_shard_set(
            verified.entries, verified.study.protocol, planned, files, complete=True, orphans=False
        )
    except PreregError:
        return False
    return bool(partials or unsigned) or (NAME in files and last_analysis(verified.entries) is None)


def _compare(paths: StudyPaths, entry: Entry, data: bytes) -> Decisions:
    """The decisions of the ledger, if this analysis came to the same."""
    before, _ = read_in(paths.root, NAME)
    if digest(before) != entry.body["decisions_sha256"]:
        raise VerificationFailed(
            f"its SHA-256 is not that of ledger entry {entry.seq}",
            where=NAME,
            next_step=f"git checkout -- {NAME}",
        )
    stored = read_machine(before, "decisions", Decisions, where=NAME)
    if before != data:
        fresh = read_machine(data, "decisions", Decisions, where=NAME)
        found = differences(to_json(stored), to_json(fresh))
        if found:
            raise VerificationFailed(
                f"a second analysis of the same records differs: {found[0]}"
                + (f", and {len(found) - 1} more" if len(found) > 1 else ""),
                where=NAME,
                next_step=f"prereg audit {paths.root}",
            )
    return stored
