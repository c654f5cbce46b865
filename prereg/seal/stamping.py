"""`prereg timestamp`: a time stamp for a seal, checked before it is kept (docs/formats.md section 18)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prereg.codec.canonical import digest
from prereg.errors import PreregError, WrongState
from prereg.model.places import spans
from prereg.model.seal import Entry
from prereg.seal.enter import admit, enter
from prereg.seal.keys import SigningKey
from prereg.seal.timestamp import verify_timestamp
from prereg.seal.timestamp_client import TIMEOUT_SECONDS, ask, check_url, new_request
from prereg.seal.verified import VerifiedStudy
from prereg.store.files import read_once, write_whole
from prereg.store.layout import StudyPaths
from prereg.store.ledger import mend, read_ledger, timestamp
from prereg.store.lock import outrun, study_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """A time stamp that is verified, entered and committed."""

    entry: Entry
    time: datetime
    commit: str


def timestamp_study(
    paths: StudyPaths, url: str, *, key: SigningKey, principal: str, timeout: float = TIMEOUT_SECONDS
) -> Stamped:
    """Have the seal's signature stamped by the authority at `url`, and keep the stamp if it is verified.

    A stamp that an earlier run left without its entry is entered, and nobody is asked again. Raises
    WrongState where the protocol asks for none or the stamp is entered, UsageError for a bad address,
    EvidenceIncomplete if no stamp comes, and BadTimestamp for one that section 18 does not call verified;
    then nothing is kept.
    """
    check_url(url)
    with _owed(paths, url):
        _discard_half(paths)
        verified = admit(paths, "timestamped", key=key, principal=principal)
        plan = verified.study.protocol.timestamp
        if plan is None:
            raise WrongState(
                "the protocol asks for no time stamp",
                where=f"{paths.root}/protocol.json",
                next_step=f"prereg status {paths.root}",
            )
        signature, roots = verified.signature, verified.files[plan.roots]
        if verified.stamp.time is None:
            request = new_request(signature)
            response = ask(url, request, timeout=timeout)
            verify_timestamp(request, response, signature=signature, roots=roots)
    with study_lock(paths):
        # Nobody holds the lock while the authority is asked: the seal may have been amended meanwhile.
        if read_once(paths.manifest_signature) != signature:
            raise outrun("the study was sealed anew while its seal was stamped")
        if verified.stamp.time is None:
            write_whole(paths.timestamp_request, request)
            write_whole(paths.timestamp_response, response)
        return _entered(paths, signature, roots, key=key, principal=principal)


def _entered(
    paths: StudyPaths, signature: bytes, roots: bytes, *, key: SigningKey, principal: str
) -> Stamped:
    """Enter the stamp that lies beside the seal."""
    request, response = read_once(paths.timestamp_request), read_once(paths.timestamp_response)
    time = verify_timestamp(request, response, signature=signature, roots=roots)

    def body(again: VerifiedStudy) -> Mapping[str, Any]:
        return {
            "seal": again.seal,
            "request_sha256": digest(request),
            "token_sha256": digest(response),
            "time": timestamp(time),
        }

    entry, commit = enter(
        paths,
        "timestamped",
        body,
        key=key,
        principal=principal,
        message=f"Time stamp of study {paths.name}: {time.isoformat()}",
        touched=[paths.timestamp_request, paths.timestamp_response],
    )
    return Stamped(entry=entry, time=time, commit=commit)


def _discard_half(paths: StudyPaths) -> None:
    """Remove the one file of two that a killed run left: without the other it says nothing."""
    files = (paths.timestamp_request, paths.timestamp_response)
    there = [file for file in files if file.is_file()]
    if len(there) != 1 or not paths.ledger.is_file():
        return
    mend(paths)
    span = spans(read_ledger(read_once(paths.ledger)))[-1]
    if not any(e.type == "timestamped" for e in span):
        there[0].unlink()


@contextlib.contextmanager
def _owed(paths: StudyPaths, url: str) -> Iterator[None]:
    """Whatever goes wrong here leaves the seal as it was, and the command that goes on."""
    try:
        yield
    except PreregError as error:
        error.next_step = error.next_step or f"prereg timestamp {paths.root} --url {url} --key KEY"
        raise
