"""The template `main` says what the paper's Table 2, section 4.3 and Supplement C say, row by row."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from harness import mechanisms
from prereg.codec.convert import read_authored
from prereg.codec.study_files import AUTHORED, HYPOTHESES, parse_study
from prereg.draft.family import build_events, events_json
from prereg.draft.scaffold import Blanks, plan_seeds, render
from prereg.model.law import (
    AllowedByPosition,
    Decoded,
    Mass,
    MechanismLaw,
    MinTokens,
    Predicates,
    RecordEntry,
    ReferenceEntry,
)
from prereg.model.study import Configuration, PromptLookup, Protocol
from prereg.store.layout import harness_root

CONTROLS = {
    "hf12-p2": "positive-control",
    "hf17-n0": "negative-control",
    "hf17-p1": "positive-control",
    "lcp-n0-19": "negative-control",
    "lcp-n0-35": "negative-control",
    "lcp-n1-19": "negative-control",
    "lcp-n1-35": "negative-control",
}
PROBES = {
    "hf17-3": {"temperature": 0.7, "top_k": 3, "top_p": 0.9, "repetition_penalty": 1.3},
    "hf17-4": {"min_new_tokens": 2},
    "hf17-5": {"sequence_bias"},
    "hf17-6": {"guidance_scale": 1.5},
    "hf17-7": {"watermarking"},
    "hf17-9": {"output_scores": True},
    "hfx-8": {"processors"},
    "lcp-1-19": {"api", "processors"},
    "lcp-1-35": {"api", "processors"},
    "lcp-2-19": {"api": "create_completion", "min_tokens": 3},
    "lcp-2-35": {"api": "create_completion", "min_tokens": 3},
    "lcp-3-19": {"api", "stopping_criteria"},
    "lcp-3-35": {"api", "stopping_criteria"},
    "lcp-4-19": {"api": "create_completion", "stop": ["da"]},
    "lcp-4-35": {"api": "create_completion", "stop": ["da"]},
    "lcp-5-19": {"api": "create_completion", "logprobs": 10},
    "lcp-5-35": {"api": "create_completion", "logprobs": 10},
    "lcp-6-19": {"api", "repeat_penalty", "frequency_penalty", "presence_penalty"},
    "lcp-7-19": {"api", "grammar"},
}
"""Features: the whole of them where the table gives the values, else their names."""

HYPOTHESIS = {
    "hf17-6": "H-D2-cfg",
    "hf17-7": "H-D2-synthid",
    "hfx-8": "H-D2-xgr",
    "lcp-1-19": "H-D1-phys",
    "lcp-1-35": "H-D1-phys",
    "lcp-2-19": "H-D1-phys",
    "lcp-2-35": "H-D1-phys",
    "lcp-3-19": "H-D3-postcheck",
    "lcp-3-35": "H-D3-postcheck",
}
BUILDS = {
    "hf12": "hf-5.12.0",
    "hf17": "hf-5.17.0",
    "hfx": "hf-5.17.0-xgrammar-0.2.8",
    "19": "lcp-0.3.19",
    "35": "lcp-0.3.35",
}
"""By the first part of an id, or for llama-cpp-python by the last."""


@cache
def rendered() -> dict[str, bytes]:
    blanks = Blanks(title="t", question="q", author="A", principal="a@example.org")
    return render("main", "main", blanks, [])


@cache
def protocol() -> Protocol:
    return read_authored(rendered()["protocol.json"], "protocol", Protocol, where="protocol.json")


def configuration(name: str) -> Configuration:
    (found,) = (c for c in protocol().configurations if c.id == name)
    return found


def hypotheses() -> dict[str, Any]:
    value: dict[str, Any] = json.loads(
        (files("prereg.draft") / "templates" / "main" / "hypotheses.json").read_bytes()
    )
    return value


def test_all_twenty_six_are_there_in_two_stages_with_one_budget() -> None:
    draws = [stage for stage in protocol().stages if stage.channel == "draws"]
    assert [set(stage.configurations) for stage in draws] == [set(CONTROLS), set(PROBES)]
    assert len({c.id for c in protocol().configurations}) == 26
    (exact,) = (stage for stage in protocol().stages if stage.channel == "exact")
    assert set(exact.configurations) == {*CONTROLS, *PROBES}
    assert protocol().alpha == 0.05
    assert all(plan.draws == 200_000 for plan in protocol().sampling.values())


@pytest.mark.parametrize("name", [*CONTROLS, *PROBES])
def test_a_configuration_is_the_table_s(name: str) -> None:
    found = configuration(name)
    first, *_, last = name.split("-")
    assert found.build == BUILDS[last if first == "lcp" else first]
    assert (harness_root() / "builds" / found.build / "build.json").is_file()
    assert found.role == CONTROLS.get(name, "probe")
    engine = "llamacpp" if first == "lcp" else "hf"
    size, horizon, proposed = (10, 4, 4) if engine == "llamacpp" else (7, 3, 3)
    assert (found.adapter, found.horizon) == (engine, horizon)
    model = protocol().models[found.model or ""]
    assert (len(model.vocab), model.layers) == (size, 1)
    spelled = "".join(model.vocab[token] for token in protocol().prompts[found.prompt or ""])
    assert spelled == "abcdabcdab"
    assert found.drafter == PromptLookup(max_ngram=2, max_tokens=proposed)


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_has_the_feature_that_the_table_names(name: str) -> None:
    expected, given = PROBES[name], dict(configuration(name).features)
    assert (given.keys() if isinstance(expected, set) else given) == expected


def test_controls_are_plain_but_for_the_stop_string() -> None:
    given = {name: dict(configuration(name).features) for name in CONTROLS}
    assert given.pop("hf17-p1") == {"stop_strings": ["cd"]}
    assert given.pop("hf12-p2") == given.pop("hf17-n0") == {}
    apis = {name: features.pop("api") for name, features in given.items()}
    assert apis == {name: "create_completion" if "n1" in name else "generate" for name in given}
    assert not any(given.values())


def test_each_configuration_registers_at_most_one_hypothesis_and_it_can_be_run() -> None:
    registered = {each["configuration"]: each["hypothesis"] for each in hypotheses()["configurations"]}
    assert registered == HYPOTHESIS
    assert len(hypotheses()["configurations"]) == len(registered)
    named = [each["id"] for each in hypotheses()["hypotheses"]]
    assert sorted(named) == sorted(set(registered.values()))
    assert set(named) <= mechanisms.HYPOTHESES.keys()


def test_priorities_pick_guidance_and_the_minimum_length() -> None:
    """Paper, 6.2: they went before SynthID and the harness processor, each once per cause and build."""
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for each in hypotheses()["configurations"]:
        build = configuration(each["configuration"]).build
        groups.setdefault((each["cause"], build), []).append((each["priority"], each["configuration"]))
    for members in groups.values():
        assert sorted(priority for priority, _ in members) == list(range(1, len(members) + 1))
    first = {min(members)[1] for members in groups.values()}
    assert first == {"hf17-6", "lcp-2-19", "lcp-2-35", "hfx-8", "lcp-3-19", "lcp-3-35"}


def test_predicates_name_the_documentation_that_they_come_from() -> None:
    found = read_authored(
        rendered()["predicates.json"], "predicates", Predicates, where="predicates.json"
    ).predicates
    assert all(each.source.startswith(("Transformers, ", "llama-cpp-python, ")) for each in found)
    used = {name for c in protocol().configurations for name in c.predicates}
    assert used == {each.id for each in found}


@pytest.mark.parametrize("version", ["19", "35"])
def test_a_processor_s_contract_is_a_predicate(version: str) -> None:
    rules = {
        each.id: each.rule
        for each in read_authored(
            rendered()["predicates.json"], "predicates", Predicates, where="predicates.json"
        ).predicates
    }
    parity = rules[configuration(f"lcp-1-{version}").predicates[-1]]
    assert isinstance(parity, AllowedByPosition)
    prompt = protocol().prompts["abcdabcdab"]
    size = len(protocol().models["tiny-10"].vocab)
    for at, allowed in enumerate(parity.positions):
        shown = (len(prompt) + at) % len(parity.positions)
        assert allowed == tuple(token for token in range(size) if token % 2 == shown)
    # The end token is hidden there, but nothing else ends a text before its maximum.
    features = configuration(f"lcp-2-{version}").features
    assert features.keys() == {"api", "min_tokens"}
    shortest = rules[configuration(f"lcp-2-{version}").predicates[-1]]
    assert shortest == MinTokens(n=features["min_tokens"])


def test_records_are_those_of_the_configurations_that_ask_for_them() -> None:
    found = {c.id: c.records for c in protocol().configurations if c.records}
    assert {name: (plan.kind, plan.reference) for name, plan in found.items()} == {
        "hf17-9": ("scores", "replay"),
        "lcp-5-19": ("logprobs", "none"),
        "lcp-5-35": ("logprobs", "none"),
    }
    assert found["hf17-9"].told == len(protocol().models["tiny-7"].vocab)
    assert found["lcp-5-19"] == found["lcp-5-35"]
    assert found["lcp-5-19"].told == configuration("lcp-5-19").features["logprobs"]


def test_the_off_arms_of_transformers_go_in_batches() -> None:
    builds = {c.build for c in protocol().configurations}
    off, on = protocol().sampling["off"], protocol().sampling["on"]
    rows = {build: off.of_build(build).rows for build in builds}
    assert rows == {build: 1000 if build.startswith("hf-") else 1 for build in builds}
    for build in builds:
        shard = off.of_build(build)
        assert shard.rows * shard.shard_requests == 10_000
        assert on.of_build(build).rows == 1


def test_the_files_are_a_study_once_its_events_are_there() -> None:
    law = [Mass(outcome=Decoded(tokens=(0,), finish=None), p=1)]
    entry = RecordEntry(tokens=tuple(range(7)), values=(0.0,) * 7)
    made = build_events(
        protocol(),
        {c.id: law for c in protocol().configurations},
        "0" * 64,
        mechanisms={c: MechanismLaw(id=h, switch=0, law=tuple(law)) for c, h in HYPOTHESIS.items()},
        replays={"hf17-9": (ReferenceEntry(prefix=(), entry=entry),)},
    )
    seeds = json.dumps(plan_seeds(protocol(), 1_000_000_000)).encode()
    given = {**rendered(), "seeds.json": seeds, "events.json": json.dumps(events_json(made)).encode()}
    study = parse_study({name: given[name] for name in (*AUTHORED, HYPOTHESES)})
    claims = [each.claim.channel for each in study.predictions.predictions]
    assert {channel: claims.count(channel) for channel in claims} == {
        "draws": 12,
        "records": 2,
        "hypothesis": 1,
        "exact": 5,
    }
    assert study.registered("hfx-8") is not None and study.registered("hf17-9") is None
