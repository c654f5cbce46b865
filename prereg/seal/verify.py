"""Verification in numbered steps (docs/formats.md section 13, steps 1 to 9).

The steps stand here once, in order; messages and tests cite their numbers. Every file is opened once, and
what is hashed is what is parsed and handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from prereg.codec.canonical import digest
from prereg.codec.convert import read_authored
from prereg.codec.study_files import parse_study
from prereg.errors import PreregError, UsageError, VerificationFailed, WrongState
from prereg.model.places import state
from prereg.model.seal import Entry, State, Step
from prereg.model.study import Protocol
from prereg.seal.bodies import check_bodies
from prereg.seal.evidence import (
    authenticated_shard,
    authenticated_tree,
    check_moved_metas,
    check_shard_set,
    networks_before,
)
from prereg.seal.head import check_head
from prereg.seal.images import check_containers, check_images
from prereg.seal.lineage import check_seal_signature, read_lineage
from prereg.seal.manifest import SUMS, WHERE, read_manifest, sums_bytes
from prereg.seal.order import check_handovers, check_order
from prereg.seal.own_files import own_file_problems
from prereg.seal.results import check_audit, check_decisions
from prereg.seal.signers import check_cosigned_entries, check_cosigners
from prereg.seal.stamped import Stamp, check_stamp, check_stamp_entries, earlier_stamps
from prereg.seal.trailers import check_tags, check_trailers
from prereg.seal.trust import load_trust
from prereg.seal.verified import Run, VerifiedStudy, invalid_units, stored_shards
from prereg.store.files import read_in
from prereg.store.folder import is_known, is_known_folder, is_unsealed, partial_of, walk
from prereg.store.layout import StudyPaths, not_sealed
from prereg.store.ledger import line_digests, read_ledger
from prereg.store.repo import Repo

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
    run = Run(paths=paths, read_records=records, lenient=allow_partials)
    _refuse_draft(run)
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
    found: list[Step] = []
    for number, name, step in STEPS:
        try:
            applied, detail = step(run)
        except PreregError as error:
            place = "" if error.where is None else f"{error.where}: "
            remedy = "" if error.next_step is None else f" (next: {error.next_step})"
            found.append(
                Step(
                    number=number,
                    name=name,
                    status="failed",
                    applied=0,
                    detail=f"{place}{error.what}{remedy}",
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
        raise VerificationFailed(f"is {what}; only regular files count", where=name, next_step=f"rm {name}")
    for name in tree.files:
        if (target := partial_of(name)) is not None:
            if run.lenient:
                continue
            raise VerificationFailed(
                f"is the unfinished write of {target}, left by a killed run",
                where=name,
                next_step=f"prereg collect {run.paths.root}" if "records/" in name else f"rm {name}",
            )
        if is_unsealed(name) and not is_known(name):
            raise VerificationFailed("is at no known place and in no manifest", where=name)
    for name in tree.folders:
        if is_unsealed(name) and not is_known_folder(name):
            raise VerificationFailed("is no known folder", where=name)
    run.found["tree"] = tree
    return len(tree.files), f"{len(tree.files)} files"


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
            raise VerificationFailed(f"is not listed in {WHERE}", where=name, next_step=f"rm {name}")
    for name in tree.folders:
        if not is_unsealed(name) and not any(path.startswith(f"{name}/") for path in listed):
            raise VerificationFailed(f"is a folder without a file in {WHERE}", where=name)
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
                next_step=f"chmod {file.mode[-3:]} {file.path}",
            )
        files[file.path] = data
    if run.read(SUMS) != sums_bytes(manifest, run.manifest_bytes):
        raise VerificationFailed(f"disagrees with {WHERE}", where=SUMS)
    run.found["files"] = files
    return len(files), f"{len(files)} files"


def step_4_signature(run: Run) -> tuple[int, str]:
    """Each manifest is signed by its author and by whom the protocol asks for, and time-stamped if asked."""
    where = f"{WHERE}.sig"
    armored = run.read(where)
    run.found["trust"] = load_trust(run.paths)
    stamp, signed, stamped = Stamp(state="none"), None, {}
    asked = _asked(run)
    if asked is not None:
        # What a protocol asks for is known once step 3 has found its bytes to be the sealed ones.
        entries = _entries_or_none(run)
        common = (run.read, run.tree, run.lineage)
        stamped = earlier_stamps(*common, asked.timestamp, files=run.files)
        stamp = check_stamp(*common, asked.timestamp, entries, files=run.files, signature=armored)
    check_seal_signature(run.lineage[-1], armored, run.trust, stamped=stamp.time)
    if asked is not None:
        signed = check_cosigners(
            *common, asked.signers, entries, run.trust, folder=str(run.paths.root), lenient=run.lenient
        )
    signatures = {run.seal: armored}
    for one in run.lineage[:-1]:
        signatures[one.seal] = run.read(f"{one.where}.sig")
        check_seal_signature(one, signatures[one.seal], run.trust, stamped=stamped.get(one.seal))
    run.found |= {"stamp": stamp, "cosigned": signed, "signatures": signatures}
    author = run.manifest.author
    detail = f"{author.principal} {author.key}"
    if signed is not None:
        detail += f"; {signed}"
    if stamp.state != "none":
        detail += f"; time stamp {stamp}"
    others = sum(name.startswith("seal/cosign/") for name in run.tree.files)
    return len(run.lineage) + others + (stamp.time is not None), detail


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
    """The ledger is one chain of allowed entries, and its signed head is its end."""
    data = run.read("ledger.jsonl")
    entries = read_ledger(data)
    run.found |= {"ledger": data, "entries": entries}
    run.found["signed"] = _signed_head(run, data)
    check_bodies(
        entries,
        lineage=run.lineage,
        signatures=run.signatures,
        study=run.study,
        planned=run.planned(),
        trust=run.trust,
    )
    seals = (run.read, run.tree, run.lineage, entries)
    check_cosigned_entries(*seals)
    check_stamp_entries(*seals, run.stamp)
    return len(entries), f"{len(entries)} entries, {state(entries)}"


def step_7_records(run: Run) -> tuple[int, str]:
    """The shards are the ledger's and the plan's; every byte, meta and record field agrees."""
    entries, planned = run.entries, run.planned()
    stored, invalid = stored_shards(entries), invalid_units(entries)
    checked = check_shard_set(
        stored,
        planned,
        invalid,
        run.tree.files,
        complete=any(e.type == "collection-ended" and e.body["complete"] for e in entries),
        orphans=run.lenient,
    )
    check_moved_metas(run.paths, entries)
    check_containers(entries, run.manifest)
    draws = leaves = 0
    if run.read_records:
        networks = networks_before(entries)
        for place, body in stored.items():
            shard = planned[place]
            rest = (run.paths, run.study, run.manifest, run.seal, shard, body, networks[place])
            if shard.channel == "exact":
                leaves += len(authenticated_tree(*rest).leaves)
            else:
                draws += len(authenticated_shard(*rest)[1])
    found = f"{checked} shards, {draws} draws" + (f", {leaves} leaves" if leaves else "")
    return checked + len(invalid), f"{found}, {len(invalid)} units INVALID"


def step_8_decisions(run: Run) -> tuple[int, str]:
    """The decisions, and the audit report if there is one, are those of the ledger."""
    if run.lenient:
        return 0, "left to the verb that writes them"
    looked = check_decisions(run) + check_audit(run)
    return looked, f"{looked} files" if looked else "nothing is decided yet"


def step_9_order(run: Run) -> tuple[int, str]:
    """By git: the seal came first, records after it, the ledger only grew, each hand-over is signed.

    What commits since the seal, and tags of seals, say of the study is so.
    """
    looked, commits = check_order(run.paths, lineage=run.lineage, ledger=run.ledger)
    study, lines = run.manifest.study, line_digests(run.ledger)
    heads = check_handovers(
        run.paths, sealed=commits[0], study=study, entries=run.entries, lines=lines, trust=run.trust
    )
    seals = {one.seal for one in run.lineage}
    told = check_trailers(run.paths, sealed=commits[0], study=study, seals=seals, lines=set(lines))
    tags = check_tags(run.paths, study=study, lineage=run.lineage, lines=set(lines))
    word = f"sealed by commit {commits[-1]}; {heads} signed heads, {told} commits name the study, {tags} tags"
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


def _asked(run: Run) -> Protocol | None:
    """The protocol, for what it asks of the seal; one that is not understood is for steps 3 and 5 to name."""
    try:
        return read_authored(run.files["protocol.json"], "protocol", Protocol, where="protocol.json")
    except (KeyError, PreregError):
        return None


def _entries_or_none(run: Run) -> tuple[Entry, ...] | None:
    """The ledger's entries; one that is no chain is for step 6 to name."""
    try:
        return read_ledger(run.read("ledger.jsonl"))
    except PreregError:
        return None


