"""One entry by one verb: verify the study, enter what is told, sign the head and commit (section 19)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prereg.errors import PreregError, WrongState
from prereg.model.places import place_fault
from prereg.model.seal import EDITION_2, Entry, EntryType
from prereg.seal.finish import is_committed, refuse_uncommitted_of_others, sign_head_and_commit
from prereg.seal.head import ROLES
from prereg.seal.keys import SigningKey
from prereg.seal.trust import LEDGER, check_own_signer, load_trust, refuse_uncommitted
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import NEXT, verify_study
from prereg.store.folder import leftovers
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter, mend
from prereg.store.lock import outrun, study_lock
from prereg.store.repo import Repo

ONE_ENTRY: tuple[EntryType, ...] = ("cosigned", "timestamped", "pushed", "deviation", "closed")
"""Entries that a verb makes alone: cut off after one, nothing but its head and its commit is missing."""

Gate = Callable[[bool], VerifiedStudy]
"""Verifies a study; with True it lets through what a killed verb leaves."""


def enter(
    paths: StudyPaths,
    kind: EntryType,
    body: Callable[[VerifiedStudy], Mapping[str, Any]],
    *,
    key: SigningKey,
    principal: str,
    message: str,
    touched: Iterable[Path] = (),
    gate: Gate | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[Entry, str]:
    """Add one entry of that kind to a verified study's ledger; returns it and the commit.

    The study is locked from the first look on: what another verb has half written looks like a fault. What a
    killed run of such a verb left unsigned is signed and committed first. If that is this very entry, or a
    deviation in the same words, no second one is made: whoever runs a killed verb again may not know how far
    it came. `meanwhile` is called between the entry and its signature. Raises WrongState where the entry may
    not stand or the study is of edition 1, Untrusted for a signer without the role, and what `verify_study`
    raises.
    """
    with study_lock(paths):
        verified = admit(paths, kind, key=key, principal=principal, gate=gate)
        told = dict(body(verified))
        with LedgerWriter.open(paths) as writer:
            if writer.head != verified.head:
                raise outrun()
            for file in leftovers(paths):
                if file.parent == paths.root:  # a head that was being written
                    file.unlink()
            last = writer.entries[-1]
            again = (last.type, last.body, last.actor) == (kind, told, principal)
            whole = again and is_committed(paths)
            # Words that were said are said; what another verb does anew, it may have to do again.
            if whole and kind == "deviation" and (commit := Repo.find(paths.root).head()):
                return last, commit
            entry = last if again and not whole else writer.append(kind, told, principal)
            meanwhile()
            commit = sign_head_and_commit(
                paths, key=key, principal=principal, message=message, touched=touched
            )
    return entry, commit


def admit(
    paths: StudyPaths, kind: EntryType, *, key: SigningKey, principal: str, gate: Gate | None = None
) -> VerifiedStudy:
    """The verified study, if `principal` may add an entry of that kind to it now. Raises as `enter` does."""
    mend(paths)
    verified = _verified(paths, kind, principal, gate or (lambda lenient: _gate(paths, lenient)))
    where = str(paths.root)
    if kind in EDITION_2 and not verified.study.protocol.since(2):
        raise WrongState(
            f"a study of edition 1 has no entry {kind}; its protocol says no `edition`",
            where=f"{where}/protocol.json",
            next_step=f"prereg status {where}",
        )
    check_own_signer(
        load_trust(paths),
        principal=principal,
        public_key=key.public_key,
        roles=ROLES[kind],
        namespace=LEDGER,
        at=datetime.now(UTC),
        where="--key",
    )
    refuse_uncommitted(paths)
    entries = verified.entries
    again = entries[-1].type == kind and entries[-1].actor == principal and not is_committed(paths)
    if not again and (fault := place_fault(entries, _probe(kind, principal))):
        raise WrongState(fault, where=where, next_step=f"{NEXT[verified.state]} {where}")
    refuse_uncommitted_of_others(paths, entries, principal)
    return verified


def _verified(paths: StudyPaths, kind: EntryType, principal: str, gate: Gate) -> VerifiedStudy:
    """A study in order, or one where nothing is amiss but that a verb of `principal` was cut off."""
    try:
        return gate(False)
    except PreregError as fault:
        try:
            verified = gate(True)
        except PreregError:
            raise fault from None
        waiting = verified.entries[verified.signed :]
        if not waiting or any(e.type not in (*ONE_ENTRY, kind) or e.actor != principal for e in waiting):
            raise
        return verified


def _gate(paths: StudyPaths, lenient: bool) -> VerifiedStudy:
    return verify_study(paths, records=False, allow_partials=lenient)


def _probe(kind: EntryType, principal: str) -> Entry:
    """An entry without content, to ask where it may stand."""
    return Entry(seq=0, time="", type=kind, actor=principal, body={}, body_sha256="", prev="")
