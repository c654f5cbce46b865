"""Trailers and tags, a part of step 9: what commits and tags say of the seals and the ledger is so."""

from __future__ import annotations

import re

from audits.fault import Found
from audits.ledger import Ledger
from audits.lineage import Seal
from audits.load import sha256
from audits.repo import Repository
from audits.seal import MANIFEST

_TRAILER = re.compile(r"([A-Za-z0-9-]+)[ \t]*:(.*)")
_SIGNATURE = re.compile(r"^-----BEGIN [A-Z ]+-----$", re.MULTILINE)
"""Where the message of a signed tag ends."""
_STUDY, _SEAL, _HEAD = "prereg-study", "prereg-seal", "prereg-ledger-head"


def trailers(message: str) -> list[tuple[str, str]]:
    """The trailers of a message, their names in lower case: the lines ``Name: value`` of its last paragraph.

    The first paragraph is the title and has none. Whatever else stands in the last one, each line is judged
    by itself: git and its settings have other rules for what a trailer is.
    """
    lines = [line.rstrip() for line in message.strip().split("\n")]
    if "" not in lines:
        return []
    last = lines[len(lines) - lines[::-1].index("") :]
    matches = [match for line in last if (match := _TRAILER.fullmatch(line))]
    return [(match.group(1).lower(), match.group(2).strip()) for match in matches]


def check_trailers(
    repository: Repository, commits: list[str], seals: list[Seal], ledger: Ledger, found: Found
) -> None:
    """Every commit that says it is of the study names one seal of its lineage and one line of its ledger."""
    study, looked = seals[-1].manifest["study"], 0
    allowed = {_SEAL: {seal.digest for seal in seals}, _HEAD: set(ledger.digests)}
    names = {
        _SEAL: ("Prereg-Seal", "a seal of the lineage"),
        _HEAD: ("Prereg-Ledger-Head", "the digest of a line of the ledger"),
    }
    for commit, message in repository.messages(commits).items():
        said = trailers(message)
        if (_STUDY, study) not in said:
            continue
        looked += 1
        for key, good in allowed.items():
            values = [value for name, value in said if name == key]
            if len(values) != 1:
                found.fault(f"commit {commit} has {len(values)} trailers {names[key][0]}, not one")
            elif values[0] not in good:
                found.fault(f"commit {commit} has a trailer {names[key][0]} that is not {names[key][1]}")
    found.applied += looked


def check_tags(repository: Repository, seals: list[Seal], ledger: Ledger | None, found: Found) -> None:
    """Every tag of the study that is there is on a commit that has the seal it names, and says so too.

    ``ledger`` is None where it could not be read: its step says so.
    """
    study = seals[-1].manifest["study"]
    wanted = re.compile(rf"prereg/{re.escape(study)}/(?:sealed|amended-([0-9]+))")
    for name, tag in repository.tags(f"prereg/{study}/").items():
        match = wanted.fullmatch(name)
        if match is None:
            continue
        found.applied += 1
        told = match.group(1) or ""
        number = int(told[:9] or 0)
        if number >= len(seals) or (told and (told != str(number) or number == 0)):
            found.fault(f"tag {name} is of an amendment that the lineage does not have")
            continue
        _check_said(name, tag.message, seals[number], ledger, found)
        if tag.commit is None:
            found.fault(f"tag {name} is on no commit")
            continue
        mode, blob = repository.tree(tag.commit).get(MANIFEST, ("", ""))
        there = repository.blobs([blob])[blob] if mode in ("100644", "100755") else b""
        if sha256(there) != seals[number].digest:
            found.fault(f"tag {name} is on commit {tag.commit}, whose {MANIFEST} is not that seal")


def _check_said(name: str, message: str, seal: Seal, ledger: Ledger | None, found: Found) -> None:
    """What a tag's message names is its seal and a line of the ledger; it need not name them."""
    signature = _SIGNATURE.search(message)
    for key, value in trailers(message[: signature.start()] if signature else message):
        if key == _SEAL and value != seal.digest:
            found.fault(f"tag {name} has a trailer Prereg-Seal that is not that seal")
        if key == _HEAD and ledger is not None and value not in ledger.digests:
            found.fault(f"tag {name} has a trailer Prereg-Ledger-Head that is not the digest of a line")
