"""Verification in numbered steps (docs/formats.md section 13, steps 1 to 9).

The steps stand here once, in order; messages and tests cite their numbers. Every file is opened once, and
what is hashed is what is parsed and handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from shlex import quote

from prereg.codec.canonical import digest
from prereg.codec.study_files import parse_study
from prereg.errors import PreregError, UsageError, VerificationFailed, WrongState
from prereg.model.attempts import tried
from prereg.model.places import state
from prereg.model.plural import plural
from prereg.model.seal import Entry, State, Step
from prereg.model.study import Protocol
from prereg.seal.bodies import check_bodies
from prereg.seal.duplicates import check_duplicates
from prereg.seal.evidence import (
    authenticated_shard,
    authenticated_tree,
    check_moved_metas,
    told_before,
)
from prereg.seal.images import check_containers, check_images
from prereg.seal.in_head import check_head_holds
from prereg.seal.lineage import read_lineage
from prereg.seal.manifest import SUMS, WHERE, read_manifest, sums_bytes
from prereg.seal.order import check_handovers, check_order
from prereg.seal.own_files import own_file_problems
from prereg.seal.results import check_audit, check_decisions
from prereg.seal.shard_set import check_record_folders, check_shard_set
from prereg.seal.signed import check_signatures, signed_head
from prereg.seal.signers import check_cosigned_entries
from prereg.seal.stamped import check_stamp_entries
from prereg.seal.trailers import check_tags, check_trailers
from prereg.seal.trust import Compromised, uncommitted
from prereg.seal.verified import Run, VerifiedStudy, over_units, stored_shards
from prereg.store.files import noting, read_in
from prereg.store.folder import is_known, is_known_folder, is_unsealed, partial_of, walk
from prereg.store.layout import StudyPaths, not_sealed
from prereg.store.ledger import line_digests, read_ledger

NEXT: dict[State, str] = {
    "draft": "prereg seal",
    "sealed": "prereg collect",
    "collecting": "prereg collect",
    "collected": "prereg analyse",
    "analysed": "prereg audit",
    "audited": "prereg report",
    "closed": "prereg report",
}
"""The verb that follows each state."""


def verify_study(
    paths: StudyPaths,
    *,
    need: State | Collection[State] | None = None,
    records: bool = True,
    allow_partials: bool = False,
) -> VerifiedStudy:
    """The gate of every verb: run the steps and raise at the first that fails.

    `need` is the state, or the states, in which the verb may run. Without `records` step 7 checks the set of
    shards and leaves their bytes to `authenticated_records`. `allow_partials` lets through what a killed verb
    leaves and the same verb repairs: temporary files, shards without a ledger entry, a head behind the
    ledger, and decisions or an audit report without theirs.

    Raises WrongState for a draft or a state that is not needed, VerificationFailed or EvidenceIncomplete for
    the first fault, with the number of its step in the message.
    """
    run = Run(paths=paths, read_records=records, lenient=allow_partials, gate=True)
    _refuse_draft(run)
    with noting() as run.found["noted"]:
        for number, name, step in STEPS:
            try:
                step(run)
            except PreregError as error:
                raise _numbered(error, number, name) from None
            if number == 6 and need is not None:
                _refuse_state(run, need)
    return run.result()


def verify_report(paths: StudyPaths) -> list[Step]:
    """Run every step, whatever the others said. Raises WrongState for a draft only."""
    run = Run(paths=paths, read_records=True, lenient=False)
    _refuse_draft(run)
    with noting() as run.found["noted"]:
        return _report(run)


def _report(run: Run) -> list[Step]:
    found: list[Step] = []
    for number, name, step in STEPS:
        try:
            applied, detail = step(run)
        except PreregError as error:
            place = "" if error.where is None else f"{error.where}: "
            found.append(
                Step(
                    number=number,
                    name=name,
                    status="failed",
                    applied=0,
                    detail=f"{place}{error.what}",
                    next_step=error.next_step,
                )
            )
        else:
            found.append(
                Step(
                    number=number,
                    name=name,
                    status="ok" if applied else "not-checked",
                    applied=applied,
                    detail=detail,
                )
            )
    return found


# Each step returns how many things it looked at (0: the state does not call for it yet) and a word on them.


def step_1_folder(run: Run) -> tuple[int, str]:
    """Only regular files, and outside the sealed set only at known places."""
    tree = walk(run.paths)
    for name, what in tree.odd.items():
        step = f"rm {quote(name)}"
        raise VerificationFailed(f"is {what}; only regular files count", where=name, next_step=step)
    for name in tree.files:
        if (target := partial_of(name)) is not None:
            if run.lenient:
                continue
            raise VerificationFailed(
                f"is the unfinished write of {target}, left by a killed run",
                where=name,
                next_step=f"prereg collect {run.paths.root}" if "records/" in name else f"rm {quote(name)}",
            )
        if is_unsealed(name) and not is_known(name):
            raise VerificationFailed("is at no known place and in no manifest", where=name)
    for name in tree.folders:
        if is_unsealed(name) and not is_known_folder(name):
            raise VerificationFailed("is no known folder", where=name)
    run.found["tree"] = tree
    return len(tree.files), f"{len(tree.files)} {plural(len(tree.files), 'file')}"


def step_2_manifest(run: Run) -> tuple[int, str]:
    """The manifest and those that it amends are canonical, of their schema, and name safe paths only."""
    data = run.read(WHERE)
    run.found["manifest"] = read_manifest(data)
    run.found["manifest_bytes"] = data
    chain = read_lineage(run.paths, run.tree, data)
    run.found["lineage"] = chain
    amended = f", amendment number {len(chain) - 1}" if len(chain) > 1 else ""
    return len(chain), f"seal {run.seal}{amended}"


def step_3_files(run: Run) -> tuple[int, str]:
    """Every listed file has its size, mode and digest; there is no other; SHA256SUMS says the same."""
    manifest, tree = run.manifest, run.tree
    listed = {f.path for f in manifest.files}
    for name in tree.sealable():
        if name not in listed and partial_of(name) is None:
            raise VerificationFailed(f"is not listed in {WHERE}", where=name, next_step=f"rm {quote(name)}")
    for name in sorted(tree.folders, reverse=True):  # what lies in another folder goes first
        if not is_unsealed(name) and not any(path.startswith(f"{name}/") for path in listed):
            what = f"is a folder without a file in {WHERE}"
            raise VerificationFailed(what, where=name, next_step=f"rmdir {quote(name)}")
    files: dict[str, bytes] = {}
    for file in manifest.files:
        data, mode = read_in(run.paths.root, file.path)
        if digest(data) != file.sha256:
            raise _altered(file.path, data, file.sha256)
        if len(data) != file.size:
            raise VerificationFailed(f"has {len(data)} bytes; {WHERE} says {file.size}", where=file.path)
        if mode != file.mode:
            raise VerificationFailed(
                f"has mode {mode}; {WHERE} says {file.mode}",
                where=file.path,
                next_step=f"chmod {file.mode[-3:]} {quote(file.path)}",
            )
        files[file.path] = data
    if run.read(SUMS) != sums_bytes(manifest, run.manifest_bytes):
        raise VerificationFailed(f"disagrees with {WHERE}", where=SUMS)
    run.found["files"] = files
    return len(files), f"{len(files)} {plural(len(files), 'file')}"


def step_4_signature(run: Run) -> tuple[int, str]:
    """Each manifest is signed by its author and by whom the protocol asks for, and time-stamped if asked."""
    detail = check_signatures(run)
    others = sum(name.startswith("seal/cosign/") for name in run.tree.files)
    return len(run.lineage) + others + (run.stamp.time is not None), detail


def step_5_study_files(run: Run) -> tuple[int, str]:
    """The study files parse, hold together, and give every unit one seed block."""
    try:
        study = parse_study(run.files)
        for problem in own_file_problems(study.protocol, run.files):
            raise problem
    except UsageError as error:
        raise VerificationFailed(error.what, where=error.where, next_step=error.next_step) from None
    if study.protocol.study != run.manifest.study:
        raise VerificationFailed(f"is not the study of {WHERE}", where="protocol.json#/study")
    builds = {c.build for c in study.protocol.configurations}
    if set(run.manifest.environments) != builds:
        raise VerificationFailed("are not those of the protocol's builds", where=f"{WHERE}#/environments")
    check_images(run.manifest, study.protocol)
    run.found["study"] = study
    return 5, f"{len(list(study.protocol.units()))} units"


def step_6_ledger(run: Run) -> tuple[int, str]:
    """The ledger is one chain of allowed entries, its signed head is its end, and stamps of heads hold."""
    data = run.read("ledger.jsonl")
    entries = read_ledger(data)
    run.found |= {"ledger": data, "entries": entries}
    fault: PreregError | None = None
    try:
        check_bodies(
            entries,
            lineage=run.lineage,
            signatures=run.signatures,
            study=run.study,
            planned=run.planned(),
            trust=run.trust,
        )
        run.found["told"] = entries
    except PreregError as error:
        fault = error  # what is wrong with the head is said first; step 7 asks for the bodies alone
    stamped = run.head_stamps.check()
    try:
        run.found["signed"] = signed_head(run, data)
    except Compromised as fault:
        raise run.head_stamps.reach(fault, len(entries)) from None
    if fault is not None:
        raise fault
    seals = (run.read, run.tree, run.lineage, entries)
    check_cosigned_entries(*seals)
    check_stamp_entries(*seals, run.stamp)
    return len(
        entries
    ), f"{len(entries)} {plural(len(entries), 'entry', 'entries')}, {state(entries)}{stamped}"


def step_7_records(run: Run) -> tuple[int, str]:
    """The shards are the ledger's and the plan's; every byte, meta and record field agrees."""
    entries, planned, protocol = run.told, run.planned(), run.study.protocol
    stored, invalid = stored_shards(entries), over_units(entries, protocol.attempts)
    check_record_folders(run.tree.folders, protocol)
    checked = check_shard_set(
        entries,
        protocol,
        planned,
        run.tree.files,
        complete=any(e.type == "collection-ended" and e.body["complete"] for e in entries),
        orphans=run.lenient,
    )
    check_moved_metas(run.paths, entries)
    check_containers(entries, run.manifest, protocol)
    copies = check_duplicates(run)
    draws = leaves = 0
    if run.read_records:
        before = told_before(entries)
        for place, body in stored.items():
            shard = planned[place[0], place[2]]
            rest = (run.paths, run.study, run.manifest, run.seal, shard, body, before[place])
            if shard.channel == "exact":
                leaves += len(authenticated_tree(*rest).leaves)
            else:
                draws += len(authenticated_shard(*rest)[1])
    counts = [(checked, "shard", "shards"), (draws, "draw", "draws")]
    counts += [(leaves, "leaf", "leaves")] if leaves else []
    counts += [(copies, "duplicate", "duplicates")] if copies else []
    found = ", ".join(f"{n} {plural(n, one, more)}" for n, one, more in counts)
    found += " (of every attempt)" if any(attempt > 1 for _, attempt, _ in stored) else ""
    return checked + len(invalid) + copies, f"{found}, {_lost(entries, protocol)}"


def _lost(entries: Sequence[Entry], protocol: Protocol) -> str:
    """How many units are INVALID, and how many a ceiling left open."""
    over = [one for one in tried(entries, protocol.attempts).values() if one.over]
    left = sum(one.is_left_open(protocol.ceilings.on_ceiling) for one in over)
    lost = len(over) - left
    found = [f"{lost} {plural(lost, 'unit')} INVALID"] if lost or not left else []
    return ", ".join(found + ([f"{left} {plural(left, 'unit')} left open by a ceiling"] if left else []))


def step_8_decisions(run: Run) -> tuple[int, str]:
    """The decisions, and the audit report if there is one, are those of the ledger."""
    if run.lenient:
        return 0, "left to the verb that writes them"
    looked = check_decisions(run) + check_audit(run)
    return looked, f"{looked} {plural(looked, 'file')}" if looked else "nothing is decided yet"


def step_9_order(run: Run) -> tuple[int, str]:
    """By git: the seal came first, records after it, the ledger only grew, each hand-over is signed.

    What commits since the seal, and tags of seals, say of the study is so, and HEAD holds what was read.
    """
    looked, word = order_of_history(run)
    stamped = any(e.type == "timestamped" and e.body["seal"] == run.seal for e in run.entries)
    held = check_head_holds(
        run.paths,
        run.tree,
        run.manifest,
        files=run.files,
        ledger=run.ledger,
        blob_id=run.blob_id,
        lenient=run.lenient,
        gate=run.gate,
        # A stamp that was got and not entered yet is what a verb that was cut off leaves (section 18).
        waiting=() if stamped else ("seal/timestamp.",),
    )
    # No fault of the study: whoever may sign next is told here before it is told to others.
    news = "".join(f", and {file.name} of trust/ otherwise" for file in uncommitted(run.paths))
    return looked + held, f"{word}; HEAD holds {held} {plural(held, 'file')}{news}"


def order_of_history(run: Run) -> tuple[int, str]:
    """What step 9 asks of the history alone, also where files are edited or missing here for a reason."""
    looked, commits = check_order(run.paths, lineage=run.lineage, ledger=run.ledger)
    study, lines = run.manifest.study, line_digests(run.ledger)
    try:
        heads = check_handovers(
            run.paths,
            sealed=commits[0],
            study=study,
            entries=run.entries,
            lines=lines,
            trust=run.trust,
            attests=run.head_stamps.head,
        )
    except Compromised as fault:
        raise run.head_stamps.reach(fault, len(run.entries)) from None
    seals = {one.seal for one in run.lineage}
    told = check_trailers(run.paths, sealed=commits[0], study=study, seals=seals, lines=set(lines))
    tags = check_tags(run.paths, study=study, lineage=run.lineage, lines=set(lines))
    word = (
        f"sealed by commit {commits[-1]}; {heads} signed {plural(heads, 'head')}, "
        f"{told} {plural(told, 'commit names', 'commits name')} the study, {tags} {plural(tags, 'tag')}"
    )
    return looked + heads + told + tags, word


STEPS: tuple[tuple[int, str, Callable[[Run], tuple[int, str]]], ...] = (
    (1, "folder", step_1_folder),
    (2, "manifest", step_2_manifest),
    (3, "files", step_3_files),
    (4, "signature", step_4_signature),
    (5, "study files", step_5_study_files),
    (6, "ledger", step_6_ledger),
    (7, "records", step_7_records),
    (8, "decisions", step_8_decisions),
    (9, "order", step_9_order),
)


def _altered(name: str, data: bytes, expected: str) -> VerificationFailed:
    if digest(data.replace(b"\r\n", b"\n")) == expected:
        return VerificationFailed(
            "is CRLF-mangled: its lines end in CR LF, as a checkout with core.autocrlf makes them",
            where=name,
            next_step=f"git config core.autocrlf false && rm {quote(name)} && git checkout -- {quote(name)}",
        )
    return VerificationFailed(
        f"its SHA-256 is not the one in {WHERE}: one of the two was altered",
        where=name,
        next_step="prereg diff DIR",
    )


def _refuse_draft(run: Run) -> None:
    if not run.paths.is_begun:
        raise not_sealed(run.paths)


def _refuse_state(run: Run, need: State | Collection[State]) -> None:
    wanted = (need,) if isinstance(need, str) else tuple(need)
    now = state(run.entries)
    if now not in wanted:
        raise WrongState(
            f"the study is {now}; this needs {' or '.join(wanted)}",
            where=str(run.paths.root),
            next_step=f"{NEXT[now]} {run.paths.root}",
        )


def _numbered(error: PreregError, number: int, name: str) -> PreregError:
    return type(error)(f"{error.what} (step {number}, {name})", where=error.where, next_step=error.next_step)
