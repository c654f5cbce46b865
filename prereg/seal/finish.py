"""The end of each verb: sign the ledger's head and commit what the verb made (docs/formats.md section 5)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prereg.errors import VerificationFailed
from prereg.model.places import seals
from prereg.seal.head import head_bytes, sign_head
from prereg.seal.keys import SigningKey
from prereg.seal.trailers import trailers
from prereg.store.files import read_once, write_whole
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
        write_whole(paths.head, signed)
        write_whole(paths.head_signature, sign_head(signed, key))
        return Repo.find(paths.root).commit(
            [paths.ledger, paths.head, paths.head_signature, *touched],
            message,
            trailers(study, seals(entries)[-1], head),
            principal=principal,
        )


def _study_of(paths: StudyPaths) -> str:
    from prereg.seal.manifest import read_manifest

    return read_manifest(read_once(paths.manifest)).study
