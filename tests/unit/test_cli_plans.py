"""The verbs that change plans, by their functions: what they print for programs, and what status tells."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.cli import ready
from prereg.cli.amend import amend
from prereg.cli.analyse import analyse
from prereg.cli.close import close
from prereg.cli.deviate import deviate
from prereg.cli.diff import diff
from prereg.cli.next_step import typed
from prereg.cli.push import push
from prereg.cli.relocate import relocate
from prereg.cli.seal import seal
from prereg.cli.seeds import plan_seeds
from prereg.cli.signing import actor
from prereg.cli.status import status
from prereg.errors import UsageError, VerificationFailed, WrongState
from prereg.seal import push as pushing
from prereg.store.layout import StudyPaths
from tests.unit.second_study import (
    edit,
    make_second,
    second,
    second_collected,
    second_collected_once,
    second_once,
)
from tests.unit.study_fixture import ENVIRONMENTS, fabricate_records, git, make_study

__all__ = ["second", "second_collected", "second_collected_once", "second_once"]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], dict[str, Any]]:
    """The JSON object that a verb printed since the last call."""
    return lambda: json.loads(capsys.readouterr().out)


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the coin is a fixed digest: these studies never run."""

    def prepare(
        paths: StudyPaths, _: Path, key: str, principal: str | None, *, quiet: bool, **_more: object
    ) -> ready.Ready:
        assert quiet
        edition = json.loads((paths.root / "protocol.json").read_bytes()).get("edition", 1)
        who = actor(paths, key, principal, draft=True)
        return ready.Ready(who=who, edition=edition, environments=ENVIRONMENTS, images=None)

    monkeypatch.setattr(ready, "prepare", prepare)


def key(paths: StudyPaths, who: str = "ada") -> str:
    return str(paths.repository.parent / "keys" / who)


def bare(paths: StudyPaths) -> Path:
    place = paths.repository.parent / "bare.git"
    git(paths.repository, "init", "-q", "--bare", "-b", "main", str(place))
    git(paths.repository, "remote", "add", "origin", str(place))
    return place


def test_a_plan_is_amended_told_of_pushed_and_closed(
    second: StudyPaths, said: Callable[[], dict[str, Any]]
) -> None:
    edit(second, lambda protocol: protocol.update(title="Another"))
    amend(second.root, reason="Better.", key=key(second), as_json=True)
    made = said()
    assert (made["study"], made["author"]) == ("coin", "ada@example.org")
    deviate(second.root, key=key(second, "col"), text="Said.", about=["fair"], as_json=True)
    assert said()["about"] == ["fair"]
    place = bare(second)
    push(second.root, key=key(second), as_json=True)
    sent = said()
    assert (sent["remote"], sent["tags"]) == (str(place), ["prereg/coin/amended-1", "prereg/coin/sealed"])
    close(second.root, reason="Enough.", unfinished=True, key=key(second), as_json=True)
    assert said()["state"] == "closed"
    status(second.root, as_json=True)
    told = said()
    assert (told["state"], told["seal"], told["amended"]) == ("closed", made["seal"], [made["amends"]])
    assert told["next"] == f"prereg report {second.root}"
    (deviation,) = told["deviations"]
    assert (deviation["entry"], deviation["actor"], deviation["text"]) == (3, "col@example.org", "Said.")
    assert (told["pushed"]["remote"], told["closed"]) == (str(place), "Enough.")


def test_what_changed_since_an_amendment_is_taken_back_from_its_tag(second: StudyPaths) -> None:
    notes = second.root / "NOTES.md"
    notes.write_text("Amended.")
    with pytest.raises(VerificationFailed) as caught:
        diff(second.root, as_json=True)
    meant = f"; if the change is meant: prereg amend {second.root} --reason WHY"
    assert caught.value.next_step == f"git checkout prereg/coin/sealed -- {notes}{meant}"
    amend(second.root, reason="Better.", key=key(second), as_json=True)
    notes.write_text("x")
    with pytest.raises(VerificationFailed) as caught:
        diff(second.root, as_json=True)
    assert caught.value.next_step == f"git checkout prereg/coin/amended-1 -- {notes}{meant}"


