"""A sweep as JUnit XML, for the services that show test results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from prereg.model.sweep import Row
from prereg.report import failing_path

ELEMENTS = {
    "DEPARTS": "failure",
    "CRASHES": "error",
    "BOTH_CRASH": "error",
    "VOID": "error",
    "INCONCLUSIVE": "skipped",
    "NOT_COVERED": "skipped",
}
"""What a verdict is to JUnit; one that is not here passes."""

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have, not even escaped."""


def junit(
    rows: Sequence[Row],
    *,
    build: str,
    engine: str,
    vocabulary: Sequence[str],
    absent: Mapping[str, Sequence[str]],
) -> bytes:
    """One test suite with a test case a row, as UTF-8 XML.

    `absent` are the cases that this release of the engine cannot run, each with the settings that it lacks:
    they are skipped ones.
    """
    kinds = [ELEMENTS.get(row.verdict) for row in rows]
    suites = ElementTree.Element("testsuites", name="prereg sweep")
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=f"{build} ({engine})",
        tests=str(len(rows) + len(absent)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped") + len(absent)),
        time=f"{sum(row.seconds for row in rows):.3f}",
    )
    for row, kind in zip(rows, kinds, strict=True):
        case = _testcase(suite, build, row.case, row.seconds)
        if kind is not None:
            fault = ElementTree.SubElement(case, kind, message=_legal(f"{row.verdict}: {row.reason}"))
            if kind != "skipped":
                fault.set("type", row.verdict)
                fault.text = _legal("\n".join(rests_on(row) + shown_path(row, vocabulary)))
        if row.tried is not None:
            out = ElementTree.SubElement(case, "system-out")
            out.text = _legal("\n".join([f"{row.verdict}: {row.reason}", *rests_on(row)]))
    for name, settings in absent.items():
        lacks = f"not in this release: {', '.join(settings)}"
        ElementTree.SubElement(_testcase(suite, build, name, 0.0), "skipped", message=_legal(lacks))
    ElementTree.indent(suites)
    text: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _testcase(suite: ElementTree.Element, build: str, name: str, seconds: float) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=f"prereg.sweep.{build}", name=_legal(name), time=f"{seconds:.3f}"
    )


def rests_on(row: Row) -> list[str]:
    """What a verdict rests on, a line each."""
    if row.tried is None:
        return []
    tried = row.tried
    told = {name: f"{tv:.3g}" for name, tv in row.activity.items()}
    active = ", ".join(f"{name} {told.get(name, 'not known')}" for name in row.features) or "no feature"
    found = [
        f"model seed {tried.seed}, initializer range {tried.initializer_range:g}, "
        f"prompt {tried.prompt}, horizon {tried.horizon}",
        f"{row.attempts} tries walked, {row.agreeing} equal",
        f"{row.outcomes} outcomes; {row.proposals} tokens proposed, {row.accepted} accepted; "
        f"engine runs {row.runs_off} off, {row.runs_on} on",
        f"active (total variation of plain sampling with and without): {active}",
    ]
    if row.tv_upper is not None:
        found.append(f"total variation of the arms {row.tv_lower:.6g} to {row.tv_upper:.6g}")
    if row.event is not None and row.event_gap is not None:
        found.append(f"largest event {row.event}, on minus off {row.event_gap:+.6g}")
    if row.witness_mass:
        found.append(f"witness mass {row.witness_mass:.6g}")
    return found


def shown_path(row: Row, vocabulary: Sequence[str]) -> list[str]:
    """The shortest failing path in words, a line each; the end token is the last of the vocabulary."""
    if row.failing_path is None:
        return []
    if row.tried is not None and row.tried.letters:
        vocabulary = [*row.tried.letters, vocabulary[-1]]
    return [
        "the shortest failing path:",
        *(f"  {line}" for line in failing_path.lines(row.failing_path, vocabulary)),
    ]


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
