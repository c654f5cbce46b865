"""No byte of a study can be altered, no file removed, none added, without verification naming it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prereg.errors import PreregError
from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from tests.unit.study_fixture import fabricate_records, make_study, seal

# Every example puts back what it changed, so that one study serves all of them.
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module", params=["sealed", "collected"])
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = make_study(tmp_path_factory.mktemp(request.param))
    seal(paths)
    if request.param == "collected":
        fabricate_records(paths, invalid={"main.loaded.old": "a ceiling"})
    verify_study(paths)
    return paths


def files(paths: StudyPaths) -> list[str]:
    found = (p.relative_to(paths.root).as_posix() for p in paths.root.rglob("*") if p.is_file())
    # Most files are code; the others are where the forms differ, so they are drawn as often.
    return sorted(found, key=lambda name: (name.startswith("code/"), name))


def refusal(paths: StudyPaths) -> str:
    with pytest.raises(PreregError) as caught:
        verify_study(paths)
    assert caught.value.exit_code in (1, 3)
    return f"{caught.value.where}: {caught.value.what}"


@SLOW
@given(st.data())
def test_any_byte_altered_is_found_and_its_file_named(study: StudyPaths, data: st.DataObject) -> None:
    names = [n for n in files(study) if (study.root / n).stat().st_size]
    name = data.draw(st.sampled_from(names))
    path = study.root / name
    before = path.read_bytes()
    at = data.draw(st.integers(0, len(before) - 1))
    altered = before[:at] + bytes([before[at] ^ data.draw(st.integers(1, 255))]) + before[at + 1 :]
    path.write_bytes(altered)
    try:
        assert name in refusal(study)
    finally:
        path.write_bytes(before)


@SLOW
@given(st.data())
def test_any_cut_or_growth_is_found_and_its_file_named(study: StudyPaths, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(files(study)))
    path = study.root / name
    before = path.read_bytes()
    if data.draw(st.booleans()) and before:
        path.write_bytes(before[: data.draw(st.integers(0, len(before) - 1))])
    else:
        path.write_bytes(before + data.draw(st.binary(min_size=1, max_size=3)))
    try:
        assert name in refusal(study)
    finally:
        path.write_bytes(before)


def test_any_file_removed_is_found_and_named(study: StudyPaths) -> None:
    for name in files(study):
        path = study.root / name
        before = path.read_bytes()
        path.unlink()
        try:
            assert name in refusal(study)
        finally:
            path.write_bytes(before)


@SLOW
@given(
    st.sampled_from(
        ["", "code", "code/harness", "seal", "records", "records/main.fair.old", "analysis", "audit"]
    ),
    st.sampled_from(
        ["x", ".x", "x.json", "protocol.json.bak", "00009.meta.json", "decisions.json", "report.json"]
    ),
)
def test_any_file_added_is_found_and_named(study: StudyPaths, folder: str, name: str) -> None:
    path: Path = study.root / folder / name
    made = [p for p in (path.parent, *path.parent.parents) if not p.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    try:
        assert path.relative_to(study.root).as_posix() in refusal(study)
    finally:
        path.unlink()
        for parent in made:
            parent.rmdir()