@pytest.mark.parametrize(("edition", "verb"), [(2, "deviate"), (1, None)])
def test_after_data_a_difference_is_told_where_the_edition_can(
    second_collected: StudyPaths, edition: int, verb: str | None
) -> None:
    if edition == 1:
        edit(second_collected, lambda protocol: protocol.pop("edition"))
    (second_collected.root / "coin.py").write_text("other")
    with pytest.raises(VerificationFailed) as caught:
        diff(second_collected.root, as_json=True)
    step = typed(caught.value.next_step or "", second_collected.root)
    told = f"prereg deviate {second_collected.root} --key KEY --text WHAT"
    assert step.startswith("git checkout prereg/coin/sealed -- ")
    assert (told in step) == (verb == "deviate") and "amend" not in step


def test_status_tells_people_of_a_deviation(second: StudyPaths, capsys: pytest.CaptureFixture[str]) -> None:
    deviate(second.root, key=key(second), text="Another [host].", about=["fair"])
    capsys.readouterr()
    status(second.root)
    shown = capsys.readouterr().err
    assert "DEVIATION" in shown and "ada@example.org (fair): Another [host]." in shown


def test_the_text_of_a_deviation_comes_from_one_place(
    second: StudyPaths, said: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "note").write_text("From a file.\n")
    deviate(second.root, key=key(second), file=tmp_path / "note", as_json=True)
    assert said()["text"] == "From a file."
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Über stdin".encode())))
    deviate(second.root, key=key(second), as_json=True)
    assert said()["text"] == "Über stdin"
    with pytest.raises(UsageError, match="both given"):
        deviate(second.root, key=key(second), text="x", file=tmp_path / "note")
    (tmp_path / "note").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        deviate(second.root, key=key(second), file=tmp_path / "note")


def test_records_come_back(second_collected: StudyPaths, said: Callable[[], dict[str, Any]]) -> None:
    other = second_collected.repository.parent / "other"
    shutil.move(second_collected.records, other)
    git(second_collected.repository, "commit", "-q", "-a", "-m", "Moved")
    relocate(second_collected.root, source=other, reason="Moved.", key=key(second_collected), as_json=True)
    assert len(said()["files"]) == 16


def test_a_seal_may_be_pushed_at_once(tmp_path: Path, said: Callable[[], dict[str, Any]]) -> None:
    paths = make_second(tmp_path)
    place = bare(paths)
    seal(paths.root, key=key(paths), push="origin", as_json=True)
    value = said()
    assert (value["push_error"], value["pushed"]["remote"], value["pushed"]["entry"]) == (None, str(place), 2)
    assert value["pushed"]["commit"] == git(place, "rev-parse", "main").strip()


def test_a_seal_stands_where_it_cannot_be_pushed(
    tmp_path: Path, said: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make_second(tmp_path)
    bare(paths)

    def differs(*_: object) -> None:
        raise VerificationFailed("says otherwise")

    with monkeypatch.context() as patch:
        patch.setattr(pushing, "push", differs)
        with pytest.raises(VerificationFailed, match="says otherwise"):
            seal(paths.root, key=key(paths), push="origin", as_json=True)
    value = said()
    assert value["pushed"] is None
    assert value["push_error"]["next"] == f"prereg push {paths.root} --key KEY --remote origin"
    status(paths.root, as_json=True)
    assert said()["state"] == "sealed"


def test_before_a_seal_it_is_known_that_nothing_could_be_pushed(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    with pytest.raises(WrongState, match="there is no remote 'origin'"):
        seal(paths.root, key=key(paths), push="origin", as_json=True)
    bare(paths)
    with pytest.raises(UsageError, match="edition 1"):
        seal(paths.root, key=key(paths), push="origin", as_json=True)
    assert not paths.ledger.exists()


def test_an_analysis_shows_deviations_beside_its_decisions(
    second_collected: StudyPaths, capsys: pytest.CaptureFixture[str]
) -> None:
    deviate(second_collected.root, key=key(second_collected), text="Another host.")
    analyse(second_collected.root, key=key(second_collected))
    assert "ada@example.org: Another host." in capsys.readouterr().err.split("Verdicts")[-1]


def test_seeds_are_planned_anew_for_an_amendment_and_not_after_data(
    second: StudyPaths, sealed_once: StudyPaths, said: Callable[[], dict[str, Any]]
) -> None:
    edit(second, lambda protocol: protocol["sampling"]["old"].update(draws=40))
    plan_seeds(second.root, as_json=True)
    assert sum(int(b["end"]) - int(b["first"]) for b in said()["blocks"]) == 2 * (20 + 6)
    amend(second.root, reason="More.", key=key(second), as_json=True)
    fabricate_records(second, end=False)
    for paths in (second, sealed_once):  # collecting, and of edition 1
        with pytest.raises(WrongState, match="its seeds stay"):
            plan_seeds(paths.root)
