"""What a probe makes of its options, before any engine starts; and what it writes in a draft's notes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.adapters.checkpoint import digest as engine_side
from prereg.analyse.probe_draws import decide_draws, unit
from prereg.analyse.tally import Tally
from prereg.cli import probe_options
from prereg.cli.probe_options import Given, tolerant
from prereg.cli.probe_show import Pieces
from prereg.cli.probe_study import check_draft, log
from prereg.codec.canonical import loads_machine
from prereg.collect import choices
from prereg.collect.choices import identity_of, refusal
from prereg.collect.probe_model import checkpoint, digest
from prereg.collect.runtime import Build, parse_build
from prereg.collect.worker import WorkerRefused
from prereg.draft.family import events_of, family
from prereg.draft.rules import CONFORMANCE, conformance_protocol, documented_rules, tiny
from prereg.draft.scaffold import Blanks, draft_study
from prereg.errors import EngineFailed, PreregError, UsageError, WrongState
from prereg.model.law import Decoded, Mass

SPEC = (
    b'{"name":"toy","adapter":"%s","python":"3.11","requests_per_second":{"off":3},"unhashed":["torch==1"]}'
)


def build(adapter: str = "hf") -> Build:
    return parse_build("toy", SPEC % adapter.encode(), b"", where="toy")


def given(**change: Any) -> Given:
    fields: dict[str, Any] = dict.fromkeys(Given.__slots__)
    fields |= {
        "build": "toy",
        "settings": [],
        "budget": [],
        "drafter": "prompt-lookup",
        "drawn": False,
    }
    return Given(**(fields | change))


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The build `toy` is there and made, in an empty environment."""
    monkeypatch.setattr(
        "prereg.collect.runtime.load_build", lambda name: build(name.removeprefix("toy") or "hf")
    )
    for module in ("runtime", "probe_model"):
        monkeypatch.setattr(f"prereg.collect.{module}.environment_of", lambda build: tmp_path / "environment")
    site = tmp_path / "environment/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    return site


def test_the_defaults_are_the_tiny_model_of_the_engine() -> None:
    asked = probe_options.read(given())
    assert asked.vocabulary == ["a", "b", "c", "d", "e", "f", "<eos>"] or len(asked.vocabulary or ()) == 7
    assert asked.walk.prompt == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert (asked.horizon, asked.window, asked.walk.first, asked.tolerance) == (3, 3, None, 1e-5)
    assert not asked.walk.bounded and asked.walk.remember and asked.walk.close_floor == 0.0
    other = probe_options.read(given(build="toyllamacpp"))
    assert len(other.vocabulary or ()) == 10 and other.horizon == 4
    assert other.walk.configuration["drafter"]["max_tokens"] == 4


WEIGHTS = {"toy": ("2198", 0.4), "toyllamacpp": ("4", 0.2)}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_those_of_the_template_unless_they_are_given(name: str) -> None:
    def weights(**change: Any) -> tuple[str, float]:
        model = probe_options.read(given(build=name, **change)).walk.model
        return model["seed"], model["initializer_range"]

    seed, scale = WEIGHTS[name]
    assert weights() == (seed, scale)
    assert weights(model_seed="7") == ("7", scale)
    assert weights(initializer_range=0.05) == (seed, 0.05)
    entry = json.loads((CONFORMANCE / "models.json").read_bytes())["llamacpp"]
    if name == "toyllamacpp":
        assert entry["model"] == probe_options.read(given(build=name)).walk.model


