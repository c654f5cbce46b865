"""Removing or altering evidence never turns a refusal into a pass.

A study that was tampered with is refused. Whatever other file is then removed or altered, of the study itself
or of trust, it stays refused, by the verification and by the auditor.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "unit"), str(TESTS / "tamper")]

import study_fixture  # noqa: E402
import tools  # noqa: E402

from audits.run import Options, audit  # noqa: E402
from prereg.analyse.run import analyse_study  # noqa: E402
from prereg.audit.run import audit_study  # noqa: E402
from prereg.errors import PreregError  # noqa: E402
from prereg.seal.verify import verify_report  # noqa: E402
from prereg.store.layout import StudyPaths  # noqa: E402

FAULTS = (
    "audit-report-changed",
    "decision-turned",
    "head-dropped",
    "history-rewritten",
    "ledger-line-dropped",
    "record-changed",
    "sealed-file-changed",
    "shard-dropped",
    "signature-dropped",
)
SLOW = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TESTS / "tamper" / name / "fault.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def snapshot(paths: StudyPaths) -> dict[Path, bytes]:
    """Every file of the study and of trust, by its path in the repository."""
    top = paths.repository
    places = (paths.root, top / "trust")
    return {p.relative_to(top): p.read_bytes() for place in places for p in place.rglob("*") if p.is_file()}


def passes(paths: StudyPaths) -> list[str]:
    """Who is content: neither should be."""
    found = []
    try:
        if all(step.status != "failed" for step in verify_report(paths)):
            found.append("verify")
    except PreregError:
        pass
    trust = paths.repository / "trust"
    options = Options(
        study=paths.root,
        signers=trust / "allowed_signers",
        roles=trust / "roles.json",
        studies=paths.studies,
    )
    if audit(options).result == "AGREES":
        found.append("auditor")
    return found


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = study_fixture.make_study(tmp_path_factory.mktemp("whole"), draws=2000, rows=100, shard_requests=5)
    study_fixture.seal(paths)
    study_fixture.fabricate_records(paths)
    analyse_study(paths, key=study_fixture.signing_key(paths), principal="ada@example.org")
    audit_study(paths, key=study_fixture.signing_key(paths, "rex"), principal="rex@example.org")
    assert passes(paths) == ["verify", "auditor"]
    return paths


@pytest.fixture(scope="module", params=FAULTS)
def tampered(
    request: pytest.FixtureRequest, audited: StudyPaths, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StudyPaths, list[Path]]]:
    """A refused study, and the files that the fault left as they were."""
    paths = study_fixture.copy_repository(audited, tmp_path_factory.mktemp("bad") / "copy")
    before = snapshot(paths)
    load(request.param).apply(paths.root, tools)
    assert passes(paths) == []
    after = snapshot(paths)
    # Most files are code; those of the evidence are drawn as often.
    kept = sorted((p for p in after if after[p] == before.get(p)), key=lambda p: ("code" in p.parts, p))
    yield paths, kept


@SLOW
@given(st.data())
def test_it_stays_refused(tampered: tuple[StudyPaths, list[Path]], data: st.DataObject) -> None:
    paths, kept = tampered
    file = paths.repository / data.draw(st.sampled_from(kept))
    before = file.read_bytes()
    new = None
    if before and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(before) - 1))
        new = before[:at] + bytes([before[at] ^ data.draw(st.integers(1, 255))]) + before[at + 1 :]
    try:
        file.unlink()
        if new is not None:
            file.write_bytes(new)
        assert passes(paths) == [], file
    finally:
        file.write_bytes(before)
