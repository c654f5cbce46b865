"""Sealing: what the manifest binds, who signs it, and the commit that fixes its place in time (section 3)."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from prereg.codec.canonical import digest
from prereg.errors import WrongState
from prereg.model.image import Image
from prereg.model.seal import Manifest
from prereg.seal import trust as trust_rules
from prereg.seal.bind import CODE, bind, check_committed, refuse_unsealable, remove_empty_folders
from prereg.seal.head import head_bytes, sign_head
from prereg.seal.keys import SigningKey
from prereg.seal.trailers import seal_tag, trailers
from prereg.store.files import write_whole
from prereg.store.folder import Tree, is_unsealed, leftovers, walk
from prereg.store.layout import StudyPaths
from prereg.store.ledger import START, head_of, line_of, read_ledger, timestamp
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
        tree = _cleared(paths, repo)
        created = timestamp(now)
        _refuse_folder(paths, repo, tree)
        bound = bind(
            paths,
            repo,
            tree,
            key=key,
            principal=principal,
            environments=environments,
            images=images,
            created=created,
        )
        manifest, seal = bound.manifest, bound.seal
        tag = seal_tag(manifest.study, 0)
        if repo.tag(tag) is not None:
            raise WrongState(f"the tag {tag} exists", where=str(repo.top), next_step=f"git show {tag}")
        body = {"seal": seal, "signature_sha256": digest(bound.signature), "commit": manifest.commit}
        ledger = line_of(1, created, "sealed", principal, body, START)
        head = head_bytes(manifest.study, read_ledger(ledger), head_of(ledger))
        made = {
            **bound.files(paths),
            paths.ledger: ledger,
            paths.head: head,
            paths.head_signature: sign_head(head, key),
        }
        commit = _write_and_commit(paths, repo, manifest, made, principal, seal, head_of(ledger))
        check_committed(paths, repo, manifest, commit)
        annotate_seal(repo, manifest, commit, seal=seal, head=head_of(ledger), principal=principal)
    return SealResult(seal=seal, manifest=manifest, head=head_of(ledger), commit=commit, tag=tag)


def refuse_seal(paths: StudyPaths) -> None:
    """Raise what `seal_study` raises for the folder, before anything costly is done for a seal."""
    with study_lock(paths):
        repo = Repo.find(paths.root)
        _refuse_folder(paths, repo, _cleared(paths, repo))


def _cleared(paths: StudyPaths, repo: Repo) -> Tree:
    """The folder's files, without the unfinished writes of a seal that was killed."""
    if not _in_head(repo, paths.manifest):
        for file in leftovers(paths):
            file.unlink()
    return walk(paths)


def _in_head(repo: Repo, path: Path) -> bool:
    """Whether the last commit has the file; a seal that is killed may leave it in the index alone."""
    commit = repo.head()
    return commit is not None and repo.blob_at(commit, path) is not None


def _refuse_folder(paths: StudyPaths, repo: Repo, tree: Tree) -> None:
    """Everything about the folder and its repository that stands against a seal."""
    repo.refuse_partial_history()
    where = str(paths.root)
    for name in ("seal/manifest.json", "ledger.jsonl"):
        if name in tree.files:
            if _in_head(repo, paths.root / name):
                raise WrongState("the study is sealed", where=where, next_step=f"prereg status {where}")
            made = (paths.seal, paths.code, paths.ledger, paths.head, paths.head_signature)
            left = " ".join(shlex.quote(str(path)) for path in made if path.exists())
            raise WrongState(
                "holds a seal that was never committed: sealing was interrupted",
                where=str(paths.root / name),
                next_step=f"rm -r {left}, then prereg seal {where}",
            )
    refuse_unsealable(paths, repo, tree)
    for name in tree.files:
        if name.startswith(CODE):
            raise WrongState(
                "code/ is written by sealing and must not exist before",
                where=name,
                next_step=f"rm -r {shlex.quote(str(paths.code))}",
            )
        if is_unsealed(name):
            raise WrongState(
                "a study without a seal has no evidence",
                where=name,
                next_step=f"rm {shlex.quote(str(paths.root / name))}",
            )
    for name in repo.dirty_paths(paths.root):
        raise WrongState("differs from what is committed", where=name, next_step=f"git commit -- {where}")


def annotate_seal(
    repo: Repo, manifest: Manifest, commit: str, *, seal: str, head: str, principal: str, amendment: int = 0
) -> str:
    """Make the tag of a seal, or of an amendment of that number; returns its name."""
    tag = seal_tag(manifest.study, amendment)
    word = f"Amendment {amendment} of" if amendment else "Sealed"
    message = f"{word} {manifest.study}\n\nPrereg-Seal: {seal}\nPrereg-Ledger-Head: {head}\n"
    repo.annotate(tag, commit, message, principal=principal)
    return tag


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
        remove_empty_folders(paths)
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
