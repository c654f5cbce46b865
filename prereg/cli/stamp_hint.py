"""One line after a verb that leaves a signed head: that it can be stamped, where the study has stamps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prereg.cli.output import say

if TYPE_CHECKING:
    from prereg.store.layout import StudyPaths


def hint_stamp(paths: StudyPaths, folder: Path) -> None:
    """Say how the present head is stamped, in a study that asks for time stamps and where it is not yet."""
    from prereg.seal.standing import standing

    now = standing(paths)
    if now is not None and now.heads is not None and now.heads.seq < now.heads.entries:
        say(f"To have this head's time stamped: prereg timestamp {folder} --head --url URL")
