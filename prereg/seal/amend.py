"""An amended seal: before any data, with the one before it kept byte for byte (section 19, Amendment).

The author edits the study's files first. Until the commit is made the old seal is what HEAD holds, so an
amendment that was cut off is taken back from there and made anew; what the author edited is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed, WrongState
from prereg.model.image import Image
from prereg.model.places import seals, state
from prereg.seal.bind import (
    CODE,
    Bound,
    bind,
    check_committed,
    refuse_unsealable,
    remove_empty_folders,
)
from prereg.seal.build import SealResult, annotate_seal
from prereg.seal.finish import is_committed
from prereg.seal.head import REMEDY, head_bytes, sign_head
from prereg.seal.head_stamps import read_head_stamps
from prereg.seal.keys import SigningKey
from prereg.seal.lineage import FOLDER
from prereg.seal.order import seal_commit
from prereg.seal.tell import words_of
from prereg.seal.trailers import seal_tag, trailers
from prereg.seal.trust import trust_files
from prereg.seal.verified import Run
from prereg.seal.verify import (
    order_of_history,
    step_1_folder,
    step_2_manifest,
    step_4_signature,
    step_5_study_files,
    step_6_ledger,
)
from prereg.store.files import read_in, read_once, write_whole
from prereg.store.folder import partial_of, walk
from prereg.store.layout import StudyPaths, not_sealed
from prereg.store.ledger import LedgerWriter, parse_time, timestamp
from prereg.store.lock import outrun, study_lock
from prereg.store.repo import Repo


def amend_study(
    paths: StudyPaths,
    *,
    reason: str,
    key: SigningKey,
    principal: str,
    environments: Mapping[str, str],
    images: Mapping[str, Image] | None = None,
    now: datetime | None = None,
) -> SealResult:
    """Seal the study's files as they are now, as an amendment of its present seal.

    Raises WrongState if there is no seal, if a collection was started, for edition 1, if nothing changed or
    the edition did, or if stamps of heads would not hold any more; UsageError for faults of the study;
    VerificationFailed if the present seal is not sound; Untrusted if the signer is no author.
    """
    told = words_of(reason, "--reason")
    with study_lock(paths):
        repo = Repo.find(paths.root)
        repo.refuse_partial_history()
        take_back(paths, repo)
        before = _present(paths, repo)
        tree = before.tree
        refuse_unsealable(paths, repo, tree)
        created = timestamp(now)
        bound = bind(
            paths,
            repo,
            tree,
            key=key,
            principal=principal,
            environments=environments,
            images=images,
            created=created,
            amends=before.seal,
        )
        number = len(before.lineage)
        if made := _made_already(paths, repo, before, bound, told, principal):
            return made
        _refuse_change(before, bound)
        _refuse_lost_stamps(before, bound)
        tag = seal_tag(bound.manifest.study, number)
        if repo.tag(tag) is not None:
            raise WrongState(f"the tag {tag} exists", where=str(repo.top), next_step=f"git show {tag}")
        try:
            head = _write(paths, before, bound, told, key, principal, parse_time(created))
            commit = _commit(paths, repo, before, bound, head, principal)
        except BaseException:
            take_back(paths, repo)
            raise
        check_committed(paths, repo, bound.manifest, commit)
        annotate_seal(
            repo,
            bound.manifest,
            commit,
            seal=bound.seal,
            head=head,
            principal=principal,
            amendment=number,
        )
    return SealResult(seal=bound.seal, manifest=bound.manifest, head=head, commit=commit, tag=tag)


def refuse_amendment(paths: StudyPaths) -> None:
    """Raise WrongState where no amendment can be made, before anything costly is done for one.

    What an amendment left that was cut off is taken back.
    """
    with study_lock(paths):
        repo = Repo.find(paths.root)
        take_back(paths, repo)
        _present(paths, repo)


def take_back(paths: StudyPaths, repo: Repo) -> bool:
    """Bring seal, code and ledger back to what HEAD holds if an amendment was cut off; returns whether.

    The sign of it is the seal of HEAD in the lineage, which is the first thing that an amendment writes and
    the last that is removed here.
    """
    commit = repo.head()
    manifest = None if commit is None else repo.blob_at(commit, paths.manifest)
    if commit is None or manifest is None:
        return False
    marker = paths.lineage / digest(manifest)
    if not marker.is_dir() or marker.is_symlink():
        return False
    names = [repo.relative(p) for p in (paths.ledger, paths.head, paths.head_signature)]
    held = {
        name: paths.root / name.removeprefix(repo.relative(paths.root) + "/")
        for name in (*names, *repo.blobs_at(commit, paths.code), *repo.blobs_at(commit, paths.seal))
    }
    for file in held.values():
        data = repo.blob_at(commit, file)
        if data is not None and (not file.is_file() or read_once(file) != data):
            write_whole(file, data)
            file.chmod(0o644)
    kept = set(held.values())
    extra = [
        paths.root / name
        for name in walk(paths).files
        if (name.startswith((CODE, "seal/")) and paths.root / name not in kept)
        or ("/" not in name and partial_of(name))
    ]
    for file in sorted(extra, key=lambda f: f.is_relative_to(marker)):
        file.unlink()
    remove_empty_folders(paths)
    return True


def _present(paths: StudyPaths, repo: Repo) -> Run:
    """The present seal, verified over the bytes that git holds of it: the files on disk are edited by now."""
    run = Run(paths=paths, read_records=False, lenient=False)
    where = str(paths.root)
    if not paths.manifest.exists() or not paths.ledger.exists():
        raise not_sealed(paths)
    step_1_folder(run)
    step_2_manifest(run)
    commit = seal_commit(repo, paths, run.manifest_bytes)
    if commit is None:
        raise VerificationFailed(
            "no commit in the history of HEAD holds this manifest", where="seal/manifest.json"
        )
    run.found["files"] = _committed_files(paths, repo, run, commit)
    for step in (step_4_signature, step_5_study_files, step_6_ledger):
        step(run)
    if not run.study.protocol.since(2):
        raise WrongState(
            "a study of edition 1 has no amendments",
            where=f"{where}/protocol.json",
            next_step=f"git checkout -- {where}, and draft another study",
        )
    now = state(run.entries)
    if now != "sealed":
        raise WrongState(
            f"the study is {now}: an amendment comes before any data",
            where=where,
            next_step=f"git checkout -- {where}, then prereg deviate {where}" if now != "closed" else None,
        )
    for name in run.tree.files:
        if name.startswith(("records/", "analysis/", "audit/")):
            raise WrongState("there is evidence already", where=name, next_step=f"prereg verify {where}")
    order_of_history(run)
    _refuse_uncommitted(paths, repo, run)
    return run


def _committed_files(paths: StudyPaths, repo: Repo, run: Run, commit: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for file in run.manifest.files:
        data = repo.blob_at(commit, paths.root / file.path)
        if data is None or digest(data) != file.sha256:
            raise VerificationFailed(f"commit {commit[:12]} holds it otherwise than sealed", where=file.path)
        files[file.path] = data
    return files


def _refuse_uncommitted(paths: StudyPaths, repo: Repo, run: Run) -> None:
    """What an amendment replaces must be in HEAD: from there it is taken back if the amendment is cut off."""
    if not is_committed(paths):
        verb = REMEDY.get(run.entries[-1].type, "prereg seal")
        raise WrongState(
            "its last entry is not committed", where=str(paths.ledger), next_step=f"{verb} {paths.root}"
        )
    commit = repo.head()
    assert commit is not None  # the ledger is committed
    prefix = repo.relative(paths.root) + "/"
    blobs = {**repo.blobs_at(commit, paths.seal), **repo.blobs_at(commit, paths.code)}
    for name in run.tree.files:
        if name.startswith((CODE, "seal/")):
            blob = blobs.get(prefix + name)
            data = read_once(paths.root / name)
            if blob is None or repo.blob_id(data, like=blob[1]) != blob[1]:
                raise WrongState(
                    "is written by prereg alone, and is not as it was committed",
                    where=name,
                    next_step=f"git checkout -- {paths.root / name.split('/')[0]}",
                )


def _refuse_change(before: Run, bound: Bound) -> None:
    old, new = before.manifest, bound.manifest
    if bound.study.protocol.edition != before.study.protocol.edition:
        raise WrongState("an amendment keeps the edition", where="protocol.json#/edition")
    if new.study != old.study:
        raise WrongState("an amendment keeps the study's name", where="protocol.json#/study")
    if _same(before, bound):
        raise WrongState(
            "nothing changed since the seal: there is nothing to amend",
            where=str(before.paths.root),
            next_step="edit the study's files first",
        )


def _refuse_lost_stamps(before: Run, bound: Bound) -> None:
    """Raise WrongState if stamps of heads would not hold any more: the new seal's roots judge them."""
    protocol = bound.study.protocol
    roots = protocol.timestamp.roots if protocol.timestamp is not None else None
    files = {} if roots is None else {roots: read_in(before.paths.root, roots)[0]}
    now = read_head_stamps(before.read, before.tree, protocol, files=files, trust=before.trust)
    if now.fault is not None:
        raise WrongState(
            f"with these roots a stamp of a head would not hold any more: {now.fault.what}",
            where="protocol.json#/timestamp",
            next_step=f"keep the roots or add to them; or git rm -r {before.paths.stamps} and lose them",
        )


