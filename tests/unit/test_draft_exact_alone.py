"""`prereg draft --exact`: a template's exact stage alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.convert import read_authored
from prereg.codec.study_files import parse_study
from prereg.draft.scaffold import Blanks, draft_study, render
from prereg.errors import UsageError
from prereg.model.study import Predictions, Protocol

BLANKS = Blanks(title="t", question="q", author="A", principal="a@example.org")
AUTHORED = ("protocol.json", "seeds.json", "events.json", "predicates.json", "predictions.json")


def drafted(template: str) -> dict[str, bytes]:
    """The files of a study, with a reference and an event for each configuration."""
    files = render("walked", template, BLANKS, [], exact=True)
    family = {
        "reference": [{"outcome": {"tokens": [0], "finish": None}, "p": 1}],
        "events": [{"id": "other", "kind": "other"}],
    }
    events: dict[str, Any] = {"schema": "prereg/events/v1", "study": "walked", "harness_sha256": "0" * 64}
    protocol = json.loads(files["protocol.json"])
    events["configurations"] = {c["id"]: family for c in protocol["configurations"]}
    return {**files, "events.json": json.dumps(events).encode()}


def channels(predictions: Predictions) -> list[str | None]:
    return [p.claim.channel for p in predictions.predictions]


@pytest.mark.parametrize(("template", "configurations"), [("main", 26), ("exact", 4)])
def test_what_is_left_is_a_study_of_the_exact_stage_alone(template: str, configurations: int) -> None:
    files = drafted(template)
    study = parse_study({name: files[name] for name in AUTHORED})
    assert [stage.channel for stage in study.protocol.stages] == ["exact"]
    assert len(study.protocol.walked()) == configurations
    assert not study.protocol.drawn()
    assert study.protocol.decision.rule == "exact"
    assert len(study.seeds.blocks) == 2 * configurations
    assert set(channels(study.predictions)) == {"exact"}


def test_predictions_of_the_exact_stage_are_all_kept() -> None:
    whole = render("walked", "main", BLANKS, [])["predictions.json"]
    expected = channels(read_authored(whole, "predictions", Predictions, where="predictions.json"))
    kept = drafted("main")["predictions.json"]
    found = channels(read_authored(kept, "predictions", Predictions, where="predictions.json"))
    assert len(found) == expected.count("exact") > 0


def test_models_and_configurations_are_those_of_the_template() -> None:
    whole, alone = (
        read_authored(files["protocol.json"], "protocol", Protocol, where="protocol.json")
        for files in (render("walked", "main", BLANKS, []), drafted("main"))
    )
    assert (alone.models, alone.prompts, alone.configurations) == (
        whole.models,
        whole.prompts,
        whole.configurations,
    )


@pytest.mark.parametrize("template", ["conformance", "two-arm"])
def test_a_template_without_an_exact_stage_is_refused(template: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no exact stage") as refused:
        draft_study(tmp_path / "walked", template, BLANKS, [], exact=True)
    assert refused.value.where == "--exact"
    assert not (tmp_path / "walked").exists()
