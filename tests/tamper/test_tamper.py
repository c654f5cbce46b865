"""Every folder beside this file is a fault: `fault.py` says why it must be caught, by whom, and commits it.

The study under attack is real in all its parts: sealed, collected (by the records that its command gives),
analysed and audited, each by its own key. A fault whose `STUDY` is `exact` is committed in a study with an
exact stage, whose trees are written down.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "unit"), str(HERE)]

import exact_fixture  # noqa: E402
import study_fixture  # noqa: E402
import tools  # noqa: E402

from prereg.analyse.run import analyse_study  # noqa: E402
from prereg.audit.run import audit_study  # noqa: E402
from prereg.store.layout import StudyPaths  # noqa: E402

OWN, OWN_CLASS = "own/mine.py", "class Mine:\n    def __call__(self, ids, scores):\n        return scores\n"
FAULTS = sorted(p.parent.name for p in HERE.glob("*/fault.py"))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fault_{name}", HERE / name / "fault.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prereg(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "prereg"
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)


def auditor(study: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(ROOT / "audits"), str(study)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def with_own_class(protocol: dict[str, Any]) -> None:
    """`other` runs a processor of the study's own."""
    entry = {"file": OWN, "class": "Mine", "arguments": {}, "sha256": tools.sha(OWN_CLASS.encode())}
    next(c for c in protocol["configurations"] if c["id"] == "other")["features"] = {"processors": [entry]}


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = study_fixture.make_study(
        tmp_path_factory.mktemp("audited"), draws=2000, rows=100, shard_requests=5
    )
    study_fixture.seal(paths)
    study_fixture.fabricate_records(paths)
    return audited_by_rex(paths)


@pytest.fixture(scope="session")
def audited_trees(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = exact_fixture.make_exact_study(
        tmp_path_factory.mktemp("trees"), with_own_class, own={OWN: OWN_CLASS}
    )
    study_fixture.seal(paths)
    exact_fixture.fabricate(paths)
    return audited_by_rex(paths)


def audited_by_rex(paths: StudyPaths) -> StudyPaths:
    """Analyse and audit, each with its own key."""
    analyse_study(paths, key=study_fixture.signing_key(paths), principal="ada@example.org")
    run = audit_study(paths, key=study_fixture.signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
    return paths


@pytest.fixture
def study(audited: StudyPaths, tmp_path: Path) -> Path:
    return study_fixture.copy_repository(audited, tmp_path / "copy").root


@pytest.fixture
def trees(audited_trees: StudyPaths, tmp_path: Path) -> Path:
    return study_fixture.copy_repository(audited_trees, tmp_path / "trees").root


@pytest.mark.parametrize("kind", ["study", "trees"])
def test_without_a_fault_both_are_content(kind: str, request: pytest.FixtureRequest) -> None:
    study = request.getfixturevalue(kind)
    done = prereg("verify", str(study), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
    done = auditor(study)
    assert done.returncode == 0, done.stdout
    assert "AGREES" in done.stdout


def test_each_fault_says_why() -> None:
    assert len(FAULTS) >= 35
    for name in FAULTS:
        assert len((load(name).__doc__ or "").split()) >= 4, name


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught(name: str, request: pytest.FixtureRequest) -> None:
    fault: Any = load(name)
    study: Path = request.getfixturevalue("trees" if getattr(fault, "STUDY", "") == "exact" else "study")
    fault.apply(study, tools)
    if "verify" in fault.CAUGHT_BY:
        done = prereg("verify", str(study))
        assert done.returncode == 1, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert fault.NAMED in done.stderr
        assert "Traceback" not in done.stderr
    if "auditor" in fault.CAUGHT_BY:
        done = auditor(study)
        assert done.returncode == 1, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert fault.NAMED in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
