"""A study runs no code that is not sealed: the files of its own classes (docs/formats.md section 6)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exact_fixture import make_exact_study

from harness.adapters.custom import load_all, located
from harness.wire import JobError
from prereg.codec.canonical import digest
from prereg.collect.staging import staged
from prereg.draft.lint import check_study
from prereg.errors import UsageError
from prereg.seal import bind
from prereg.seal.verify import verify_study
from prereg.store.harness import harness_digest
from prereg.store.layout import StudyPaths
from tests.unit.seal_kit import fails
from tests.unit.study_fixture import git, seal

SOURCE = "class Mine:\n    value = 5\n    def __call__(self, ids, scores):\n        return scores\n"
ENTRY = {"file": "own/mine.py", "class": "Mine", "arguments": {}, "sha256": digest(SOURCE.encode())}


def study(folder: Path, entry: dict[str, Any], name: str = "processors") -> StudyPaths:
    def change(protocol: dict[str, Any]) -> None:
        protocol["configurations"][1]["features"] = {name: [{"builtin": "some"}, entry]}

    return make_exact_study(folder, change, own={"own/mine.py": SOURCE})


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ENTRY.items() if key != name}


REFUSED: dict[str, tuple[Callable[[Path], dict[str, Any]], str, str]] = {
    "absolute": (lambda t: ENTRY | {"file": str(t / "mine.py")}, "file", "has an empty part"),
    "outside": (lambda t: ENTRY | {"file": "../mine.py"}, "file", "has an empty part, `.` or `..`"),
    "unsealed place": (lambda t: ENTRY | {"file": "report/mine.py"}, "file", "a manifest does not cover"),
    "no text": (lambda t: ENTRY | {"file": 3}, "file", "is not a string"),
    "absent": (lambda t: ENTRY | {"file": "own/yours.py"}, "file", "there is no 'own/yours.py'"),
    "no digest": (lambda t: without("sha256"), "sha256", "there is no digest of own/mine.py"),
    "other digest": (lambda t: ENTRY | {"sha256": "0" * 64}, "sha256", "is not the digest of own/mine.py"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_own_class_that_is_not_sealed_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, field, what = REFUSED[name]
    (tmp_path / "mine.py").write_text(SOURCE)
    paths = study(tmp_path, made(tmp_path))
    at = f"protocol.json#/configurations/1/features/processors/1/{field}"
    report = check_study(paths, rates={}, harness_sha256=harness_digest())
    (found,) = (f for f in report.findings if f.severity == "error")
    assert (found.where, what in found.what, bool(found.next_step)) == (at, True, True)
    with pytest.raises(UsageError) as refused:
        seal(paths)
    assert (refused.value.where, what in refused.value.what) == (at, True)
    # Sealed all the same, by a program that does not look.
    monkeypatch.setattr(bind, "own_file_problems", lambda protocol, files: ())
    seal(paths)
    assert fails(paths, 5, re.escape(what)).where == at


@pytest.mark.parametrize("name", ["stopping", "stopping_criteria"])
def test_stopping_criteria_are_own_classes_too(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        seal(study(tmp_path, without("sha256"), name))
    assert refused.value.where == f"protocol.json#/configurations/1/features/{name}/1/sha256"


def test_an_own_class_runs_from_its_sealed_bytes(tmp_path: Path) -> None:
    paths = study(tmp_path, ENTRY)
    assert check_study(paths, rates={}, harness_sha256=harness_digest()).ok
    seal(paths)
    verified = verify_study(paths)
    # Past the check, the study's folder is not looked at again.
    (paths.root / "own" / "mine.py").write_text(SOURCE.replace("5", "6"))
    features = verified.study.protocol.configurations[1].features
    entries = {"processors": features["processors"][1:]}
    with staged(verified.files) as stage:
        (mine,) = load_all(located(entries, str(stage.study))["processors"], "features.processors")
    assert mine.kind.value == 5
    with pytest.raises(JobError, match="is not the one meant"):
        load_all(located(entries, str(paths.root))["processors"], "features.processors")
    with pytest.raises(JobError, match="is not an absolute path"):
        load_all(located(entries, None)["processors"], "features.processors")


def test_an_absolute_path_stays_where_it_is_outside_studies(tmp_path: Path) -> None:
    entry = {**without("sha256"), "file": str(tmp_path / "mine.py")}
    assert located({"processors": [entry], "top_k": 3}, "/elsewhere") == {"processors": [entry], "top_k": 3}


def test_an_own_class_edited_after_the_seal_is_found(tmp_path: Path) -> None:
    paths = study(tmp_path, ENTRY)
    seal(paths)
    (paths.root / "own" / "mine.py").write_text(SOURCE.replace("5", "6"))
    value = json.loads(paths.protocol.read_bytes())
    assert value["configurations"][1]["features"]["processors"][1] == ENTRY
    git(paths.repository, "commit", "-q", "-am", "Edit")
    assert fails(paths, 3, "altered").where == "own/mine.py"
