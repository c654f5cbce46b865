"""What must hold before the first draw, as numbered gates; messages and tests cite the numbers.

1. No other collection of this study runs, and its ledger is a sound chain.
2. The study is sealed or collecting.
3. Everything sealed verifies, and every stored shard.
4. The signer is a collector or an author, and nobody else's entries wait for their signature.
5. There is an attempt left.
6. Each build's environment is the sealed one; so is its image, and a container of it is closed.
7. The reserved seeds are nobody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from prereg.collect.container_engine import find_engine, sweep
from prereg.collect.containers import Containers, limit_without_effect
from prereg.collect.environments import Fingerprint, detail_of, differences, fingerprint_at
from prereg.collect.image import built_image, fingerprint_in, image_command, refuse_other_image
from prereg.collect.network import CONTAINED, Isolation, isolation
from prereg.collect.progress import Progress
from prereg.collect.runtime import Build, environment_of, load_build, sealed_build
from prereg.collect.seeds import refuse_spent_seeds
from prereg.collect.staging import BYTE_CODE, Stage
from prereg.collect.worker import SETUP_SECONDS
from prereg.errors import PreregError, UsageError, WrongState
from prereg.model.plan import Shard
from prereg.seal.finish import is_committed, refuse_uncommitted_of_others
from prereg.seal.head import REMEDY, ROLES
from prereg.seal.keys import SigningKey
from prereg.seal.signers import refuse_unsigned
from prereg.seal.stamped import refuse_owed
from prereg.seal.trust import LEDGER, check_own_signer, load_trust, refuse_uncommitted
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import NEXT, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A study that may be collected, and what it is to be collected with."""

    verified: VerifiedStudy
    builds: Mapping[str, Build]
    environments: Mapping[str, Path]
    """Folder of each build's environment; none where workers run in containers."""
    containers: Containers | None
    fingerprints: dict[str, str]
    isolation: Isolation
    missing: tuple[Shard, ...]
    """The planned shards of valid units that are not yet stored, in protocol order."""


def refuse_draft(paths: StudyPaths) -> None:
    """Gate 2 for a study without a ledger."""
    if not paths.ledger.exists():
        raise WrongState(
            "gate 2: the study is a draft; only sealed studies are collected",
            where=str(paths.root),
            next_step=f"prereg seal {paths.root}",
        )


def state_of(paths: StudyPaths, ledger: LedgerWriter) -> str:
    """Gate 2: `sealed`, `collecting`, or `unfinished` for a complete collection whose end was never signed.

    Raises WrongState for every later state.
    """
    if ledger.state in ("sealed", "collecting"):
        return ledger.state
    if ledger.state == "collected" and not is_committed(paths):
        return "unfinished"
    rest = "every sealed draw is there and nothing is left to collect"
    if not any(e.type == "collection-ended" and e.body["complete"] for e in ledger.entries):
        rest = "what was not drawn until then is never drawn"
    raise WrongState(
        f"gate 2: the study is {ledger.state}: {rest}",
        where=str(paths.root),
        next_step=f"{NEXT[ledger.state]} {paths.root}",
    )


def verify(paths: StudyPaths) -> VerifiedStudy:
    """Gate 3; the seal is complete, and its time stamp is entered where the protocol asks for one."""
    try:
        verified = verify_study(paths, need=("sealed", "collecting", "collected"), allow_partials=True)
        refuse_unsigned(verified.signatures, str(paths.root))
        refuse_owed(verified.stamp, str(paths.root))
    except PreregError as error:
        raise _numbered(error, 3) from None
    return verified


def refuse_signer(paths: StudyPaths, key: SigningKey, principal: str, now: datetime) -> None:
    """Gate 4, at the time that the run's first entry would have."""
    try:
        check_own_signer(
            load_trust(paths),
            principal=principal,
            public_key=key.public_key,
            roles=ROLES["collection-started"],
            namespace=LEDGER,
            at=now,
            where=str(paths.allowed_signers),
        )
        refuse_uncommitted(paths)
    except PreregError as error:
        raise _numbered(error, 4) from None


def refuse_unsigned_of_others(verified: VerifiedStudy, principal: str) -> None:
    """Gate 4, second part: what a killed run left is signed by the one who ran it, before anybody goes on.

    Without that no commit would hold a signed head at the hand-over, and the study could never verify again.
    """
    waiting = [e for e in verified.entries[verified.signed :] if e.actor != principal]
    if waiting:
        first, verb = waiting[0], REMEDY.get(waiting[-1].type, "prereg collect")
        raise WrongState(
            f"gate 4: entry {first.seq} is {first.actor}'s and not signed yet: a run of theirs was killed",
            where=f"ledger.jsonl:{first.seq}",
            next_step=f"{first.actor} runs {verb} {verified.paths.root} once more",
        )
    refuse_uncommitted_of_others(verified.paths, verified.entries, principal)


