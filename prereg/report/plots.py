"""Plots as inline SVG: no script, no font file, no address, and colours from the page's own style sheet.

matplotlib draws with stand-in colours that are then replaced by the style sheet's variables, so that one
drawing serves the light page, the dark page and print. The same decisions give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prereg.model.law import Event
from prereg.model.verdict import BoundRow, Decision
from prereg.report import words
from prereg.report.exact_rows import Bar
from prereg.stats.gap import gap_of

INK, FAINT, OFF, ON, LAW, LIMIT = "#010201", "#010202", "#010203", "#010204", "#010205", "#010206"
VARIABLES = {INK: "ink", FAINT: "line", OFF: "off", ON: "on", LAW: "law", LIMIT: "limit"}
SHOWN = 8
"""Events of the family that a configuration's plot shows."""

_REJECTS = ("FAILS", "DIFFERS")
_MARKS = {"FAILS": ("o", LIMIT), "DIFFERS": ("o", LIMIT), "NOT_REJECTED": ("D", ON)}
"""How D is marked where the verdict rests on it; other verdicts do not use it."""


def plain(text: str, size: int = 34) -> str:
    """A label that any font can draw: ASCII, no control characters, at most `size` characters."""
    flat = text.replace("≥", ">=").replace("“", '"').replace("”", '"')
    flat = flat.encode("ascii", "backslashreplace").decode()
    flat = "".join(ch if ch.isprintable() else "?" for ch in flat)
    return flat if len(flat) <= size else flat[: size - 3] + "..."


def gap_plot(decisions: Sequence[Decision], threshold: float) -> str:
    """D of every configuration against the threshold."""

    def draw(axes: Any) -> None:
        for y, decision in enumerate(decisions):
            gap = decision.D
            if gap is None:
                place = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
                axes.annotate("no value: a unit was lost", (threshold, y), color=INK, **place)
                continue
            mark, color = _MARKS.get(decision.verdict, ("s", OFF))
            axes.plot([threshold, gap], [y, y], color=color, linewidth=2)
            axes.plot([gap], [y], mark, color=color, markersize=6)
        axes.axvline(threshold, color=LIMIT, linewidth=1, linestyle=(0, (4, 3)))
        _rows(axes, [f"{plain(d.id)}  {d.verdict}" for d in decisions])
        axes.set_xlabel(f"D, a lower bound on the distance between the arms; threshold {threshold:g}")

    return _svg("gaps", len(decisions), draw)


def event_plot(decision: Decision, events: Sequence[Event], threshold: float) -> str:
    """The events with the largest gaps: bounds of both arms, and of the gap between them.

    `events` are the family's listed events; the decision must have bounds.
    """
    shown = largest(decision.bounds)
    kinds = {e.id: e for e in events}

    def draw(arms: Any, gaps: Any) -> None:
        for y, (row, complement) in enumerate(shown):
            for low, high, k, n, shift, color, mark in (
                (row.L_off, row.U_off, row.k_off, decision.draws.off, -0.17, OFF, "o"),
                (row.L_on, row.U_on, row.k_on, decision.draws.on, 0.17, ON, "D"),
            ):
                ends = (1 - high, 1 - low) if complement else (low, high)
                arms.plot(ends, [y + shift] * 2, color=color, linewidth=2, marker="|", markersize=5)
                if n:
                    rate = 1 - k / n if complement else k / n
                    arms.plot([rate], [y + shift], mark, color=color, markersize=4)
            if row.p is not None:
                p = 1 - row.p if complement else row.p
                arms.plot([p, p], [y - 0.38, y + 0.38], color=LAW, linewidth=1)
            low, high = gap_of(row, complement), -gap_of(row, not complement)
            color = LIMIT if low > threshold and decision.verdict in _REJECTS else INK
            gaps.plot([low, high], [y, y], color=color, linewidth=2, marker="|", markersize=7)
        arms.set_xlim(-0.03, 1.03)
        gaps.axvline(threshold, color=LIMIT, linewidth=1, linestyle=(0, (4, 3)))
        gaps.axvline(0, color=INK, linewidth=0.8)
        _rows(arms, [plain(words.event(kinds[row.event], complement)) for row, complement in shown])
        arms.set_xlabel("probability in each arm")
        gaps.set_xlabel("test arm minus reference arm")

    return _svg(f"events-{decision.id}", len(shown), draw, gap=0.36, panels=2)


def law_plot(name: str, bars: Sequence[Bar], slack: tuple[float, float]) -> str:
    """The laws of both arms over the heaviest outcomes; thin lines are what unexplored mass could add.

    `slack` is the unexplored mass of the off and the on arm.
    """

    def draw(axes: Any) -> None:
        for y, bar in enumerate(bars):
            for mass, rest, shift, color in (
                (bar.off, slack[0], -0.2, OFF),
                (bar.on, slack[1], 0.2, ON),
            ):
                axes.barh([y + shift], [mass], height=0.36, color=color)
                if rest > 0:
                    axes.plot([mass, min(1.0, mass + rest)], [y + shift] * 2, color=color, linewidth=1)
            if bar.p is not None:
                axes.plot([bar.p, bar.p], [y - 0.42, y + 0.42], color=LAW, linewidth=1)
        axes.set_xlim(left=0)
        _rows(axes, [plain(bar.label) for bar in bars])
        axes.set_xlabel("probability")

    return _svg(f"laws-{name}", len(bars), draw, gap=0.36)


def largest(rows: Sequence[BoundRow]) -> list[tuple[BoundRow, bool]]:
    """The SHOWN events with the largest gap, each on the side where it is larger; True marks a complement.

    Events that happened in no draw of either arm, or in every one, come last: they have nothing to show.
    """
    sides = [(row, gap_of(row, True) > gap_of(row)) for row in rows]
    return sorted(sides, key=lambda side: (_idle(side[0]), -gap_of(*side)))[:SHOWN]


def _idle(row: BoundRow) -> bool:
    return row.k_off == row.k_on == 0 or (row.U_off == 1 and row.U_on == 1)


def _rows(axes: Any, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_ylim(len(labels) - 0.4, -0.6)


def _svg(name: str, rows: int, draw: Callable[..., None], gap: float = 0.3, panels: int = 1) -> str:
    """Draw one figure of `rows` rows, with `panels` side by side, and make it fit for the page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Mapping[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.unicode_minus": True,
        "xtick.color": INK,
        "ytick.color": INK,
        "ytick.major.size": 0,
        "text.color": INK,
        "grid.color": FAINT,
    }
    with matplotlib.rc_context(dict(style)):
        figure = Figure(figsize=(6.4, 0.75 + gap * max(rows, 1)), layout="constrained")
        FigureCanvasSVG(figure)
        every = figure.subplots(1, panels, squeeze=False, sharey=True)[0]
        for axes in every:
            axes.set_axisbelow(True)
            axes.grid(axis="x", linewidth=0.6)
            axes.ticklabel_format(axis="x", style="plain", useOffset=False)
            axes.locator_params(axis="x", nbins=5)
        draw(*every)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return fit(out.getvalue(), name)


def fit(svg: str, name: str) -> str:
    """An SVG file as an inline element: scalable, with its own ids and the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'^<svg[^>]*viewBox="([^"]*)"[^>]*>', _opening, svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(xlink:href="|url\()#', rf"\1#{name}-", svg).replace("xlink:href", "href")
    for stand_in, variable in VARIABLES.items():
        svg = svg.replace(stand_in, f"var(--{variable})")
    return svg.strip()


def _opening(match: re.Match[str]) -> str:
    return f'<svg viewBox="{match[1]}" role="img" aria-hidden="true">'
