"""The table of a sweep: what it holds, and that nothing of an engine is left out silently."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prereg.collect.sweep_table import absent, chosen, left_out, load_table, parse_table, uncovered_row
from prereg.errors import UsageError
from prereg.store.layout import harness_root

OFFERED: dict[str, Any] = {
    "settings": ["temperature", "top_k", "use_cache", "max_time", "watermarking_config"],
    "arguments": ["streamer"],
    "processors": ["TemperatureLogitsWarper", "TopKLogitsWarper"],
    "criteria": ["EosTokenCriteria"],
}


def test_what_the_table_knows_is_not_left_out() -> None:
    assert set(left_out(load_table("hf"), OFFERED)) == {"max_time"}


@pytest.mark.parametrize("kind", sorted(OFFERED))
def test_what_the_table_does_not_know_is_listed_by_name(kind: str) -> None:
    offered = {**OFFERED, kind: [*OFFERED[kind], "brand_new"]}
    assert left_out(load_table("hf"), offered)["brand_new"] == "the table does not know it"


def test_a_case_that_the_release_lacks_covers_nothing() -> None:
    table = load_table("hf")
    offered = {**OFFERED, "settings": ["top_k"], "processors": ["TemperatureLogitsWarper"]}
    case = next(case for case in table.cases if case.name == "temperature-low")
    assert absent(case, table, offered) == {"temperature"}
    assert set(left_out(table, offered)) == {"TemperatureLogitsWarper"}


def test_features_under_another_name_are_the_engines_own() -> None:
    table = load_table("hf")
    case = next(case for case in table.cases if case.name == "synthid")
    assert absent(case, table, OFFERED) == set()


def test_an_uncovered_feature_is_a_row_of_its_own() -> None:
    row = uncovered_row("max_time", "by the clock")
    assert (row.case, row.verdict, row.reason) == ("max_time", "NOT_COVERED", "by the clock")


def test_every_case_says_where_its_features_are_documented_and_has_prompts_of_its_letters() -> None:
    table = load_table("hf")
    for case in table.cases:
        assert case.source and case.tries, case.name
        for tried in case.tries:
            letters = tried.letters or "".join(table.model["vocab"][:-1])
            assert set(tried.prompt) <= set(letters), case.name
            assert len(tried.prompt) + tried.horizon <= table.model["context"]


def test_only_takes_names_and_patterns_and_refuses_what_matches_nothing() -> None:
    table = load_table("hf")
    assert [case.name for case in chosen(table, ["plain", "top-?"])] == ["plain", "top-k", "top-p", "top-h"]
    assert chosen(table, []) == table.cases
    with pytest.raises(UsageError, match="no case is called 'topk'"):
        chosen(table, ["plain", "topk"])


BROKEN = {
    "no JSON": b"{",
    "no object": b"[]",
    "an unknown field of a case": {"cases": [{"name": "a", "features": {}, "source": "s", "colour": 1}]},
    "a case without features": {"cases": [{"name": "a", "source": "s"}]},
    "two cases of one name": {"cases": [{"name": "a", "features": {}, "source": "s"}] * 2},
    "an unknown field of a try": {"tries": [{"seed": "1", "colour": 2}]},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_refused(name: str) -> None:
    change = BROKEN[name]
    if not isinstance(change, bytes):
        whole = json.loads((harness_root() / "sweep" / "hf.json").read_bytes())
        change = json.dumps({**whole, **change}).encode()
    with pytest.raises(UsageError):
        parse_table(change, where="table")


def test_there_is_no_table_for_what_is_no_engine() -> None:
    with pytest.raises(UsageError, match="'command'"):
        load_table("command")