def refuse_second_attempt(verified: VerifiedStudy) -> None:
    """Gate 5: every stored shard and lost unit belongs to the one attempt that the protocol allows."""
    allowed = verified.study.protocol.attempts
    for entry in verified.entries:
        attempt = entry.body.get("attempt", 1)
        if not isinstance(attempt, int) or attempt > allowed:
            raise WrongState(
                f"gate 5: attempt {attempt} was made; the protocol allows {allowed}",
                where=f"ledger.jsonl:{entry.seq}#/body/attempt",
            )


def admit(verified: VerifiedStudy, stage: Stage, progress: Progress) -> Admission:
    """Gates 6 and 7, for a study that passed the others and is staged.

    Raises WrongState for an environment or an image that is not there or not the sealed one, and for a
    container that is not closed; VerificationFailed for seeds that another study has reserved or used;
    EngineFailed if no worker starts.
    """
    names = sorted(verified.manifest.environments)
    builds = {name: sealed_build(name, verified.files) for name in names}
    containers = None
    if verified.study.protocol.runtime == "container":
        containers = _containers(verified, stage, progress)
    environments: dict[str, Path] = {}
    fingerprints: dict[str, str] = {}
    for name, build in builds.items():
        progress.note(f"taking the fingerprint of {name}")
        if containers is not None:
            fingerprints[name] = _image(verified, build, containers)
        else:
            fingerprints[name], environments[name] = _environment(verified, build, stage)
    try:
        compared = refuse_spent_seeds(verified.paths, verified.study.seeds)
    except PreregError as error:
        raise _numbered(error, 7) from None
    progress.note(f"seeds compared with {compared} intervals of other studies: no overlap")
    return Admission(
        verified=verified,
        builds=builds,
        environments=environments,
        containers=containers,
        fingerprints=fingerprints,
        isolation=isolation() if containers is None else CONTAINED,
        missing=tuple(verified.missing()),
    )


def _environment(verified: VerifiedStudy, build: Build, stage: Stage) -> tuple[str, Path]:
    """Gate 6 for one build: its fingerprint and its folder."""
    try:
        folder = environment_of(build)
    except WrongState as error:
        raise WrongState(f"gate 6: {error.what}", where=error.where, next_step=_remedy(build)) from None
    found = fingerprint_at(folder, stage.code, stage.scratch / BYTE_CODE)
    where, remedy = str(folder), _remedy(build, remove=folder)
    _refuse_other_environment(verified, build, found, detail_of(build), where, remedy)
    return found.digest, folder


def _refuse_other_environment(
    verified: VerifiedStudy,
    build: Build,
    found: Fingerprint,
    then: Mapping[str, Any],
    where: str,
    remedy: str,
) -> None:
    """Gate 6: the fingerprint is the sealed one; `then` is what it was taken over when the build was made."""
    expected = verified.manifest.environments[build.name]
    if found.digest == expected:
        return
    what = "; ".join(differences(then, found.detail)[:10])
    raise WrongState(
        f"gate 6: the environment of {build.name} is not the sealed one: its fingerprint is "
        f"{found.digest}, the seal says {expected} "
        f"({what or 'it is as it was built, which never was the sealed one'})",
        where=where,
        next_step=remedy,
    )


def _containers(verified: VerifiedStudy, stage: Stage, progress: Progress) -> Containers:
    """Gate 6: the container engine answers, and has each sealed image."""
    try:
        engine = find_engine()
        for name in sweep(engine):
            progress.note(f"{name}: a container that a killed run left; removed")
        images = verified.manifest.images or {}
        for name, image in images.items():
            refuse_other_image(engine, name, image)
    except PreregError as error:
        raise _numbered(error, 6) from None
    limit = verified.study.protocol.ceilings.memory_mib
    if (note := limit_without_effect(limit)) is not None:
        progress.note(note)
    return Containers(
        engine=engine,
        images=images,
        study=stage.study,
        memory_mib=limit,
        seconds=int(verified.study.protocol.ceilings.study_seconds + 2 * SETUP_SECONDS),
    )


def _image(verified: VerifiedStudy, build: Build, containers: Containers) -> str:
    """Gate 6 for one build: the fingerprint of its environment, in a container like those that will draw."""
    try:
        found = fingerprint_in(containers, build.name)
    except PreregError as error:
        raise _numbered(error, 6) from None
    made = built_image(build)
    then = {} if made is None else made.detail
    image = containers.images[build.name].id
    _refuse_other_environment(verified, build, found, then, image, image_command(build.name))
    return found.digest


def _remedy(build: Build, *, remove: Path | None = None) -> str:
    command = f"prereg build {build.name}"
    try:
        same = load_build(build.name).lock_digest == build.lock_digest
    except UsageError:
        same = False
    if not same:
        command += " in a checkout whose lock of this build is the sealed one"
    return command if remove is None else f"rm -r {remove} && {command}"


def _numbered(error: PreregError, number: int) -> PreregError:
    return type(error)(f"gate {number}: {error.what}", where=error.where, next_step=error.next_step)
