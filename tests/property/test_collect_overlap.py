"""The sweep over seed blocks against the definition: two sets of seeds with a common member."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prereg.codec.overlap import Span, folded, overlaps

small = st.tuples(st.integers(0, 200), st.integers(0, 40)).map(lambda t: (t[0], t[0] + t[1]))


@given(small, st.integers(1, 6))
def test_folding_keeps_exactly_the_low_bits(interval: tuple[int, int], bits: int) -> None:
    first, end = interval
    pieces = folded(first, end, bits=bits)
    got = [seed for piece in pieces for seed in range(*piece)]
    assert sorted(got) == sorted({seed % (1 << bits) for seed in range(first, end)})


@given(st.lists(st.tuples(st.sampled_from("abc"), small), max_size=12), st.booleans())
def test_the_sweep_finds_the_pairs_that_share_a_seed(
    raw: list[tuple[str, tuple[int, int]]], within: bool
) -> None:
    # Every second block lies 2^32 further up, so that many pairs meet in their low bits alone.
    spans = []
    for i, (study, (first, end)) in enumerate(raw):
        up = (i % 2) << 32
        spans.append(Span(study=study, block=f"b{i}", first=first + up, end=end + up))
    expected = {}
    for i, a in enumerate(spans):
        for b in spans[i + 1 :]:
            if a.study == b.study and not within:
                continue
            pair = frozenset({(a.study, a.block), (b.study, b.block)})
            if set(range(a.first, a.end)) & set(range(b.first, b.end)):
                expected[pair] = 64
            elif {s % 2**32 for s in range(a.first, a.end)} & {s % 2**32 for s in range(b.first, b.end)}:
                expected[pair] = 32
    got = {
        frozenset({(o.study_a, o.block_a), (o.study_b, o.block_b)}): o.width
        for o in overlaps(spans, within=within)
    }
    assert got == expected


def test_blocks_that_touch_do_not_overlap() -> None:
    spans = [Span(study="a", block="x", first=5, end=10), Span(study="b", block="y", first=10, end=12)]
    assert overlaps(spans) == []


def test_the_low_bits_wrap() -> None:
    spans = [
        Span(study="a", block="x", first=2**32 - 2, end=2**32 + 3),
        Span(study="b", block="y", first=7 * 2**32 + 1, end=7 * 2**32 + 9),
    ]
    (found,) = overlaps(spans)
    assert (found.first, found.end, found.width) == (1, 3, 32)
    assert "block x of study a and block y of study b share the seeds [1, 3) in the low 32 bits" in str(found)


def test_a_block_in_two_spans_does_not_overlap_itself() -> None:
    spans = [
        Span(study="a", block="x", first=0, end=10),
        Span(study="a", block="x", first=0, end=4),
        Span(study="b", block="y", first=3, end=5),
    ]
    assert len(overlaps(spans, within=True)) == 1
