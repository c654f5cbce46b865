"""What a seal binds: the study's own files and the code it runs, in a signed manifest (section 3).

Shared by sealing and by amending; nothing here writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import cast

from prereg.codec.canonical import digest
from prereg.codec.study_files import parse_study
from prereg.errors import UsageError, VerificationFailed, WrongState
from prereg.model.image import Image
from prereg.model.seal import Manifest, Signer
from prereg.model.study import Study
from prereg.seal import trust as trust_rules
from prereg.seal.images import check_images
from prereg.seal.keys import SigningKey
from prereg.seal.manifest import Mode, manifest_bytes, sealed_files, sums_bytes
from prereg.seal.own_files import own_file_problems
from prereg.store.files import read_with_mode
from prereg.store.folder import Tree, walk
from prereg.store.harness import harness_digest, sealed_code, sealed_harness
from prereg.store.layout import StudyPaths
from prereg.store.ledger import parse_time
from prereg.store.repo import Repo

CODE = "code/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A manifest over a study's files, signed and not written yet."""

    study: Study
    manifest: Manifest
    data: bytes
    """The manifest's bytes."""
    signature: bytes
    code: dict[str, bytes]
    """The files that the seal writes below code/, by path in the study."""

    @property
    def seal(self) -> str:
        """The seal digest."""
        return digest(self.data)

    def files(self, paths: StudyPaths) -> dict[Path, bytes]:
        """What is to be written for this seal, but for the ledger."""
        return {
            **{paths.root / name: data for name, data in self.code.items()},
            paths.sums: sums_bytes(self.manifest, self.data),
            paths.manifest: self.data,
            paths.manifest_signature: self.signature,
        }


def bind(
    paths: StudyPaths,
    repo: Repo,
    tree: Tree,
    *,
    key: SigningKey,
    principal: str,
    environments: Mapping[str, str],
    images: Mapping[str, Image] | None,
    created: str,
    amends: str | None = None,
) -> Bound:
    """Read the study's own files, add the code of this installation, and sign a manifest over both.

    Raises UsageError for faults in the study, WrongState for environments or events that do not belong to
    it, Untrusted if the signer is no author.
    """
    authored: dict[str, tuple[bytes, Mode]] = {}
    for name in tree.sealable():
        if not name.startswith(CODE):
            data, mode = read_with_mode(paths.root / name)
            authored[name] = (data, cast(Mode, mode))
    study = _refuse_content(paths, authored, environments)
    refuse_signer(paths, key, principal, created)
    builds = {c.build for c in study.protocol.configurations}
    code = {f"{CODE}{name}": data for name, data in sealed_code(builds).items()}
    _refuse_stale_events(study, code)
    manifest = Manifest(
        study=study.protocol.study,
        created=created,
        commit=repo.head(),
        author=Signer(principal=principal, key=key.fingerprint),
        rules=1,
        environments=dict(environments),
        images=None if images is None else dict(images),
        files=sealed_files({**authored, **{name: (data, "100644") for name, data in code.items()}}),
        amends=amends,
    )
    check_images(manifest, study.protocol)
    sealed = manifest_bytes(manifest)
    signature = key.sign(sealed, namespace=trust_rules.SEAL)
    return Bound(study=study, manifest=manifest, data=sealed, signature=signature, code=code)


def refuse_unsealable(paths: StudyPaths, repo: Repo, tree: Tree) -> None:
    """Raise UsageError for what no sealed folder holds: links, other repositories, ignored files."""
    for name, what in tree.odd.items():
        raise UsageError(
            f"is {what}; only regular files are sealed", where=name, next_step=f"rm {quote(name)}"
        )
    for name in repo.has_submodules_in([paths.root]):
        raise UsageError("is a submodule; its content would not be sealed", where=name)
    for name in tree.folders:
        if name.rpartition("/")[2] == ".git":
            raise UsageError("is a repository of its own; its content would not be sealed", where=name)
    for name in repo.ignored(paths.root / f for f in tree.sealable()):
        raise UsageError("git ignores this file", where=name, next_step=f"rm {quote(str(repo.top / name))}")


def remove_empty_folders(paths: StudyPaths) -> None:
    """git keeps no empty folder, and a sealed folder holds nothing that is not listed."""
    tree = walk(paths)
    for name in sorted(tree.folders, reverse=True):
        if not any(file.startswith(f"{name}/") for file in tree.files):
            (paths.root / name).rmdir()


def check_committed(paths: StudyPaths, repo: Repo, manifest: Manifest, commit: str) -> None:
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


def refuse_signer(paths: StudyPaths, key: SigningKey, principal: str, created: str) -> None:
    """Raise Untrusted unless this key is an author's, of that name, that signs seals at that time."""
    trust_rules.check_own_signer(
        trust_rules.load_trust(paths),
        principal=principal,
        public_key=key.public_key,
        roles=trust_rules.AUTHOR,
        namespace=trust_rules.SEAL,
        at=parse_time(created),
        where=str(paths.allowed_signers),
    )
