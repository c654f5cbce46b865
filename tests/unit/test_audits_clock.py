"""The auditor reads no clock and reaches no network: what it finds in ten years is what it finds today."""

from __future__ import annotations

import ast
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from audits_kit import failed, look
from audits_seals import MIDDLE, STAMPER, TIME, amend, build, second, stamp
from audits_seals import ROOT as AUTHORITY
from audits_stamped import copied, keys, whole
from audits_tools import ROOT

DECADE = timedelta(days=3653)
CLOCKS = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "localtime", "gmtime"}
"""What reads a clock, as a name of ``datetime``, ``date`` or ``time``."""
NETWORK = {"socket", "ssl", "urllib", "http", "ftplib", "smtplib", "asyncio", "requests", "httpx"}


__all__ = ["keys"]


class Later(datetime):
    """The clock of ten years on."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + DECADE


class Stopped(datetime):
    """No clock at all."""

    @classmethod
    def now(cls, tz: Any = None) -> NoReturn:
        raise AssertionError("it reads the clock")

    utcnow = today = now  # type: ignore[assignment]


def _refuse(*arguments: Any, **options: Any) -> NoReturn:
    raise AssertionError("it reads a clock, or reaches a network")


@contextmanager
def ten_years_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The report says when it was made; nothing else may ask what time it is, or reach anybody."""
    with monkeypatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("audits.") and hasattr(module, "datetime"):
                patch.setattr(module, "datetime", Later if name == "audits.report" else Stopped)
        for name in ("time", "time_ns", "localtime", "gmtime"):
            patch.setattr(time, name, _refuse)
        for name in ("socket", "getaddrinfo"):
            patch.setattr(socket, name, _refuse)
        yield


def _clocks(path: Path) -> list[str]:
    """The expressions of a module that read a clock."""
    tree = ast.parse(path.read_text())
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in CLOCKS
        and isinstance(node.value, ast.Name)
        and node.value.id in {"datetime", "date", "time"}
    ]


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_the_report_alone_reads_a_clock_and_nothing_has_a_network() -> None:
    modules = sorted((ROOT / "audits").glob("*.py"))
    assert {path.name: found for path in modules if (found := _clocks(path))} == {
        "report.py": ["datetime.now"]
    }
    assert {path.name for path in modules if _imports(path) & {"time", "random", *NETWORK}} == set()


def _look(study: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What steps 4 and 6 say of a study with nothing wrong in it, long after its authority is gone."""
    with ten_years_on(monkeypatch):
        outcome = look(study)
        made = datetime.fromisoformat(outcome.value()["audited_at"])
    assert failed(outcome) == {}
    assert all(one.certificate.not_valid_after_utc < made for one in (AUTHORITY, MIDDLE, STAMPER))
    return f"{outcome.steps[4].detail()}; {outcome.steps[6].detail()}"


def test_time_stamps_of_seals_verify_ten_years_on_and_offline(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = second(timestamp={"roots": "roots.pem"})
    study = build(tmp_path, keys, plan, stamp(), amend(), stamp())
    assert _look(study.folder, monkeypatch).count("timestamp verified") == 2


def test_a_stamp_of_a_head_saves_a_signature_ten_years_on(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = copied(whole(tmp_path, keys), tmp_path / "copy", keys)
    study.revoke("rev")
    assert study.failing()
    study.stamp("audit")
    assert "stamped 2026-11-29T12:00:00+00:00" in _look(study.study, monkeypatch)


def test_an_authority_that_was_expired_when_it_stamped_is_refused_for_ever(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = TIME + timedelta(days=3001)
    plan = second(timestamp={"roots": "roots.pem"}, upto="sealed")
    study = build(tmp_path, keys, plan, stamp(lambda one: one.with_(time=late), time=late.isoformat()))
    with ten_years_on(monkeypatch):
        found = failed(look(study.folder))
    assert set(found) == {4} and "is not valid at 2035" in found[4]
