"""A user's own classes, loaded by path: fresh, bound to their file, and refused in words."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.adapters.custom import load_all
from harness.wire import BAD_REQUEST, JobError

SOURCE = """
class Mine:
    def __init__(self, words=()):
        self.words = words
    def __call__(self, ids, scores):
        self.words.append(len(ids))
        return scores

class Idle:
    pass

number = 3
"""


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def entry(file: Path, **fields: Any) -> dict[str, Any]:
    return {"file": str(file), "class": "Mine", "arguments": {}} | fields


def test_every_instance_is_made_anew_with_arguments_of_its_own(file: Path) -> None:
    (mine,) = load_all([entry(file, arguments={"words": []})], "features.processors")
    first, second = mine.fresh(), mine.fresh()
    first([1, 2], None)
    assert (first.words, second.words, mine.fresh().words) == ([2], [], [])


def test_the_file_may_be_bound_to_its_digest(file: Path) -> None:
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    load_all([entry(file, sha256=digest)], "features.processors")
    file.write_text(SOURCE + "\n")
    with pytest.raises(JobError, match=r"features\.processors\[0\]\.file is not the one meant"):
        load_all([entry(file, sha256=digest)], "features.processors")


def test_a_changed_file_is_another_class(file: Path) -> None:
    (old,) = load_all([entry(file)], "p")
    file.write_text(SOURCE.replace("words=()", "words=(7,)"))
    (new,) = load_all([entry(file)], "p")
    assert (old.fresh().words, new.fresh().words) == ((), (7,))


def test_neighbours_can_be_imported_as_in_a_test_suite(tmp_path: Path) -> None:
    package = tmp_path / "some_suite" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "helper.py").write_text("VALUE = 5\n")
    (tmp_path / "top_helper.py").write_text("VALUE = 6\n")
    (package / "mine.py").write_text(
        "import top_helper\nfrom .helper import VALUE\n"
        "class Mine:\n    total = VALUE + top_helper.VALUE\n    def __call__(self): ...\n"
    )
    (mine,) = load_all([entry(package / "mine.py")], "p")
    assert mine.kind.total == 11
    assert mine.kind.__module__ == "some_suite.inner.mine"


def test_a_module_that_is_there_already_is_the_one_that_is_used(tmp_path: Path) -> None:
    """The engine compares types: a copy of its own class would be another class."""
    package = tmp_path / "some_engine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mine.py").write_text(SOURCE)
    sys.path.append(str(tmp_path))
    import some_engine.mine  # type: ignore[import-not-found]

    (mine,) = load_all([entry(package / "mine.py")], "p")
    assert mine.kind is some_engine.mine.Mine


def test_a_package_whose_name_is_taken_does_not_mislead(tmp_path: Path) -> None:
    package = tmp_path / "json"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mine.py").write_text(SOURCE)
    (mine,) = load_all([entry(package / "mine.py")], "p")
    assert mine.fresh().words == ()
    import json

    assert "mine" not in vars(json)


REFUSED: dict[str, tuple[Any, str]] = {
    "no list": ({"file": "x"}, r"^p is not a list"),
    "no object": (["x"], r"^p\[0\] is not an object of file, class, arguments"),
    "missing": ([{"file": "/x.py", "class": "Mine"}], r"p\[0\]\.arguments is missing"),
    "unknown": ([{"file": "", "class": "", "arguments": {}, "path": ""}], r"p\[0\]\.path is unknown"),
    "type": ([{"file": "/x.py", "class": "Mine", "arguments": []}], r"p\[0\]\.arguments has the wrong type"),
    "relative": ([{"file": "x.py", "class": "Mine", "arguments": {}}], "not an absolute path: x.py"),
    "absent": ([{"file": "/nowhere/x.py", "class": "Mine", "arguments": {}}], "cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_list_of_classes_is_refused(name: str) -> None:
    given, text = REFUSED[name]
    with pytest.raises(JobError, match=text) as caught:
        load_all(given, "p")
    assert caught.value.code == BAD_REQUEST


BROKEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "syntax": ("class Mine(:", {}, "cannot be loaded in the engine's environment: SyntaxError"),
    "import": ("import no_such_thing", {}, "ModuleNotFoundError: No module named 'no_such_thing'"),
    "exit": ("raise SystemExit('gone')", {}, "SystemExit: gone"),
    "class": (SOURCE, {"class": "Yours"}, "has no class 'Yours' at its top level"),
    "value": (SOURCE, {"class": "number"}, "has no class 'number' at its top level"),
    "arguments": (
        SOURCE,
        {"arguments": {"colour": 1}},
        "Mine cannot be made with these arguments: TypeError",
    ),
    "call": (SOURCE, {"class": "Idle"}, "a Idle cannot be called"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_class_that_cannot_be_used_says_why(file: Path, name: str) -> None:
    source, fields, text = BROKEN[name]
    file.write_text(source)
    with pytest.raises(JobError, match=text) as caught:
        load_all([entry(file, **fields)], "features.processors")
    assert caught.value.code == BAD_REQUEST
    assert "features.processors[0]" in caught.value.message
