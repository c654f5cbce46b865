"""What a study's authors looked at before they sealed it, as the page lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prereg.codec.canonical import dumps, loads

NAME = "searches.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One line of `searches.jsonl`."""

    kind: str
    when: str
    what: str
    came_out: str


def searches_of(files: Mapping[str, bytes]) -> list[Search]:
    """The lines of `searches.jsonl` among the files of a study, in order.

    Raises PreregError for a line that is no JSON.
    """
    lines = files.get(NAME, b"").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            value = loads(line, where=f"{NAME}:{number}")
            found.append(_search(value if isinstance(value, dict) else {"": value}))
    return found


def _search(line: Mapping[str, Any]) -> Search:
    if line.get("kind") != "pilot":
        return Search(
            kind=str(line.get("kind", "search")),
            when=str(line.get("time", "")),
            what=dumps(dict(line)).decode("utf-8"),
            came_out="",
        )
    configuration = line.get("configuration")
    configuration = configuration if isinstance(configuration, dict) else {}
    features = configuration.get("features")
    asked = dumps(features if isinstance(features, dict) else {}).decode("utf-8")
    what = f"{configuration.get('build', '')}: {asked}"
    numbers = [f"TV {line[name]}" for name in ("tv_lower",) if isinstance(line.get(name), int | float)]
    if numbers and line.get("tv_upper") != line.get("tv_lower"):
        numbers[0] += f" to {line.get('tv_upper')}"
    came = ", ".join([str(line.get("verdict", "")), *numbers])
    return Search(kind="pilot", when=str(line.get("time", "")), what=what, came_out=came)
