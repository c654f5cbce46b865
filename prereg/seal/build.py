"""Sealing: what the manifest binds, who signs it, and the commit that fixes its place in time (section 3)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

from prereg.codec.canonical import digest
from prereg.codec.study_files import parse_study
from prereg.errors import UsageError, VerificationFailed, WrongState
from prereg.model.image import Image
from prereg.model.seal import Manifest, Signer
from prereg.model.study import Study
from prereg.seal import trust as trust_rules
from prereg.seal.head import head_bytes, sign_head
from prereg.seal.images import check_images
from prereg.seal.keys import SigningKey
from prereg.seal.manifest import Mode, manifest_bytes, sealed_files, sums_bytes
from prereg.seal.own_files import own_file_problems
from prereg.seal.trailers import seal_tag, trailers
from prereg.store.files import read_with_mode, write_whole
from prereg.store.folder import Tree, is_unsealed, walk
from prereg.store.harness import harness_digest, sealed_code, sealed_harness
from prereg.store.layout import StudyPaths
from prereg.store.ledger import START, head_of, line_of, parse_time, read_ledger, timestamp
from prereg.store.lock import study_lock
from prereg.store.repo import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class SealResult:
    """A seal that is committed."""

    seal: str
    """The seal digest."""
    manifest: Manifest
    head: str
    """The ledger's head."""
    commit: str
    tag: str


def seal_study(
    paths: StudyPaths,
    *,
    key: SigningKey,
    principal: str,
    environments: Mapping[str, str],
    images: Mapping[str, Image] | None = None,
    now: datetime | None = None,
) -> SealResult:
    """Seal a study that `check` has passed; afterwards every byte of it is bound, signed and committed.

    `environments` has the fingerprint of every build that the protocol names, and `images` the image of each
    if its workers run in containers. Until the commit is made
    nothing is left behind. Raises WrongState (a seal or evidence exists, dirty files, shallow clone, events
    of other code),
    UsageError (links, submodules, ignored files, faults in the study), Untrusted (the signer is no author).
    """
    with study_lock(paths):
        repo = Repo.find(paths.root)
        tree = walk(paths)
        _refuse_folder(paths, repo, tree)
        authored = _read(paths, tree)
        study = _refuse_content(paths, authored, environments)
        created = timestamp(now)
        _refuse_signer(paths, key, principal, created)
        tag = seal_tag(study.protocol.study, 0)
        if repo.tag(tag) is not None:
            raise WrongState(f"the tag {tag} exists", where=str(repo.top), next_step=f"git show {tag}")

        builds = {c.build for c in study.protocol.configurations}
        code: dict[str, tuple[bytes, Mode]] = {
            f"code/{name}": (data, "100644") for name, data in sealed_code(builds).items()
        }
        _refuse_stale_events(study, {name: data for name, (data, _) in code.items()})
        manifest = Manifest(
            study=study.protocol.study,
            created=created,
            commit=repo.head(),
            author=Signer(principal=principal, key=key.fingerprint),
            rules=1,
            environments=dict(environments),
            images=None if images is None else dict(images),
            files=sealed_files({**authored, **code}),
        )
        check_images(manifest, study.protocol)
        sealed = manifest_bytes(manifest)
        seal = digest(sealed)
        signature = key.sign(sealed, namespace=trust_rules.SEAL)
        body = {"seal": seal, "signature_sha256": digest(signature), "commit": manifest.commit}
        ledger = line_of(1, created, "sealed", principal, body, START)
        head = head_bytes(manifest.study, read_ledger(ledger), head_of(ledger))
        made = {
            **{paths.root / name: data for name, (data, _) in code.items()},
            paths.sums: sums_bytes(manifest, sealed),
            paths.manifest: sealed,
            paths.manifest_signature: signature,
            paths.ledger: ledger,
            paths.head: head,
            paths.head_signature: sign_head(head, key),
        }
        commit = _write_and_commit(paths, repo, manifest, made, principal, seal, head_of(ledger))
        _check_committed(paths, repo, manifest, commit)
        message = f"Sealed {manifest.study}\n\nPrereg-Seal: {seal}\nPrereg-Ledger-Head: {head_of(ledger)}\n"
        repo.annotate(tag, commit, message, principal=principal)
    return SealResult(seal=seal, manifest=manifest, head=head_of(ledger), commit=commit, tag=tag)


