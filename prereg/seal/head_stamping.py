"""`prereg timestamp --head`: a time stamp of the ledger's present head (docs/formats.md section 22).

It enters nothing in the ledger and signs nothing, so that anybody with the study's folder can do it, at any
time: what it says, it says of itself. It is checked before it is kept.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from prereg.errors import PreregError, WrongState
from prereg.seal.finish import is_committed
from prereg.seal.head import read_head
from prereg.seal.head_stamps import FILES, HEAD, REQUEST, RESPONSE, SIGNATURE
from prereg.seal.timestamp import verify_timestamp
from prereg.seal.timestamp_client import TIMEOUT_SECONDS, ask, check_url, new_request
from prereg.seal.trailers import trailers
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import verify_study
from prereg.store.files import read_once, write_whole
from prereg.store.layout import StudyPaths, not_sealed
from prereg.store.ledger import head_of, line_digests
from prereg.store.lock import outrun, study_lock
from prereg.store.repo import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class StampedHead:
    """A time stamp of a head that is verified and committed."""

    seq: int
    """The entry that the head names: the ledger up to there is attested."""
    time: datetime
    commit: str | None
    """The commit that was made; None where the stamp was there already."""


def stamp_head(paths: StudyPaths, url: str, *, timeout: float = TIMEOUT_SECONDS) -> StampedHead:
    """Have the signature of the present head stamped by the authority at `url`, and keep a good stamp.

    A head that has its stamp keeps it, and nobody is asked again. Raises WrongState for a draft, where the
    protocol asks for no time stamp, or while the head is not signed and committed; UsageError for a bad
    address; EvidenceIncomplete if no stamp comes; and BadTimestamp for one that section 18 does not call
    verified; then nothing is kept.
    """
    check_url(url)
    if not paths.is_begun:
        raise not_sealed(paths)
    Repo.find(paths.root).branch()
    with _again(paths, url):
        _discard_half(paths)
        verified = verify_study(paths, records=False)
        roots = _roots(verified)
        if not is_committed(paths):
            raise WrongState(
                "the head is not committed yet: the verb that made it was cut off",
                where=str(paths.head),
                next_step=f"prereg status {paths.root}, and run that verb once more",
            )
        seq = len(verified.entries)
        folder = paths.head_stamp(seq)
        if not folder.exists():
            _ask(paths, verified, roots, url, timeout)
        request, response = read_once(folder / REQUEST), read_once(folder / RESPONSE)
        signature = read_once(folder / SIGNATURE)
        of = f"stamps/{seq}/{SIGNATURE}"
        time = verify_timestamp(request, response, signature=signature, roots=roots, of=of)
        return StampedHead(seq=seq, time=time, commit=_commit(paths, verified, seq, time))


def _roots(verified: VerifiedStudy) -> bytes:
    root, protocol = verified.paths.root, verified.study.protocol
    if protocol.timestamp is None or not protocol.since(3):
        what = "asks for no time stamp" if protocol.timestamp is None else "is of an earlier edition than 3"
        raise WrongState(
            f"the protocol {what}: its heads have none",
            where=f"{root}/protocol.json",
            next_step=f"prereg status {root}",
        )
    return verified.files[protocol.timestamp.roots]


def _ask(paths: StudyPaths, verified: VerifiedStudy, roots: bytes, url: str, timeout: float) -> None:
    """Get a stamp, check it, and write the four files."""
    ledger, head, signature = (read_once(p) for p in (paths.ledger, paths.head, paths.head_signature))
    if head_of(ledger) != verified.head:
        raise outrun()
    study, entries = verified.manifest.study, verified.entries
    named = read_head(head, signature, study=study, entries=entries, lines=line_digests(ledger))
    seq = named.entry.seq
    if seq != len(entries):
        raise outrun()
    request = new_request(signature)
    response = ask(url, request, timeout=timeout)
    of = f"stamps/{seq}/{SIGNATURE}"
    verify_timestamp(request, response, signature=signature, roots=roots, of=of)
    with study_lock(paths):
        if read_once(paths.ledger) != ledger or read_once(paths.head_signature) != signature:
            raise outrun()
        made = {HEAD: head, SIGNATURE: signature, REQUEST: request, RESPONSE: response}
        for name, data in made.items():
            write_whole(paths.head_stamp(seq) / name, data)


def _commit(paths: StudyPaths, verified: VerifiedStudy, seq: int, time: datetime) -> str | None:
    """Commit the stamp, unless HEAD has it."""
    repo = Repo.find(paths.root)
    folder = paths.head_stamp(seq)
    commit = repo.head()
    if commit is not None and all(
        repo.blob_at(commit, folder / name) == read_once(folder / name) for name in FILES
    ):
        return None
    return repo.commit(
        [folder],
        f"Time stamp of entry {seq} of study {paths.name}: {time.isoformat()}",
        trailers(verified.manifest.study, verified.seal, verified.head),
        principal=verified.entries[-1].actor,
    )


def _discard_half(paths: StudyPaths) -> None:
    """Remove what a killed run of ours left of a stamp: nobody has committed it, and it says nothing yet."""
    if not paths.stamps.is_dir() or paths.stamps.is_symlink():
        return
    repo = Repo.find(paths.root)
    with study_lock(paths):
        for folder in sorted(paths.stamps.iterdir()):
            if folder.is_symlink() or not folder.is_dir():
                continue
            there = {file.name for file in folder.iterdir()}
            if there != set(FILES) and not repo.tracked(folder):
                shutil.rmtree(folder)


@contextlib.contextmanager
def _again(paths: StudyPaths, url: str) -> Iterator[None]:
    """Whatever goes wrong here leaves the study as it was, and the command that goes on."""
    try:
        yield
    except PreregError as error:
        error.next_step = error.next_step or f"prereg timestamp {paths.root} --head --url {url}"
        raise
