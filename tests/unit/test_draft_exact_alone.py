"""`prereg draft --exact`: a template's exact stage alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from prereg.codec.convert import read_authored
from prereg.codec.study_files import AUTHORED, HYPOTHESES, parse_study
from prereg.draft import scaffold
from prereg.draft.family import build_events, events_json
from prereg.draft.scaffold import Blanks, draft_study, render
from prereg.errors import UsageError
from prereg.model.law import Decoded, Mass, MechanismLaw
from prereg.model.predictions import Predictions
from prereg.model.study import Protocol, Study

BLANKS = Blanks(title="t", question="q", author="A", principal="a@example.org")
LAW = [Mass(outcome=Decoded(tokens=(0,), finish=None), p=1)]


def drafted(template: str) -> dict[str, bytes]:
    """The files of a study, with the family of a law of one outcome for each configuration."""
    files = render("walked", template, BLANKS, [], exact=True)
    protocol = read_authored(files["protocol.json"], "protocol", Protocol, where="protocol.json")
    rows = json.loads(files["hypotheses.json"])["configurations"] if "hypotheses.json" in files else []
    mechanisms = {
        row["configuration"]: MechanismLaw(id=row["hypothesis"], switch=0, law=tuple(LAW)) for row in rows
    }
    laws = {c.id: LAW for c in protocol.configurations}
    events = build_events(protocol, laws, "0" * 64, mechanisms=mechanisms)
    return {**files, "events.json": json.dumps(events_json(events)).encode()}


def parsed(files: dict[str, bytes]) -> Study:
    return parse_study({name: data for name, data in files.items() if name in (*AUTHORED, HYPOTHESES)})


def channels(predictions: Predictions) -> list[str | None]:
    return [p.claim.channel for p in predictions.predictions]


@pytest.mark.parametrize(("template", "configurations"), [("main", 26), ("exact", 4)])
def test_what_is_left_is_a_study_of_the_exact_stage_alone(template: str, configurations: int) -> None:
    files = drafted(template)
    study = parsed(files)
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
    # Records are of draws, so that they go with them.
    assert any(c.records for c in whole.configurations)
    kept = tuple(dataclasses.replace(c, records=None) for c in whole.configurations)
    assert (alone.models, alone.prompts, alone.configurations) == (whole.models, whole.prompts, kept)


def test_mechanisms_stay_registered_and_lose_their_budget_by_draws() -> None:
    study = parsed(drafted("main"))
    assert study.hypotheses is not None and len(study.hypotheses.configurations) == 9
    assert study.protocol.hypotheses is not None
    assert study.protocol.hypotheses.alpha is None
    assert study.protocol.hypotheses.allowance == 0.005
    assert parsed(drafted("exact")).protocol.hypotheses is None


@pytest.mark.parametrize("template", ["conformance", "two-arm"])
def test_a_template_without_an_exact_stage_is_refused(template: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no exact stage") as refused:
        draft_study(tmp_path / "walked", template, BLANKS, [], exact=True)
    assert refused.value.where == "--exact"
    assert not (tmp_path / "walked").exists()


def test_every_template_is_of_the_newest_edition() -> None:
    folder = Path(scaffold.__file__).parent / "templates"
    found = {p.parent.name: json.loads(p.read_bytes()) for p in folder.glob("*/protocol.json")}
    assert {name: one["edition"] for name, one in found.items()} == dict.fromkeys(scaffold.TEMPLATES, 3)
    assert {(one["attempts"], one["ceilings"]["on_ceiling"]) for one in found.values()} == {(1, "INVALID")}
