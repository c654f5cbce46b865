"""The coin study of `study_fixture` in edition 2, sealed or collected, for the entries of section 19."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.store.layout import StudyPaths
from tests.unit.study_fixture import copy_repository, fabricate_records, git, make_study, seal


def edit(paths: StudyPaths, change: Callable[[dict[str, Any]], object], name: str = "protocol.json") -> None:
    """Change one of the study's JSON files, as its author would."""
    value = json.loads((paths.root / name).read_bytes())
    change(value)
    (paths.root / name).write_text(json.dumps(value, indent=1))


def make_second(tmp_path: Path) -> StudyPaths:
    """An unsealed, committed study of edition 2."""
    paths = make_study(tmp_path)
    edit(paths, lambda protocol: protocol.update(edition=2))
    git(paths.repository, "commit", "-q", "-a", "-m", "Edition 2")
    return paths


@pytest.fixture(scope="module")
def second_once(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = make_second(tmp_path_factory.mktemp("second"))
    seal(paths)
    return paths


@pytest.fixture(scope="module")
def second_collected_once(tmp_path_factory: pytest.TempPathFactory, second_once: StudyPaths) -> StudyPaths:
    paths = copy_repository(second_once, tmp_path_factory.mktemp("second-collected") / "x")
    fabricate_records(paths)
    return paths


@pytest.fixture
def second(second_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    """Sealed, of edition 2."""
    return copy_repository(second_once, tmp_path / "copy")


@pytest.fixture
def second_collected(second_collected_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    """Sealed and collected, of edition 2."""
    return copy_repository(second_collected_once, tmp_path / "copy")