def _same(before: Run, bound: Bound) -> bool:
    old, new = before.manifest, bound.manifest
    return (old.files, old.environments, old.images) == (new.files, new.environments, new.images)


def _made_already(
    paths: StudyPaths, repo: Repo, before: Run, bound: Bound, reason: str, principal: str
) -> SealResult | None:
    """This very amendment, if it is committed and only its tag was cut off; the tag is made."""
    number, last = len(before.lineage) - 1, before.entries[-1]
    if last.type != "amended" or last.body["reason"] != reason or last.actor != principal:
        return None
    tag = seal_tag(before.manifest.study, number)
    if not _same(before, bound) or repo.tag(tag) is not None:
        return None
    commit = seal_commit(repo, paths, before.manifest_bytes)
    assert commit is not None  # step 9 found it
    head = before.result().head
    annotate_seal(
        repo,
        before.manifest,
        commit,
        seal=before.seal,
        head=head,
        principal=principal,
        amendment=number,
    )
    return SealResult(seal=before.seal, manifest=before.manifest, head=head, commit=commit, tag=tag)


def _write(
    paths: StudyPaths,
    before: Run,
    bound: Bound,
    reason: str,
    key: SigningKey,
    principal: str,
    created: datetime,
) -> str:
    """Keep the old seal, write the new one and its entry, sign the head; returns the head.

    The entry has the manifest's time: a clock that was set back meanwhile would enter it before its seal.
    """
    kept = [n for n in before.tree.files if n.startswith("seal/") and not n.startswith(f"{FOLDER}/")]
    for name in kept:
        write_whole(paths.lineage / before.seal / name.removeprefix("seal/"), read_once(paths.root / name))
    made = bound.files(paths)
    for name in before.tree.files:
        file = paths.root / name
        if (name in kept or name.startswith(CODE)) and file not in made:
            file.unlink()
    for file, data in made.items():
        if not file.is_file() or read_once(file) != data:
            write_whole(file, data)
        file.chmod(0o644)
    remove_empty_folders(paths)
    body = {
        "seal": bound.seal,
        "previous": before.seal,
        "signature_sha256": digest(bound.signature),
        "commit": bound.manifest.commit,
        "reason": reason,
    }
    with LedgerWriter.open(paths) as writer:
        if seals(writer.entries)[-1] != before.seal:
            raise outrun()
        writer.append("amended", body, principal, now=created)
        head = head_bytes(bound.manifest.study, writer.entries, writer.head)
        write_whole(paths.head, head)
        write_whole(paths.head_signature, sign_head(head, key))
        return writer.head


def _commit(paths: StudyPaths, repo: Repo, before: Run, bound: Bound, head: str, principal: str) -> str:
    sealed = {paths.root / f.path for f in (*before.manifest.files, *bound.manifest.files)}
    whole: set[Path] = {paths.seal, paths.code, paths.ledger, paths.head, paths.head_signature}
    return repo.commit(
        sorted({*sealed, *whole, *trust_files(paths)}),
        f"Amend study {bound.manifest.study}",
        trailers(bound.manifest.study, bound.seal, head),
        principal=principal,
    )