def _refuse_folder(paths: StudyPaths, repo: Repo, tree: Tree) -> None:
    """Everything about the folder and its repository that stands against a seal."""
    repo.refuse_partial_history()
    where = str(paths.root)
    for name in ("seal/manifest.json", "ledger.jsonl"):
        if name in tree.files:
            if repo.is_tracked(paths.root / name):
                raise WrongState("the study is sealed", where=where, next_step=f"prereg status {where}")
            raise WrongState(
                "holds a seal that was never committed: sealing was interrupted",
                where=str(paths.root / name),
                next_step=f"cd {where} && rm -r seal code ledger.*, then prereg seal",
            )
    for name, what in tree.odd.items():
        raise UsageError(f"is {what}; only regular files are sealed", where=name, next_step=f"rm {name}")
    for name in tree.files:
        if name.startswith("code/"):
            raise WrongState(
                "code/ is written by sealing and must not exist before",
                where=name,
                next_step=f"rm -r {paths.code}",
            )
        if is_unsealed(name):
            raise WrongState(
                "a study without a seal has no evidence", where=name, next_step=f"rm {paths.root / name}"
            )
    for name in repo.has_submodules_in([paths.root]):
        raise UsageError("is a submodule; its content would not be sealed", where=name)
    for name in tree.folders:
        if name.rpartition("/")[2] == ".git":
            raise UsageError("is a repository of its own; its content would not be sealed", where=name)
    for name in repo.dirty_paths(paths.root):
        raise WrongState("differs from what is committed", where=name, next_step=f"git commit -- {where}")
    for name in repo.ignored(paths.root / f for f in tree.sealable()):
        raise UsageError("git ignores this file", where=name, next_step=f"rm {repo.top / name}")


def _read(paths: StudyPaths, tree: Tree) -> dict[str, tuple[bytes, Mode]]:
    found: dict[str, tuple[bytes, Mode]] = {}
    for name in tree.sealable():
        data, mode = read_with_mode(paths.root / name)
        found[name] = (data, cast(Mode, mode))
    return found


def _refuse_content(
    paths: StudyPaths, authored: Mapping[str, tuple[bytes, Mode]], environments: Mapping[str, str]
) -> Study:
    files = {name: data for name, (data, _) in authored.items()}
    study = parse_study(files)
    for problem in own_file_problems(study.protocol, files):
        raise problem
    if study.protocol.study != paths.name:
        raise UsageError(
            f"is {study.protocol.study!r}, but the folder is {paths.name!r}", where="protocol.json#/study"
        )
    builds = {c.build for c in study.protocol.configurations}
    if set(environments) != builds:
        raise WrongState(
            f"environments are known for {sorted(environments)}, the protocol needs {sorted(builds)}",
            where="protocol.json#/configurations",
            next_step="prereg build",
        )
    return study


def _refuse_stale_events(study: Study, code: Mapping[str, bytes]) -> None:
    named = study.events.harness_sha256
    if named is not None and named != harness_digest(sealed_harness(code)):
        raise WrongState(
            "the reference laws were made by other harness code than the one to be sealed",
            where="events.json#/harness_sha256",
            next_step="prereg events DIR",
        )


def _refuse_signer(paths: StudyPaths, key: SigningKey, principal: str, created: str) -> None:
    trust_rules.check_signer(
        trust_rules.load_trust(paths),
        principal=principal,
        public_key=key.public_key,
        roles=trust_rules.AUTHOR,
        namespace=trust_rules.SEAL,
        at=parse_time(created),
        where=str(paths.allowed_signers),
    )


def _write_and_commit(
    paths: StudyPaths,
    repo: Repo,
    manifest: Manifest,
    made: Mapping[Path, bytes],
    principal: str,
    seal: str,
    head: str,
) -> str:
    """Write the seal's files and commit them with the study; undo the writing if that fails."""
    sealed = [paths.root / f.path for f in manifest.files]
    try:
        for path, data in made.items():
            write_whole(path, data)
            path.chmod(0o644)
        _remove_empty_folders(paths)
        return repo.commit(
            # With the trust files, so that whoever clones this can check the signature.
            sorted({*sealed, *made, *trust_rules.trust_files(paths)}),
            f"Seal study {manifest.study}",
            trailers(manifest.study, seal, head),
            principal=principal,
        )
    except BaseException:
        at_head = repo.head()
        if at_head is None or repo.blob_at(at_head, paths.manifest) != made[paths.manifest]:
            shutil.rmtree(paths.code, ignore_errors=True)
            shutil.rmtree(paths.seal, ignore_errors=True)
            for path in (paths.ledger, paths.head, paths.head_signature):
                path.unlink(missing_ok=True)
        raise


def _remove_empty_folders(paths: StudyPaths) -> None:
    """git keeps no empty folder, and a sealed folder holds nothing that is not listed."""
    tree = walk(paths)
    for name in sorted(tree.folders, reverse=True):
        if not any(file.startswith(f"{name}/") for file in tree.files):
            (paths.root / name).rmdir()


def _check_committed(paths: StudyPaths, repo: Repo, manifest: Manifest, commit: str) -> None:
    """The commit must hold the bytes that were hashed, not what a file has become since."""
    prefix = repo.relative(paths.root) + "/"
    blobs = repo.blobs_at(commit, paths.root)
    for file in manifest.files:
        data, _ = read_with_mode(paths.root / file.path)
        expected = (file.mode, repo.blob_id(data, like=commit)) if digest(data) == file.sha256 else None
        if blobs.get(prefix + file.path) != expected:
            raise VerificationFailed(
                "changed while it was being sealed", where=file.path, next_step="git reset --soft HEAD~1"
            )
