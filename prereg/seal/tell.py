"""What people say of a sealed study: a departure from its protocol, and its end (section 19)."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from prereg.errors import UsageError, WrongState
from prereg.model.seal import Entry
from prereg.seal.enter import enter
from prereg.seal.keys import SigningKey
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import NEXT
from prereg.store.layout import StudyPaths

LONGEST = 20_000
"""Characters that a text or a reason may have."""


def deviate_study(
    paths: StudyPaths, text: str, *, about: Sequence[str] = (), key: SigningKey, principal: str
) -> Entry:
    """Enter a departure from the protocol. `about` are configurations or units. Raises as `enter` does."""
    told = words_of(text, "--text")

    def body(verified: VerifiedStudy) -> Mapping[str, Any]:
        protocol = verified.study.protocol
        known = {c.id for c in protocol.configurations} | {unit.id for unit in protocol.units()}
        for name in about:
            if name not in known:
                raise UsageError(
                    f"there is no configuration or unit {name!r}",
                    where="--about",
                    next_step=f"one of {', '.join(sorted(known)[:12])}",
                )
        return {"seal": verified.seal, "about": list(dict.fromkeys(about)), "text": told}

    message = f"Deviation of study {paths.name}"
    return enter(paths, "deviation", body, key=key, principal=principal, message=message)[0]


def close_study(
    paths: StudyPaths, reason: str, *, unfinished: bool = False, key: SigningKey, principal: str
) -> Entry:
    """Enter the study's end: no entry can follow it.

    Raises WrongState for a study that is not audited, unless `unfinished` says that it ends so, and as
    `enter` does.
    """
    told = words_of(reason, "--reason")

    def body(verified: VerifiedStudy) -> Mapping[str, Any]:
        if verified.state not in ("audited", "closed") and not unfinished:
            where = str(paths.root)
            raise WrongState(
                f"the study is {verified.state}, not audited, and nothing can follow its end",
                where=where,
                next_step=f"{NEXT[verified.state]} {where}; or, where it is to end so, prereg close {where} "
                f"--reason {shlex.quote(told)} --unfinished",
            )
        return {"seal": verified.seal, "reason": told}

    message = f"Close study {paths.name}"
    return enter(paths, "closed", body, key=key, principal=principal, message=message)[0]


def words_of(text: str, where: str) -> str:
    """A text as the ledger keeps it: Unicode form NFC, lines that end in LF, no blanks around.

    Raises UsageError for one that is empty, too long, or no Unicode.
    """
    told = unicodedata.normalize("NFC", text).replace("\r\n", "\n").strip()
    if not told:
        raise UsageError("is empty", where=where, next_step="say what was done, and why")
    if len(told) > LONGEST:
        step = "say it shorter; a file of the repository may tell the rest"
        raise UsageError(f"has {len(told)} characters; {LONGEST} at most", where=where, next_step=step)
    if any("\ud800" <= ch <= "\udfff" for ch in told):
        raise UsageError("is not UTF-8", where=where, next_step="write it in UTF-8")
    return told
