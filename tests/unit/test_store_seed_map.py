"""`prereg seeds show`: what each study reserves and used, and its picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prereg.cli.seed_picture import GAP, axis_of, bars, draw, spans_of
from prereg.cli.seeds import show_seeds
from prereg.errors import PreregError
from prereg.store.layout import StudyPaths
from prereg.store.seed_map import Block, StudySeeds, low, seed_map, union
from tests.unit.study_fixture import make_study

TOP = 2**64


def of(name: str, *blocks: tuple[int, int], used: tuple[tuple[int, int], ...] = ()) -> StudySeeds:
    return StudySeeds(
        study=name,
        draft=False,
        understood=True,
        blocks=tuple(
            Block(id=f"b{i}", role="pilot" if i else "discovery", unit="u", first=a, end=b, used=0)
            for i, (a, b) in enumerate(blocks)
        ),
        used=used,
    )


def test_a_map_tells_blocks_roles_units_and_what_was_used(collected: StudyPaths) -> None:
    make_study(collected.repository.parent, study="later", first_seed=TOP - 24)
    broken = collected.studies / "broken"
    broken.mkdir()
    (broken / "seeds.json").write_text("{}")
    first, coin, later = seed_map(collected.studies)
    assert (first.study, first.draft, first.understood, first.blocks) == ("broken", True, False, ())
    assert (coin.study, coin.draft, coin.used) == ("coin", False, ((5000, 5024),))
    assert coin.blocks[1] == Block(
        id="main-fair-new", role="discovery", unit="main.fair.new", first=5006, end=5012, used=6
    )
    assert (later.draft, later.used, later.blocks[-1].end) == (True, (), TOP)


def test_seeds_that_cannot_be_told_are_an_error_in_a_sealed_study(collected: StudyPaths) -> None:
    (collected.root / "seeds.json").write_text("{}")
    with pytest.raises(PreregError, match="not understood"):
        seed_map(collected.studies)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(3, 5), (1, 3), (9, 9), (4, 6)], [(1, 6)]),
        ([(1, 2), (3, 4)], [(1, 2), (3, 4)]),
        ([], []),
    ],
)
def test_union(intervals: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    assert union(intervals) == expected


def test_low_bits_wrap_around() -> None:
    assert low([(2**32 - 2, 2**32 + 3)]) == [(0, 3), (2**32 - 2, 2**32)]
    assert low([(TOP - 1, TOP)]) == [(2**32 - 1, 2**32)]


def test_bars_leave_gaps_out_and_show_the_most_that_lies_in_a_column() -> None:
    one = of("one", (0, 10), used=((0, 5),))
    two = of("second", (10, 20), (TOP - 20, TOP), used=())
    lines = bars([one, two], bits=64, width=40)
    assert lines == [
        f"one    █████▒▒▒▒▒{' ' * 10}{GAP}{' ' * 20}",
        f"second {' ' * 10}{'▒' * 10}{GAP}{'▒' * 20}",
        f"       0 to 20 {GAP} {TOP - 20} to {TOP}",
    ]
    assert bars([one, two], bits=32, width=40)[1].endswith("▒" * 20)
    assert bars([of("none")], bits=64, width=40) == []


def test_a_small_block_beside_a_large_one_still_shows() -> None:
    lines = bars([of("large", (0, 10**9)), of("small", (10**12, 10**12 + 1))], bits=64, width=30)
    assert lines[1].rstrip().endswith("▒")


def test_an_axis_of_many_regions_draws_the_nearest_as_one() -> None:
    axis = axis_of([(i * 100, i * 100 + 10 - (i == 7)) for i in range(30)], 60)
    assert len(axis.regions) == 12
    assert (axis.regions[0][0], axis.regions[-1][1]) == (0, 2910)
    places = [axis.place(seed) for seed in range(0, 2911, 10)]
    assert places == sorted(places)


def test_reserved_and_used_are_drawn(tmp_path: Path) -> None:
    draw([of("one", (0, 10), (TOP - 5, TOP), used=((0, 5),)), of("none")], tmp_path / "a.png")
    draw([], tmp_path / "b.png")
    for name in ("a.png", "b.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert spans_of(of("x", (2**32, 2**32 + 4)), bits=32) == ([(0, 4)], [])


def test_the_command_tells_programs_seeds_as_text(
    collected: StudyPaths, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    show_seeds(collected.studies, png=tmp_path / "x.png", as_json=True)
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    (study,) = value["studies"]
    assert study["used"] == {"full": [["5000", "5024"]], "low": [["5000", "5024"]]}
    assert study["blocks"][0] == {
        "id": "main-fair-old",
        "role": "discovery",
        "unit": "main.fair.old",
        "first": "5000",
        "end": "5006",
        "low": [["5000", "5006"]],
        "used": 6,
    }
    assert (tmp_path / "x.png").exists()
    show_seeds(collected.studies)
    shown = capsys.readouterr().err
    assert "the same" in shown and "coin ████" in shown
