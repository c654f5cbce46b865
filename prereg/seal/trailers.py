"""What the messages of a study's commits, and its tags, say of it (docs/formats.md section 19, step 9)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from prereg.errors import VerificationFailed
from prereg.seal.lineage import Sealed
from prereg.store.layout import StudyPaths
from prereg.store.repo import Repo

STUDY, SEAL, HEAD = "Prereg-Study", "Prereg-Seal", "Prereg-Ledger-Head"
_AMENDED = re.compile(r"amended-([1-9][0-9]{0,8})")


def trailers(study: str, seal: str, head: str) -> dict[str, str]:
    """What every commit of a verb carries."""
    return {STUDY: study, SEAL: seal, HEAD: head}


def seal_tag(study: str, amendment: int) -> str:
    """The tag of a study's seal (0) or of its amendment of that number."""
    return f"prereg/{study}/" + (f"amended-{amendment}" if amendment else "sealed")


def check_trailers(
    paths: StudyPaths, *, sealed: str, study: str, seals: Collection[str], lines: Collection[str]
) -> int:
    """Check the commits since `sealed` that name the study; returns how many.

    Each has one seal, of `seals`, and one head, of `lines`. Raises VerificationFailed, naming the commit.
    """
    looked = 0
    for commit, found in Repo.find(paths.root).trailers_since(sealed).items():
        if study not in found.get(STUDY, ()):
            continue
        looked += 1
        for name, known, what in (
            (SEAL, seals, "no seal of this study"),
            (HEAD, lines, "the digest of no line of ledger.jsonl"),
        ):
            values = found.get(name, [])
            if len(values) != 1:
                raise VerificationFailed(
                    f"its message has {len(values)} trailers {name}, not one", where=f"commit {commit[:12]}"
                )
            if values[0] not in known:
                raise VerificationFailed(
                    f"its trailer {name} is {what}: {values[0]:.80}", where=f"commit {commit[:12]}"
                )
    return looked


def check_tags(paths: StudyPaths, *, study: str, lineage: Sequence[Sealed]) -> int:
    """Check the study's tags of seals, those that are there; returns how many.

    Raises VerificationFailed for one that is on no commit with the manifest of that name.
    """
    repo = Repo.find(paths.root)
    looked = 0
    for tag, commit in repo.tags_under(f"prereg/{study}/").items():
        name = tag.rpartition("/")[2]
        if name == "sealed":
            number = 0
        elif name.startswith("amended-"):
            match = _AMENDED.fullmatch(name)
            number = len(lineage) if match is None else int(match[1])
        else:
            continue
        looked += 1
        if number >= len(lineage):
            raise VerificationFailed("there is no such amendment", where=f"tag {tag}")
        if commit is None or repo.blob_at(commit, paths.manifest) != lineage[number].data:
            raise VerificationFailed(
                f"is on no commit that holds {lineage[number].where}",
                where=f"tag {tag}",
                next_step=f"git show {tag}",
            )
    return looked