def test_what_was_measured_of_an_engine_widens_the_tolerance(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF and more")
    change = {"build": "toyllamacpp", "model": str(file), "prompt": "x", "horizon": 3, "budget_mass": 0.1}
    asked = probe_options.read(given(**change))
    assert asked.is_measured and not probe_options.read(given(build="toyllamacpp")).is_measured
    assert not probe_options.read(given(**change, tolerance=0.5)).is_measured
    rows = ((0.0, 0.0, 1e-4), (1e-6, 1e-6, 1e-4), (1e-3, 0.0, 4e-3), (0.0, 1e-3, 8e-3))
    cases = [({"prompt": p, "later": later}, tolerance) for p, later, tolerance in rows]
    for measured, tolerance in [(None, 1e-4), *cases]:
        found = tolerant(asked, measured)
        assert found.repeatability == measured
        assert found.tolerance == pytest.approx(tolerance)
        assert found.walk.checks.oracle_tolerance == pytest.approx(tolerance)


BUDGETS: dict[str, tuple[list[str], tuple[int | None, float | None]]] = {
    "none": ([], (None, None)),
    "runs": (["500"], (500, None)),
    "time": (["60s"], (None, 60.0)),
    "part of a second": (["0.5s"], (None, 0.5)),
    "both": (["2.5s", "7"], (7, 2.5)),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_is_of_runs_or_of_seconds(name: str) -> None:
    budget, expected = BUDGETS[name]
    walk = probe_options.read(given(budget=budget)).walk
    assert (walk.runs, walk.seconds) == expected and walk.bounded == bool(budget)


def test_a_window_of_the_horizon_is_none() -> None:
    assert probe_options.read(given(horizon=2, first=2)).walk.first is None
    assert probe_options.read(given(horizon=2, first=1)).walk.first == 1


SHA_OF_MINE = hashlib.sha256(b"class Mine: ...\n").hexdigest()


def test_a_processor_is_named_by_its_file_and_class(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Mine: ...\n")
    asked = probe_options.read(given(processor=f"{file}:Mine", processor_arguments='{"bias": 2.0}'))
    features = asked.walk.configuration["features"]
    expected = {"file": str(file), "class": "Mine", "arguments": {"bias": 2.0}, "sha256": SHA_OF_MINE}
    assert features == {"processors": [expected]}


def test_a_changed_processor_is_another_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = SimpleNamespace(fingerprint="0" * 64)
    monkeypatch.setattr(choices, "load_build", build)
    monkeypatch.setattr(choices, "built", lambda build: marker)
    file = tmp_path / "mine.py"
    named = json.dumps([{"file": str(file), "class": "Mine", "arguments": {}}])
    for given_as in (
        {"processor": f"{file}:Mine"},
        {"settings": [f"processors={named}"]},
        {"settings": [f"stopping={named}"]},
    ):
        found = set()
        for text in ("class Mine: ...\n", "class Mine:\n    pass\n"):
            file.write_text(text)
            found.add(identity_of(probe_options.read(given(**given_as)).walk, "hf"))
        assert len(found) == 2 and None not in found


def test_an_environment_without_a_fingerprint_keeps_no_parts(tmp_path: Path) -> None:
    walk = probe_options.read(given()).walk
    assert identity_of(walk, Path("/usr/bin/python3")) is None
    resumed = replace(walk, journal=tmp_path / "walk.jsonl")
    with pytest.raises(UsageError, match="still the same"):
        choices._whole(resumed, Path("/usr/bin/python3"), None, lambda arm, leaves: None)  # type: ignore[arg-type]
    assert not (tmp_path / "walk.jsonl").exists()


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no such checkpoint": ({"model": "/nowhere/at/all", "prompt": "x"}, "--model", "there is no"),
    "a package that is not there": ({"model": "package:none", "prompt": "x"}, "--model", "no GGUF file"),
    "a package of no name": ({"model": "package:../x", "prompt": "x"}, "--model", "names no package"),
    "another adapter": ({"build": "toycommand"}, "--build", "no decoding engine"),
    "a window past the horizon": ({"horizon": 2, "first": 3}, "--first", "no 3 tokens"),
    "no horizon": ({"horizon": 0}, "--horizon", "positive"),
    "letters": ({"prompt": "xyz"}, "--prompt", "other letters"),
    "no prompt": ({"prompt": ""}, "--prompt", "empty"),
    "token ids": ({"prompt_ids": "0,9"}, "--prompt-ids", "from 0 to 6"),
    "no token ids": ({"prompt_ids": "0,a"}, "--prompt-ids", "not a list"),
    "two prompts": ({"prompt": "ab", "prompt_ids": "0"}, "--prompt-ids", "either"),
    "a setting": ({"settings": ["top_k"]}, "--set", "not KEY=VALUE"),
    "a value": ({"settings": ["top_k=x"]}, "--set top_k", "not JSON"),
    "a drafter": ({"drafter": "mine"}, "--drafter", "no drafter"),
    "a draft model elsewhere": (
        {"build": "toyllamacpp", "drafter": "assistant"},
        "--drafter",
        "only Transformers",
    ),
    "no processor": ({"processor": "mine.py"}, "--processor", "FILE:CLASS"),
    "no processor's file": ({"processor": "none.py:A"}, "--processor", "no file"),
    "arguments alone": ({"processor_arguments": "{}"}, "--processor-arguments", "which processor"),
    "a budget of mass": ({"budget_mass": 1.5}, "--budget-mass", "no mass"),
    "no time": ({"budget": ["0s"]}, "--budget", "no budget"),
    "no runs": ({"budget": ["0"]}, "--budget", "no budget"),
    "half a run": ({"budget": ["1.5"]}, "--budget", "no budget"),
    "minutes": ({"budget": ["5m"]}, "--budget", "no budget"),
    "endless": ({"budget": ["9" * 400 + "s"]}, "--budget", "no budget"),
    "two budgets of runs": ({"budget": ["5", "5"]}, "--budget", "two budgets of runs"),
    "two budgets of time": ({"budget": ["5s", "5", "6s"]}, "--budget", "two budgets of seconds"),
    "a tolerance": ({"tolerance": 0.0}, "--tolerance", "no tolerance"),
    "a tree too large": ({"horizon": 9}, "--horizon", "too many to walk"),
    "a floor without a budget": ({"close_floor": 0.01}, "--close-floor", "nothing would stay below"),
    "what is not resumed": ({"budget": ["5"], "resume": Path("x")}, "--resume", "not resumed"),
    "draws with a window": ({"drawn": True, "first": 1}, "--first", "not for draws"),
    "draws with a budget of runs": ({"drawn": True, "budget": ["5"]}, "--budget", "not for draws"),
    "draws with a budget": ({"drawn": True, "budget_mass": 0.1}, "--budget-mass", "not for draws"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    change, where, what = REFUSED[name]
    with pytest.raises(UsageError, match=what) as caught:
        probe_options.read(given(**change))
    assert caught.value.where == where and caught.value.exit_code == 2


def test_the_size_of_a_walk_is_its_own_choices() -> None:
    probe_options.read(given(horizon=9, settings=["top_k=3"]))
    probe_options.read(given(horizon=9, budget=["5s"]))
    probe_options.read(given(horizon=9, first=2))


def test_a_checkpoint(tmp_path: Path, made: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF and more")
    with pytest.raises(UsageError, match="has not the package gguf"):
        checkpoint(str(file), build())
    (made / "gguf").mkdir()
    expected = {
        "kind": "checkpoint",
        "path": str(file),
        "sha256": hashlib.sha256(b"GGUF and more").hexdigest(),
    }
    assert checkpoint(str(file), build()) == expected == checkpoint(str(file), build("llamacpp"))
    (made / "weights").mkdir()
    (made / "weights/model.gguf").write_bytes(b"GGUF too")
    assert checkpoint("package:weights", build())["path"] == str(made / "weights/model.gguf")
    asked = probe_options.read(given(model=str(file), prompt="one two", first=1))
    assert asked.is_checkpoint and (asked.walk.text, asked.walk.prompt) == ("one two", None)
    assert (asked.walk.mass, asked.tolerance, asked.walk.close_floor) == (0.0, 1e-4, 0.0)
    wide = probe_options.read(given(model=str(file), prompt_ids="5,6", horizon=2, budget_mass=0.05))
    assert (wide.walk.mass, wide.walk.close_floor) == (0.05, pytest.approx(5e-7))
    for change, what in (
        ({}, "needs a prompt"),
        ({"prompt": "x"}, "a whole vocabulary"),
        ({"prompt": "x", "first": 1, "drafter": "assistant"}, "only Transformers' tiny model"),
    ):
        with pytest.raises(UsageError, match=what):
            probe_options.read(given(model=str(file), **change))
    file.write_bytes(b"something else")
    with pytest.raises(UsageError, match="is no GGUF file"):
        checkpoint(str(file), build())
    with pytest.raises(UsageError, match=r"no config\.json"):
        checkpoint(str(tmp_path), build())
    with pytest.raises(UsageError, match="this engine reads a GGUF file"):
        checkpoint(str(tmp_path), build("llamacpp"))


def test_the_digest_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/two").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    one, two = (hashlib.sha256(text).hexdigest() for text in (b"1", b"2"))
    lines = f"a\0{one}\nb/two\0{two}\n"
    assert digest(tmp_path) == hashlib.sha256(lines.encode()).hexdigest() == engine_side(tmp_path)


LAW = [Mass(outcome=Decoded(tokens=(at,), finish="eos"), p=0.5) for at in range(2)]
VERDICTS = {
    "FAILS": ((500, 500), (900, 100), 5),
    "NOT_REJECTED": ((500, 500), (500, 500), 5),
    "INCONCLUSIVE": ((500, 500), (900, 100), 0),
    "VOID": ((900, 100), (900, 100), 5),
}


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("reference", [True, False])
def test_draws_are_decided_by_the_sealed_rules(verdict: str, reference: bool) -> None:
    off, on, proposals = VERDICTS[verdict]
    tallies = {
        unit(arm): Tally(
            unit=unit(arm),
            draws=1000,
            crashes=0,
            outcomes=tuple((mass.outcome, n) for mass, n in zip(LAW, counts, strict=True)),
            proposals=proposals if arm == "on" else 0,
            verifications=0,
            accepted=0,
        )
        for arm, counts in (("off", off), ("on", on))
    }
    default = tiny("hf", "2198", 0.4)
    made = family(LAW, horizon=1)
    decision = decide_draws(
        conformance_protocol("probe"),
        probe_options.read(given(horizon=1)).walk.configuration,
        made if reference else type(made)(reference=None, events=made.events),
        documented_rules({}, 1, [0], default.model),
        tallies,
        1000,
    )
    # Without a reference nothing is calibrated: two arms that err alike are not told apart.
    assert decision.verdict == (verdict if reference or verdict != "VOID" else "NOT_REJECTED")
    assert decision.level == pytest.approx(0.05 / decision.B)


def test_events_of_a_small_law_are_those_over_the_off_arms_outcomes() -> None:
    law = {mass.outcome: mass.p for mass in LAW}
    foreign = Decoded(tokens=(1, 1, 1), finish=None)
    assert events_of(law, {foreign: 1.0}, 1) == family(LAW, horizon=1).events
    assert events_of({}, {}, 1) == ()


def test_tokens_read_as_text_where_it_is_known() -> None:
    pieces = Pieces({3: " two", 5: "\n"})
    assert (pieces[3], pieces[4], pieces[5], len(pieces)) == ("·two", "4", "\\n", 6)


def test_a_probe_is_noted_in_a_draft_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prereg.collect.runtime.built", lambda build: None)
    paths = draft_study(tmp_path / "studies/mine", "two-arm", Blanks(), [])
    value = {"verdict": "DEPARTS", "tv_lower": 0.25, "configuration": {"build": "toy"}, "off": [1, 2]}
    log(paths.root, value)
    log(paths.root, value)
    lines = (paths.root / "searches.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 2
    for line in lines:
        found = loads_machine(line, where="searches.jsonl")
        assert isinstance(found, dict)
        assert (found["verdict"], found["tv_lower"], found["kind"]) == ("DEPARTS", 0.25, "pilot")
        assert "off" not in found and found["time"].endswith("+00:00")
    (paths.root / "searches.jsonl").write_bytes(json.dumps({"by": "hand"}).encode())
    log(paths.root, value)
    assert len((paths.root / "searches.jsonl").read_bytes().splitlines()) == 2


def test_a_sealed_study_is_not_touched() -> None:
    sealed = Path(__file__).parents[2] / "studies/optional-stopping"
    before = (sealed / "searches.jsonl").read_bytes()
    for call in (check_draft, lambda folder: log(folder, {"configuration": {"build": "toy"}})):
        with pytest.raises(WrongState, match="pilots are closed") as caught:
            call(sealed)
        assert caught.value.exit_code == 4 and caught.value.next_step
    assert (sealed / "searches.jsonl").read_bytes() == before


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreregError, match=r"no protocol\.json"):
        check_draft(tmp_path)


REFUSALS = {
    "model.path: there is no /x": "--model",
    "the prompt has a token outside the vocabulary": "--prompt",
    "the text cannot be tokenized: x": "--prompt",
    "prompt and horizon are longer than the model's context": "--horizon",
    "features.processors[0]: no class": "--processor",
    "features.colour: this engine has no such setting": "--set",
}


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_names_the_option_that_it_is_about(message: str) -> None:
    error = refusal(WorkerRefused("bad-request", message))
    assert isinstance(error, UsageError) and error.where == REFUSALS[message]
    assert isinstance(refusal(WorkerRefused("engine", message)), EngineFailed)
