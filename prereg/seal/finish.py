"""The end of each verb: sign the ledger's head and commit what the verb made (docs/formats.md section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from prereg.errors import VerificationFailed, WrongState
from prereg.model.places import seals
from prereg.model.seal import Entry
from prereg.seal.head import REMEDY, head_bytes, sign_head
from prereg.seal.keys import SigningKey
from prereg.seal.trailers import trailers
from prereg.store.files import read_once, write_whole
from prereg.store.folder import leftovers, partial_of
from prereg.store.layout import StudyPaths
from prereg.store.ledger import head_of, read_ledger
from prereg.store.lock import study_lock
from prereg.store.repo import Repo


def sign_head_and_commit(
    paths: StudyPaths,
    *,
    key: SigningKey,
    principal: str,
    message: str,
    touched: Iterable[Path] = (),
) -> str:
    """Rewrite and sign ledger.head.json, commit it with the ledger and `touched`; returns the commit.

    `touched` are files or folders of the study; nothing else is committed. Raises LedgerFault for a broken
    ledger, VerificationFailed if its last entry is another principal's, and WrongState where git refuses.
    """
    with study_lock(paths):
        data = read_once(paths.ledger)
        entries = read_ledger(data)
        last = entries[-1]
        if last.actor != principal:
            raise VerificationFailed(
                f"the last entry is {last.actor}'s; {principal} cannot sign its head", where="ledger.jsonl"
            )
        study = _study_of(paths)
        head = head_of(data)
        signed = head_bytes(study, entries, head)
        # Under the lock, an unfinished write of one of these is what a killed verb left.
        for file in leftovers(paths):
            if partial_of(file.name) in (paths.head.name, paths.head_signature.name):
                file.unlink()
        write_whole(paths.head, signed)
        write_whole(paths.head_signature, sign_head(signed, key))
        return Repo.find(paths.root).commit(
            [paths.ledger, paths.head, paths.head_signature, *touched],
            message,
            trailers(study, seals(entries)[-1], head),
            principal=principal,
        )


def refuse_uncommitted_of_others(paths: StudyPaths, entries: Sequence[Entry], principal: str) -> None:
    """Raise WrongState if `principal` would follow another actor whose last entry no commit holds signed.

    A later commit could not bring that back: the hand-over would be unsigned for good.
    """
    last = entries[-1]
    if last.actor == principal:
        return
    if not is_committed(paths):
        verb = REMEDY.get(last.type, "prereg collect")
        raise WrongState(
            f"entry {last.seq} is {last.actor}'s and not committed yet",
            where=str(paths.ledger),
            next_step=f"{last.actor} runs {verb} {paths.root} once more",
        )


def is_committed(paths: StudyPaths) -> bool:
    """Whether HEAD holds the ledger and its signed head as they lie here."""
    repo = Repo.find(paths.root)
    commit = repo.head()
    return commit is not None and all(
        file.exists() and repo.blob_at(commit, file) == read_once(file)
        for file in (paths.ledger, paths.head, paths.head_signature)
    )


def _study_of(paths: StudyPaths) -> str:
    from prereg.seal.manifest import read_manifest

    return read_manifest(read_once(paths.manifest)).study
