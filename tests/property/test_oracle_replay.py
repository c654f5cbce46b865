"""Replay gives one entry for each prefix at which sequential decoding still draws, and for no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from test_oracle_twins import Table, kernels

from harness.adapters.base import Prefix
from harness.oracle import naive, replay
from harness.wire import UNSUPPORTED, JobError


class Documented(Table):
    """The same kernel, whose documented entry after a prefix says which prefix that was."""

    def records(self, prefixes: Sequence[Prefix]) -> list[dict[str, Any]]:
        return [{"tokens": list(range(len(prefix))), "values": list(prefix)} for prefix in prefixes]


@given(kernels())
def test_exactly_the_prefixes_of_outcomes_have_an_entry(kernel: Table) -> None:
    documented = Documented(kernel.weights, kernel.ends, kernel.horizon)
    found = list(replay.references(documented))
    paths = [tuple(outcome["tokens"]) for outcome, _ in naive.law(kernel)]
    expected = {path[:length] for path in paths for length in range(len(path))}
    assert [prefix for prefix, _ in found] == sorted(expected, key=lambda prefix: (len(prefix), prefix))
    assert found[0][0] == ()
    assert all(entry["values"] == list(prefix) for prefix, entry in found)


def test_a_kernel_without_a_documented_record_is_refused() -> None:
    with pytest.raises(JobError, match="Table has no records") as caught:
        list(replay.references(Table([[1]], set(), 1)))
    assert caught.value.code == UNSUPPORTED
