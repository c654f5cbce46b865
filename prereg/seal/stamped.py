"""The time stamp of a sealed study: whether it is asked for, there, and good (docs/formats.md section 18)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed, WrongState
from prereg.model.places import spans
from prereg.model.seal import Entry
from prereg.model.study import TimestampPlan
from prereg.seal.lineage import Sealed
from prereg.seal.timestamp import REQUEST, RESPONSE, State, verify_timestamp
from prereg.store.folder import Tree
from prereg.store.ledger import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The state of a study's time stamp."""

    state: State
    time: datetime | None = None
    """`genTime`, where it is verified."""
    entered: bool = False
    """Whether the ledger has it."""

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {"state": self.state, "time": None if self.time is None else self.time.isoformat()}

    def __str__(self) -> str:
        return self.state if self.time is None else f"{self.state}, {self.time.isoformat()}"


def check_stamp(
    read: Callable[[str], bytes],
    tree: Tree,
    lineage: Sequence[Sealed],
    plan: TimestampPlan | None,
    entries: Sequence[Entry] | None,
    *,
    files: Mapping[str, bytes],
    signature: bytes,
) -> Stamp:
    """Check the two files of the present seal, and that no collection went before them (step 4).

    `read` gives the bytes of a file of the study, the same ones whenever it is asked; `files` are the sealed
    files, the roots among them; `signature` the bytes of seal/manifest.json.sig. Without `entries`,
    because the ledger is no chain (step 6), the files alone are checked. Raises VerificationFailed.
    """
    said = spans(entries or ())
    span = said[-1] if said and len(said) == len(lineage) else ()
    there = [name for name in (REQUEST, RESPONSE) if name in tree.files]
    entry = next((e for e in span if e.type == "timestamped"), None)
    if plan is None:
        if there:
            raise VerificationFailed("the protocol asks for no time stamp", where=there[0])
        if entry is not None:
            raise VerificationFailed("the protocol asks for no time stamp", where=_line(entry))
        return Stamp(state="none")
    started = next((e for e in span if e.type == "collection-started"), None)
    if started is not None and (entry is None or entry.seq > started.seq):
        raise VerificationFailed(
            "a collection began without the time stamp that the protocol asks for", where=_line(started)
        )
    if not there:
        return Stamp(state="owed")
    request, response = (read(name) for name in (REQUEST, RESPONSE))
    roots = files.get(plan.roots)
    if roots is None:
        raise VerificationFailed(
            f"there is no sealed file {plan.roots!r}", where="protocol.json#/timestamp/roots"
        )
    time = verify_timestamp(request, response, signature=signature, roots=roots)
    return Stamp(state="verified", time=time, entered=entry is not None)


def refuse_owed(stamp: Stamp, where: str) -> None:
    """Raise WrongState while a time stamp is owed, or is not in the ledger."""
    if stamp.state == "none" or (stamp.state == "verified" and stamp.entered):
        return
    raise WrongState(
        "the protocol asks for a time stamp of the seal, and it is owed"
        if stamp.state == "owed"
        else "the seal's time stamp is not in the ledger yet",
        where=where,
        next_step=f"prereg timestamp {where} --url URL --key KEY",
    )


def earlier_stamps(
    read: Callable[[str], bytes],
    tree: Tree,
    lineage: Sequence[Sealed],
    plan: TimestampPlan | None,
    *,
    files: Mapping[str, bytes],
) -> dict[str, datetime]:
    """The verified times of the seals that were amended, by seal digest (step 4).

    `read` is as for `check_stamp`. A stamp can be judged where the roots of then are still the sealed ones:
    the same path, the same bytes. Raises BadTimestamp for one that is judged and not verified.
    """
    found: dict[str, datetime] = {}
    roots = None if plan is None else files.get(plan.roots)
    for one in lineage[:-1]:
        names = _names(one)
        if roots is None or plan is None or names[1] not in tree.files:
            continue
        if any(f.path == plan.roots and f.sha256 == digest(roots) for f in one.manifest.files):
            request, response, signature = (read(name) for name in (*names, f"{one.where}.sig"))
            found[one.seal] = verify_timestamp(request, response, signature=signature, roots=roots)
    return found


def check_stamp_entries(
    read: Callable[[str], bytes],
    tree: Tree,
    lineage: Sequence[Sealed],
    entries: Sequence[Entry],
    stamp: Stamp,
) -> None:
    """Hold each `timestamped` entry against the files of its seal (step 6).

    `read` gives the bytes that step 4 verified. Raises VerificationFailed.
    """
    for one, span in zip(lineage, spans(entries), strict=False):
        names = _names(one)
        entry = next((e for e in span if e.type == "timestamped"), None)
        if entry is None:
            if one is not lineage[-1] and names[1] in tree.files:
                raise VerificationFailed("the ledger has no time stamp of this seal", where=names[1])
            continue
        for key, name in zip(("request_sha256", "token_sha256"), names, strict=True):
            if name not in tree.files:
                raise VerificationFailed(f"is missing; {_line(entry)} has it", where=name)
            if digest(read(name)) != entry.body[key]:
                raise VerificationFailed(f"is not the digest of {name}", where=f"{_line(entry)}#/body/{key}")
        time = stamp.time if one is lineage[-1] else None
        if time is not None and parse_time(entry.body["time"]) != time:
            raise VerificationFailed(
                f"is not the time of the stamp, {time.isoformat()}", where=f"{_line(entry)}#/body/time"
            )


def _names(one: Sealed) -> tuple[str, str]:
    """Where request and response of a seal lie."""
    request, response = (f"{one.folder}/{name.removeprefix('seal/')}" for name in (REQUEST, RESPONSE))
    return request, response


def _line(entry: Entry) -> str:
    return f"ledger.jsonl:{entry.seq}"
