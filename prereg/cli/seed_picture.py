"""A picture of seed blocks: bars on a terminal, or a PNG.

Seeds lie far apart, so the axis shows only where something lies: gaps are left out, and marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.store.seed_map import StudySeeds, low, union

Intervals = Sequence[tuple[int, int]]

GAP, USED, RESERVED, NOTHING = "┊", "█", "▒", " "
MOST = 12
"""Regions of an axis at most; the nearest ones are drawn as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Where something lies, in order; each region has a number of columns."""

    regions: tuple[tuple[int, int], ...]
    columns: tuple[int, ...]

    def row(self, reserved: Intervals, used: Intervals) -> str:
        """One study on this axis, a character a column; a column shows the most that lies in it."""
        return GAP.join(
            "".join(self._cell(region, columns, i, reserved, used) for i in range(columns))
            for region, columns in zip(self.regions, self.columns, strict=True)
        )

    def place(self, seed: int) -> float:
        """Where a seed lies, in columns from the left, a column for each gap."""
        left = 0.0
        for (first, end), columns in zip(self.regions, self.columns, strict=True):
            if seed <= end:
                return left + columns * max(0, seed - first) / (end - first)
            left += columns + 1
        return left - 1

    @staticmethod
    def _cell(region: tuple[int, int], columns: int, i: int, reserved: Intervals, used: Intervals) -> str:
        first, end = region
        left = first + (end - first) * i // columns
        right = max(left + 1, first + (end - first) * (i + 1) // columns)
        if any(a < right and left < b for a, b in used):
            return USED
        return RESERVED if any(a < right and left < b for a, b in reserved) else NOTHING


def axis_of(intervals: Intervals, width: int) -> Axis:
    """An axis of about `width` columns over everything that lies in `intervals`."""
    regions = union(intervals)
    while len(regions) > MOST:
        near = min(range(1, len(regions)), key=lambda i: regions[i][0] - regions[i - 1][1])
        regions[near - 1 : near + 1] = [(regions[near - 1][0], regions[near][1])]
    total = sum(end - first for first, end in regions)
    columns = tuple(max(1, round(width * (end - first) / total)) for first, end in regions)
    return Axis(regions=tuple(regions), columns=columns)


def spans_of(study: StudySeeds, *, bits: int) -> tuple[Intervals, Intervals]:
    """What a study reserves and used, at full width or in the low 32 bits."""
    reserved = [(b.first, b.end) for b in study.blocks]
    return (union(reserved), study.used) if bits == 64 else (low(reserved), low(study.used))


def bars(studies: Sequence[StudySeeds], *, bits: int, width: int) -> list[str]:
    """Lines of text: one a study, and under them where each region of the axis begins and ends."""
    spans = {s.study: spans_of(s, bits=bits) for s in studies}
    everything = [piece for reserved, used in spans.values() for piece in (*reserved, *used)]
    if not everything:
        return []
    axis = axis_of(everything, width)
    margin = max(len(name) for name in spans)
    lines = [f"{name:<{margin}} {axis.row(*both)}" for name, both in spans.items()]
    told = f" {GAP} ".join(f"{first} to {end}" for first, end in axis.regions)
    return [*lines, f"{'':<{margin}} {told}"]


def draw(studies: Sequence[StudySeeds], file: Path) -> None:
    """Write the picture as PNG: both widths, a row a study, a colour a role; used seeds are filled."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    roles = sorted({b.role for s in studies for b in s.blocks})
    colours = {role: f"C{i % 10}" for i, role in enumerate(roles)}
    figure: Any = Figure(figsize=(12, 2.4 + 1.0 * max(1, len(studies))), layout="constrained")
    for axes, bits, title in zip(
        figure.subplots(2, 1), (64, 32), ("at full width", "in the low 32 bits"), strict=True
    ):
        _panel(axes, studies, bits, colours)
        axes.set_title(f"Seeds {title}; gaps are left out", loc="left", fontsize=10)
    for role in roles:
        figure.axes[0].plot([], [], color=colours[role], linewidth=6, label=role)
    if roles:
        figure.legend(loc="outside lower center", ncols=min(6, len(roles)), frameon=False)
    figure.savefig(file, format="png", dpi=120, metadata={"Software": None})


def _panel(axes: Any, studies: Sequence[StudySeeds], bits: int, colours: dict[str, str]) -> None:
    everything = [p for s in studies for both in spans_of(s, bits=bits) for p in both]
    if not everything:
        return
    axis = axis_of(everything, 100)

    def bar(row: int, first: int, end: int, **look: Any) -> None:
        left = axis.place(first)
        axes.broken_barh([(left, max(0.15, axis.place(end) - left))], (row - 0.35, 0.7), **look)

    for row, study in enumerate(studies):
        for block in study.blocks:
            colour = colours[block.role]
            pieces = [(block.first, block.end)] if bits == 64 else low([(block.first, block.end)])
            for first, end in pieces:
                bar(row, first, end, facecolor=colour, edgecolor=colour, alpha=0.35)
        for first, end in spans_of(study, bits=bits)[1]:
            bar(row, first, end, facecolor="none", edgecolor="black", hatch="////", linewidth=0.6)
    axes.set_yticks(range(len(studies)), [s.study for s in studies])
    axes.set_ylim(len(studies) - 0.5, -0.5)
    axes.set_xticks(
        [axis.place(first) for first, _ in axis.regions],
        [str(first) for first, _ in axis.regions],
        rotation=20,
        ha="right",
        fontsize=7,
    )
