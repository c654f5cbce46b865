"""A study of edition 3, with all that can happen to it, through analyse, report and audit."""

from __future__ import annotations

import json
from typing import Any

import pytest
import study_fixture
from study_fixture import signing_key
from test_report_page import Reader
from third_fixture import collect_third, make_third_study

from prereg.audit.run import audit_study
from prereg.cli.analyse import analyse
from prereg.report.html import write_report
from prereg.store.layout import StudyPaths


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = make_third_study(tmp_path_factory.mktemp("third"))
    study_fixture.seal(paths)
    collect_third(paths)
    return paths


def none_but(**told: Any) -> dict[str, Any]:
    return {arm: told.get(arm, {"copies": 0, "differing": 0}) for arm in ("off", "on")}


def test_it_is_analysed_shown_and_audited(collected: StudyPaths, capsys: pytest.CaptureFixture[str]) -> None:
    key = str(collected.repository.parent / "keys" / "ada")
    analyse(collected.root, key=key, as_json=True)
    value = json.loads(capsys.readouterr().out)
    (drawn,) = value["configurations"]
    assert (drawn["attempts"], drawn["verdict"]) == ({"off": 1, "on": 2}, "NOT_REJECTED")
    assert drawn["duplicates"] == none_but(
        off={"copies": 1, "differing": 1}, on={"copies": 3, "differing": 3}
    )
    walked = {d["id"]: d for d in value["exact"]["configurations"]}
    same, other = walked["same"], walked["other"]
    assert (same["attempts"], same["verdict"], same["reasons"]) == (
        {"off": 1, "on": 1}, "INCONCLUSIVE", ["ceiling"],
    )  # fmt: skip
    assert (same["leaves"]["on"], same["tv_lower"], same["masses"]) == (None, None, [])
    assert other["attempts"] == {"off": 1, "on": 2} and other["verdict"] == "DEPARTS"
    assert other["duplicates"] == none_but(on={"copies": 1, "differing": 1})

    analyse(collected.root, key=key)
    said = " ".join(capsys.readouterr().err.split())
    assert "same, on: tried twice, 3 draws came out differently when they were drawn again." in said
    assert "other, on: tried twice, 1 leaf came out differently when it was walked again." in said
    assert "same is left open: A unit was lost to a ceiling" in said

    run = audit_study(collected, key=signing_key(collected, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
    page = " ".join(Reader(write_report(collected).read_text()).text.split())
    assert "3 draws came out differently when they were drawn again" in page
    assert "drawn.same.on, shard 0: a second result, kept: 3 of its" in page
    assert "drawn.same.on, attempt 1: it broke" in page and "1 unit was lost" in page
    assert "drawn.same.on, attempt 2" not in page and "walked.same.on, attempt" not in page
