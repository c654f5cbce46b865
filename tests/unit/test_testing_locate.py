"""Classes that another process can make are found; all others are refused in words."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from prereg.errors import UsageError
from prereg.testing.locate import entry


class Processor:
    """One that can be found."""

    class Inner:
        """One that cannot."""

    def method(self) -> None:
        """Nothing."""


class Twin:
    """Hidden by another of its name, below."""


first_twin = Twin


class Twin:  # type: ignore[no-redef]
    """The one that stands here."""


def local() -> type[Any]:
    class Local:
        pass

    return Local


def test_a_class_is_its_file_its_name_and_the_digest_of_the_file() -> None:
    here = Path(__file__).resolve()
    assert entry(Processor, {"bias": 2.0}, "processor") == {
        "file": str(here),
        "class": "Processor",
        "arguments": {"bias": 2.0},
        "sha256": hashlib.sha256(here.read_bytes()).hexdigest(),
    }


def test_a_path_and_a_name_stand_for_a_class_that_is_not_imported(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise RuntimeError('not to be run here')\n")
    found = entry(f"{file}:Mine", None, "processor")
    assert (found["file"], found["class"], found["arguments"]) == (str(file), "Mine", {})


REFUSED: dict[str, tuple[Any, str]] = {
    "instance": (Processor(), "an instance of Processor"),
    "nested": (Processor.Inner, r"Processor\.Inner is nested or local"),
    "local": (local(), "nested or local"),
    "lambda": (lambda ids, scores: scores, "not a class but a function .*lambda"),
    "method": (Processor().method, "not a class but a method"),
    "built in": (int, "no file of Python source"),
    "compiled": (json.scanner.c_make_scanner, "no file of Python source"),
    "computed": (type("Computed", (), {}), "has no Computed at its top level that is"),
    "hidden": (first_twin, "has no Twin at its top level that is"),
    "no name": ("processors.py", "is not path/to/file.py:Class"),
    "no file": ("/nowhere/processors.py:Mine", "No such file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_another_process_could_not_make_is_refused(name: str) -> None:
    given, text = REFUSED[name]
    with pytest.raises(UsageError, match=text) as caught:
        entry(given, None, "processor")
    assert "processor" in caught.value.what
    assert caught.value.next_step


@pytest.mark.parametrize("arguments", [{"a": {1, 2}}, {"a": float("nan")}, {"a": (1, 2)}, {"a": {1: "b"}}])
def test_arguments_that_would_not_arrive_as_they_are_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the arguments of processor"):
        entry(Processor, arguments, "processor")
