"""The errors a user can meet: what happened, where, and what to do next.

Every refusal in prereg is one of these; anything else that escapes is a bug (exit code 70).
"""

from __future__ import annotations

from typing import ClassVar


class PreregError(Exception):
    """A refusal with its place and its remedy.

    ``where`` names a file and, where there is one, a JSON pointer: ``protocol.json#/arms/0/id``.
    ``next_step`` is the command or edit that gets the user on.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, *, where: str | None = None, next_step: str | None = None) -> None:
        self.what = what
        self.where = where
        self.next_step = next_step
        super().__init__(what if where is None else f"{where}: {what}")

    def as_json(self) -> dict[str, object]:
        """The error as a JSON object, for ``--json``."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "next": self.next_step,
            "exit_code": self.exit_code,
        }


class VerificationFailed(PreregError):
    """Bytes, digests, signatures, order or a re-derivation do not agree."""

    exit_code = 1


class UsageError(PreregError):
    """The command line, or a file that a person wrote, is not of its form."""

    exit_code = 2


class EvidenceIncomplete(PreregError):
    """Something that a verdict needs is missing."""

    exit_code = 3


class WrongState(PreregError):
    """The study's state, environment or seeds do not allow this verb."""

    exit_code = 4


class EngineFailed(PreregError):
    """A worker or an engine failed, or could not be built."""

    exit_code = 5