def _altered(name: str, data: bytes, expected: str) -> VerificationFailed:
    if digest(data.replace(b"\r\n", b"\n")) == expected:
        return VerificationFailed(
            "is CRLF-mangled: its lines end in CR LF, as a checkout with core.autocrlf makes them",
            where=name,
            next_step=f"git config core.autocrlf false && rm {name} && git checkout -- {name}",
        )
    return VerificationFailed(
        f"its SHA-256 is not the one in {WHERE}: one of the two was altered",
        where=name,
        next_step="prereg diff DIR",
    )


def _signed_head(run: Run, data: bytes) -> int:
    """Check the head and its signature; after a killed verb the committed pair may stand in for them."""

    def check(head: bytes, signature: bytes) -> int:
        return check_head(
            head,
            signature,
            study=run.manifest.study,
            entries=run.entries,
            lines=line_digests(data),
            trust=run.trust,
            behind=run.lenient,
        )

    try:
        return check(run.read("ledger.head.json"), run.read("ledger.head.json.sig"))
    except VerificationFailed:
        if not run.lenient:
            raise
        # Head and signature are two files: a kill between the two renames leaves a pair that does not match.
        repo = Repo.find(run.paths.root)
        commit = repo.head()
        pair = [repo.blob_at(commit, p) for p in (run.paths.head, run.paths.head_signature)] if commit else []
        if len(pair) != 2 or pair[0] is None or pair[1] is None:
            raise
        return check(pair[0], pair[1])


def _refuse_draft(run: Run) -> None:
    paths = run.paths
    if not paths.is_begun:
        raise not_sealed(paths)


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
