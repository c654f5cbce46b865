"""What the messages of a study's commits, and its tags, say of it (docs/formats.md section 19, step 9)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

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


def trailers_of(message: str) -> dict[str, list[str]]:
    """The trailers of a message, by name in lower case: lines `Name: value` of its last paragraph.

    That paragraph is not the first. Nothing that git is told decides what a trailer is.
    """
    paragraphs: list[list[str]] = [[]]
    for line in message.split("\n"):
        if line.strip():
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    filled = [lines for lines in paragraphs if lines]
    found: dict[str, list[str]] = {}
    for line in filled[-1] if len(filled) > 1 else ():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), []).append(value.strip())
    return found


def check_trailers(
    paths: StudyPaths, *, sealed: str, study: str, seals: Collection[str], lines: Collection[str]
) -> int:
    """Check the commits since `sealed` that name the study; returns how many.

    Each has one seal, of `seals`, and one head, of `lines`. Raises VerificationFailed, naming the commit.
    """
    looked = 0
    for commit, message in Repo.find(paths.root).messages_since(sealed).items():
        found = trailers_of(message)
        if study in found.get(STUDY.lower(), ()):
            looked += 1
            _check(found, seals, lines, f"commit {commit[:12]}", "no seal of this study")
    return looked


def check_tags(paths: StudyPaths, *, study: str, lineage: Sequence[Sealed], lines: Collection[str]) -> int:
    """Check the study's tags of seals, those that are there; returns how many.

    Raises VerificationFailed for one that is on no commit with the manifest of that name, or whose message
    does not name that seal and a head of `lines`.
    """
    repo = Repo.find(paths.root)
    looked = 0
    for tag, commit in repo.tags_under(f"prereg/{study}/").items():
        name = tag.removeprefix(f"prereg/{study}/")
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
        # A tag without a message of its own is a name for the commit and says nothing.
        if (told := repo.tag(tag)) is not None:
            seal = (lineage[number].seal,)
            said, known = trailers_of(told.message), "not the seal of that name"
            _check(said, seal, lines, f"tag {tag}", known, needed=False)
    return looked


def _check(
    found: Mapping[str, Sequence[str]],
    seals: Collection[str],
    lines: Collection[str],
    where: str,
    otherwise: str,
    needed: bool = True,
) -> None:
    """Raise VerificationFailed unless there is one seal, of `seals`, and one head, of `lines`.

    Where they are not `needed`, what is there has to be so.
    """
    for name, known, what in (
        (SEAL, seals, otherwise),
        (HEAD, lines, "the digest of no line of ledger.jsonl"),
    ):
        values = found.get(name.lower(), [])
        if needed and len(values) != 1:
            raise VerificationFailed(f"its message has {len(values)} trailers {name}, not one", where=where)
        for value in values:
            if value not in known:
                raise VerificationFailed(f"its trailer {name} is {what}: {value:.80}", where=where)
