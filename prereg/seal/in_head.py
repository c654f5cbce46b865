"""That HEAD holds what was read here: sealed files, ledger and evidence, byte for byte (section 5, Order).

One listing of HEAD's tree is compared with the ids that git gives to the bytes that lie here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from shlex import quote

from prereg.errors import VerificationFailed
from prereg.model.seal import Manifest
from prereg.seal.manifest import WHERE
from prereg.store.folder import Tree, is_unsealed, partial_of
from prereg.store.layout import StudyPaths
from prereg.store.repo import Repo

LEDGER = "ledger.jsonl"
_FREE = "report/"
_LATE = ("records/", "stamps/", "analysis/", "audit/")
"""Where files are written before the commit that brings them."""
_SIGNED = ("seal/timestamp.", "seal/cosign/")
"""What a verb lays beside a seal before it enters and commits it; its own gate comes in between."""
_CHANGING = ("analysis/", "audit/", "ledger.head.json", "ledger.head.json.sig")
"""What a verb writes anew before it commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exception:
    """What HEAD may lack, and what may differ there."""

    missing: tuple[str, ...]
    differing: tuple[str, ...] = ()


def check_head_holds(
    paths: StudyPaths,
    tree: Tree,
    manifest: Manifest,
    *,
    files: Mapping[str, bytes],
    ledger: bytes,
    blob_id: Callable[[str, str], str],
    lenient: bool,
    gate: bool = False,
    waiting: tuple[str, ...] = (),
) -> int:
    """Check that HEAD has each sealed file with its bytes and mode, and the evidence that is here, no other.

    `files` are the sealed files' bytes, `blob_id` gives the id of another, in the hash of an id. Where HEAD's
    ledger is shorter than the one here, a verb was cut off or is at work: its files may be missing, and what
    it writes anew may differ. `lenient` is for that verb, which goes on: it may have been cut off before its
    entry, and it may have signed or stamped the seal. `gate` says that a verb asks, and no reader; `waiting`
    are beginnings of what waits for its entry, and so for its commit. Returns how many files were compared.
    Raises VerificationFailed, naming the file.
    """
    repo = Repo.find(paths.root)
    head = repo.head()
    prefix = f"{repo.relative(paths.root)}/"
    found = {} if head is None else repo.blobs_at(head, paths.root)
    committed = {name.removeprefix(prefix): told for name, told in found.items()}
    for file in manifest.files:
        mode, blob = committed.get(file.path, ("", ""))
        if not blob:
            raise _missing(file.path, f"is sealed in {WHERE}, and HEAD does not have it")
        if Repo.blob_id(files[file.path], like=blob) != blob or mode != file.mode:
            raise _other(file.path)
    kept = _kept(repo, head, paths, ledger, lenient)
    kept = replace(kept, missing=(*kept.missing, *waiting, *(_SIGNED if gate else ())))
    here = [name for name in tree.files if is_unsealed(name) and partial_of(name) is None]
    compared = 0
    for name in here:
        mode, blob = committed.get(name, ("", ""))
        if name == LEDGER or (blob and name.startswith(kept.differing)):
            continue  # of the ledger every commit's is compared, and the present one is known
        if not blob and name.startswith(kept.missing):
            continue
        if not blob:
            raise _missing(name, "lies here, and HEAD does not have it")
        if blob_id(name, blob) != blob or mode not in ("100644", "100755"):
            raise _other(name)
        compared += 1
    expected = {*here, *(file.path for file in manifest.files)}
    for name in sorted(committed.keys() - expected):
        if not name.startswith((_FREE, *kept.differing)):
            what = "is what HEAD has, and it does not lie here"
            raise VerificationFailed(what, where=name, next_step=f"git checkout HEAD -- {quote(name)}")
    return compared + len(manifest.files)


def _kept(repo: Repo, head: str | None, paths: StudyPaths, ledger: bytes, lenient: bool) -> _Exception:
    """The exception that holds now. A stamp of a head needs no commit (section 22)."""
    if lenient:
        return _Exception(missing=(*_LATE, *_CHANGING, "seal/"), differing=_CHANGING)
    before = None if head is None else repo.blob_at(head, paths.ledger)
    if before is None or len(before) < len(ledger):
        return _Exception(missing=(*_LATE, *_SIGNED), differing=_CHANGING)
    return _Exception(missing=("stamps/",))


def _missing(name: str, what: str) -> VerificationFailed:
    step = f"git add {quote(name)} && git commit, or the verb that was cut off once more"
    return VerificationFailed(what, where=name, next_step=step)


def _other(name: str) -> VerificationFailed:
    what = "is in HEAD with other bytes or another mode than here"
    return VerificationFailed(what, where=name, next_step=f"git diff HEAD -- {quote(name)}")
