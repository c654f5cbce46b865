"""Leaf lines and the meta of a tree: each rule of section 14 that step 7 checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from audits_kit import drop, put
from audits_laws import FILES, LEAF, READER, SEAL, leaf_lines, read, unit
from audits_slow import CRASH, B, Json, canon
from audits_tools import machine
from audits_trees import ON, failing, off, on, tree

from audits.fault import Fault
from audits.leaves import LeafReader

LINES, META = FILES


def refused(lines: list[Json], meta: Json | None = None, arm: str = "on", draws: int | None = None) -> Fault:
    """The fault that reading these lines raises."""
    said = {"draws": len(lines) if draws is None else draws, "tree": on()["meta"] if meta is None else meta}
    with pytest.raises(Fault) as caught:
        READER.tree(unit(arm), b"".join(map(machine, lines)), said, FILES)
    return caught.value


def test_a_tree_is_read_as_it_was_written() -> None:
    written = on(closed_at=(1,), filled_at=(0, 1))
    found = read(written)
    assert found.meta == written["meta"]
    for leaf, line in zip(found.leaves, written["leaves"], strict=True):
        assert (leaf.choices, leaf.kinds, leaf.p) == (line["choices"], line["kinds"], line["p"])
        assert (leaf.outcome, leaf.counters) == (canon(line["outcome"]), line["counters"])
        assert (leaf.closed, leaf.filled) == (line["closed"], line["filled"])
        assert all(isinstance(p, float) for p in leaf.p)
    assert [leaf.weight for leaf in found.leaves[:2]] == [0.5 * (2 / 3), 0.5 * (1 / 3)]


def test_the_weight_is_multiplied_from_the_left() -> None:
    third = tree([([0, 0, 0], "ttt", [0.1, 0.7, 0.3], B)], unexplored=0.979)
    assert read(third).leaves[0].weight == (0.1 * 0.7) * 0.3 != 0.1 * (0.7 * 0.3)
    assert read(tree([([], "", [], B)])).leaves[0].weight == 1.0


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another seal": (put(2, "seal", to="0" * 64), f"{LINES} line 3#/seal"),
    "another unit": (put(2, "unit", to="x.c.off"), f"{LINES} line 3#/unit"),
    "another shard": (put(2, "shard", to=1), f"{LINES} line 3#/shard"),
    "a second attempt": (put(2, "attempt", to=2), f"{LINES} line 3#/attempt"),
    "another number": (put(2, "leaf", to=3), f"{LINES} line 3#/leaf"),
    "a leaf twice": (lambda v: v.insert(2, v[1]), f"{LINES} line 3#/leaf"),
    "a leaf twice, numbered": (lambda v: v.insert(2, v[1] | {"leaf": 2}), f"{LINES} line 3#/choices"),
    "choices out of order": (
        lambda v: v[1].update({k: v[2][k] for k in ("choices", "kinds", "p")})
        or v[2].update(choices=[1, 0, 3, 0], kinds="datt", p=[0.5, 1, 1 / 3, 1]),
        f"{LINES} line 3#/choices",
    ),
    "an extension before its list": (
        lambda v: v[1].update(choices=[1, 0], kinds="da", p=[0.5, 1]), f"{LINES} line 2#/choices",
    ),
    "a choice too many": (put(1, "choices", to=[1, 0, 3, 0, 0]), f"{LINES} line 2#/choices"),
    "a kind too few": (put(1, "kinds", to="dat"), f"{LINES} line 2#/choices"),
    "a probability too few": (put(1, "p", to=[0.5, 1, 1 / 3]), f"{LINES} line 2#/choices"),
    "an acceptance of index 2": (put(4, "choices", 1, to=2), f"{LINES} line 5#/choices/1"),
    "a kind of no name": (put(1, "kinds", to="datx"), f"{LINES} line 2#/kinds"),
    "a probability of 0": (put(1, "p", 0, to=0), f"{LINES} line 2#/p/0"),
    "a probability above 1": (put(1, "p", 0, to=1.5), f"{LINES} line 2#/p/0"),
    "a probability below 0": (put(1, "p", 0, to=-0.5), f"{LINES} line 2#/p/0"),
    "a probability as text": (put(1, "p", 0, to="0.5"), f"{LINES} line 2#/p/0"),
    "a negative choice": (put(1, "choices", 0, to=-1), f"{LINES} line 2#/choices/0"),
    "a value as outcome": (put(1, "outcome", to={"value": 1}), f"{LINES} line 2#/outcome"),
    "no outcome": (drop(1, "outcome"), f"{LINES} line 2"),
    "a seed": (put(1, "seed", to="7"), f"{LINES} line 2#/seed"),
    "a short digest": (put(1, "digest", to="d" * 31), f"{LINES} line 2#/digest"),
    "closed as a number": (put(1, "closed", to=1), f"{LINES} line 2#/closed"),
    "more accepted than proposed": (put(1, "counters", "accepted", to=3), "line 2#/counters/accepted"),
    "more verifications than proposals": (
        put(1, "counters", "verifications", to=3), "line 2#/counters/verifications",
    ),
    "a negative counter": (put(1, "counters", "proposals", to=-1), "line 2#/counters/proposals"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_line_that_is_wrong_is_named(name: str) -> None:
    edit, says = WRONG[name]
    lines = copy.deepcopy(leaf_lines(on()))
    edit(lines)
    assert says in str(refused(lines)), str(refused(lines))


def test_proposals_where_nothing_proposes() -> None:
    lines = leaf_lines(on(), "off")
    assert "line 1#/counters" in str(refused(lines, arm="off"))


def test_lines_are_canonical_and_whole() -> None:
    lines = b"".join(map(machine, leaf_lines(on())))
    said = {"draws": 5, "tree": on()["meta"]}
    for bad in (
        lines[:-1],
        lines.replace(b'{"attempt"', b'{ "attempt"', 1),
        lines.replace(b"0.5", b"0.50", 1),
    ):
        with pytest.raises(Fault) as caught:
            READER.tree(unit(), bad, said, FILES)
        assert caught.value.file.startswith(LINES)


def test_as_many_leaves_as_the_meta_says() -> None:
    assert str(refused(leaf_lines(on()), draws=4)).startswith(f"{META}#/draws: is 4; there are 5")


def contradicting(written: Json, **closed: Any) -> Json:
    written["meta"]["admission"]["closed"].update(closed)
    return written


REFILLED = "/tree/admission/refill/eligible"


CONTRADICTIONS: dict[str, tuple[Json, str]] = {
    **{
        f"{name} differs and is well": (on(**failing(name, ok=True)), f"/tree/admission/{name}/ok")
        for name in ("walk", "replay", "refill", "closed", "randomness", "interference")
    },
    **{
        f"{name} is not well and does not differ": (
            on(**{name: {"ok": False}}), f"/tree/admission/{name}/ok",
        )
        for name in ("walk", "replay", "refill", "closed", "randomness", "interference")
    },
    "a closed leaf of a tree that was reopened": (
        contradicting(on(closed_at=(1,)), reopened=True), "/tree/admission/closed/reopened",
    ),
    "a closed leaf that is not counted": (
        contradicting(on(closed_at=(1,)), closed=0), "/tree/admission/closed/closed",
    ),
    "a closed leaf too many counted": (contradicting(on(), closed=1), "/tree/admission/closed/closed"),
    "a leaf with rows filled that is not counted": (
        on(filled_at=(1, 3), refill={"eligible": 1}), REFILLED,
    ),
    "a leaf without rows filled that is counted": (on(refill={"eligible": 1}), REFILLED),
    "a closed leaf with rows filled that is counted": (
        on(closed_at=(1,), filled_at=(1, 3), refill={"eligible": 2}), REFILLED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_meta_that_contradicts_itself_or_the_leaves(name: str) -> None:
    written, pointer = CONTRADICTIONS[name]
    assert str(refused(leaf_lines(written), written["meta"])).startswith(f"{META}#{pointer}")


def test_a_tree_that_was_reopened_may_have_differed() -> None:
    """What was looked at before it was reopened is still told."""
    written = on(**failing("closed", checked=3, reopened=True))
    assert read(written).meta["admission"]["closed"]["closed"] == 0


@pytest.mark.parametrize(
    "outcome", [CRASH, {"tokens": [], "finish": 'x},"p":[1],"seal":"'}, {"crash": "]}{,"}]
)
def test_outcomes_that_look_like_the_rest_of_a_line(outcome: Json) -> None:
    written = tree([(*ON[0][:3], outcome), *ON[1:]])
    assert read(written).leaves[0].outcome == canon(outcome)


def test_every_canonical_line_is_read_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*_: object) -> None:
        raise AssertionError("a slow look at a line that is well")

    monkeypatch.setattr(LeafReader, "_slowly", slowly)
    for written in (
        off(),
        on(),
        on(closed_at=(0, 3)),
        tree([([], "", [], CRASH)]),
        tree([([9], "t", [1e-7], B)]),
    ):
        arm = "off" if written == off() else "on"
        assert len(read(written, arm).leaves) == len(written["leaves"])


def test_a_choice_beyond_what_is_read_quickly() -> None:
    far = 2**53 - 1
    assert read(tree([([far], "t", [0.5], B)], unexplored=0.5)).leaves[0].choices == [far]
    lines = leaf_lines(tree([([2**53], "t", [0.5], B)]))
    text = b"".join(line.replace(b"9007199254740991", b"9007199254740992") for line in map(machine, [
        lines[0] | {"choices": [far]},
    ]))  # fmt: skip
    with pytest.raises(Fault, match="beyond 2"):
        READER.tree(unit(), text, {"draws": 1, "tree": on()["meta"]}, FILES)


def test_the_lines_here_are_of_the_schema() -> None:
    for line in leaf_lines(on()):
        assert line["seal"] == SEAL
        assert LEAF.first_wrong(line) is None
