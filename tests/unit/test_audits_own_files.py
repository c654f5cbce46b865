"""Section 6: the files that a study's own processors and stopping rules come from are sealed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import change, failed, look, make_keys
from audits_plan import Plan
from audits_slow import Json
from audits_tools import sha

FILE = "code/harness/run.py"
OWN: Json = {"file": FILE, "class": "Mine", "sha256": sha(b"print()\n")}
"""A file that the fixture seals, and its digest."""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def featured(**features: Any) -> Plan:
    def edit(protocol: Json) -> None:
        protocol["configurations"][1]["features"] = features

    return change("protocol.json", edit, upto="sealed")


def test_own_files_that_are_sealed(tmp_path: Path, keys: Path) -> None:
    plan = featured(processors=[{"class": "Theirs"}, OWN], stopping=[OWN, "text"], other=[{"file": "x"}])
    assert failed(look(Builder(tmp_path / "r", keys, plan).build())) == {}


WRONG: dict[str, tuple[Json, str]] = {
    "not there": (OWN | {"file": "mine.py"}, "file"),
    "outside the study": (OWN | {"file": f"../tiny/{FILE}"}, "file"),
    "absolute": (OWN | {"file": f"/{FILE}"}, "file"),
    "another spelling": (OWN | {"file": f"./{FILE}"}, "file"),
    "there, and not listed": (OWN | {"file": "seal/manifest.json"}, "file"),
    "a folder": (OWN | {"file": "code/harness"}, "file"),
    "null": (OWN | {"file": None}, "file"),
    "a list": (OWN | {"file": [FILE]}, "file"),
    "no digest": ({"file": FILE, "class": "Mine"}, "sha256"),
    "a digest of other bytes": (OWN | {"sha256": sha(b"")}, "sha256"),
    "a digest in capitals": (OWN | {"sha256": OWN["sha256"].upper()}, "sha256"),
}


@pytest.mark.parametrize("part", ["processors", "stopping", "stopping_criteria"])
@pytest.mark.parametrize("name", WRONG)
def test_own_files_that_are_not_the_sealed_ones(tmp_path: Path, keys: Path, name: str, part: str) -> None:
    entry, key = WRONG[name]
    outcome = look(Builder(tmp_path / "r", keys, featured(**{part: [OWN, entry]})).build())
    assert outcome.result == "FAILED"
    assert f"protocol.json#/configurations/1/features/{part}/1/{key}: " in failed(outcome)[5]
