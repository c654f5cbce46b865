"""Who is acting: the key on the command line and the principal it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.seal.keys import SigningKey
    from prereg.store.layout import StudyPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A key and the principal it signs for."""

    key: SigningKey
    principal: str


def actor(paths: StudyPaths, key_file: str, principal: str | None, *, draft: bool = False) -> Actor:
    """Load the key and find its principal in trust/allowed_signers, unless it is given.

    Raises UsageError if the key is nobody's, or several people's and none was named, and WrongState for a
    draft, which only `seal` takes (`draft`), and where HEAD is on no branch.
    """
    from prereg.seal.keys import load_key
    from prereg.seal.trust import load_trust
    from prereg.store.layout import not_sealed
    from prereg.store.repo import Repo

    if not draft and not paths.is_begun:
        raise not_sealed(paths)
    Repo.find(paths.root).branch()  # every verb with a key ends with a commit
    key = load_key(key_file)
    if principal is not None:
        return Actor(key=key, principal=principal)
    names = sorted(
        {p for s in load_trust(paths).signers if s.public_key == key.public_key for p in s.principals}
    )
    if len(names) == 1:
        return Actor(key=key, principal=names[0])
    what = "is nobody's" if not names else f"is the key of {', '.join(names)}"
    raise UsageError(
        f"the key {key.fingerprint} {what} in trust/allowed_signers",
        where=str(paths.allowed_signers),
        next_step=f"the same with --as {' or '.join(names)}"
        if names
        else "prereg key list; or prereg key new FILE --principal NAME --role ROLE",
    )
