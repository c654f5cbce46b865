"""Analysing a sealed and collected study: gates, what is written, and doing it twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_fixture import fabricate_records, git, make_study, seal, signing_key

from prereg.analyse import run
from prereg.analyse.run import analyse_study, decisions_of
from prereg.audit.run import audit_study
from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.errors import EvidenceIncomplete, PreregError, VerificationFailed, WrongState
from prereg.model.verdict import Decisions
from prereg.seal.agree import differences
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter


@pytest.fixture
def collected(tmp_path: Path) -> StudyPaths:
    paths = make_study(tmp_path, draws=400, rows=2, shard_requests=60)
    seal(paths)
    fabricate_records(paths)
    return paths


def analyse(paths: StudyPaths, who: str = "ada", **more: object) -> Decisions:
    return analyse_study(
        paths, key=signing_key(paths, who), principal=f"{who}@example.org", **more  # type: ignore[arg-type]
    )  # fmt: skip


def clean(paths: StudyPaths) -> bool:
    return git(paths.repository, "status", "--porcelain") == ""


def test_what_is_written_verifies(collected: StudyPaths) -> None:
    said: list[tuple[str, int, int]] = []
    decisions = analyse(collected, progress=lambda *step: said.append(step))
    data = collected.decisions.read_bytes()
    assert data == dump_file(to_json(decisions))
    assert read_machine(data, "decisions", Decisions, where="decisions.json") == decisions
    assert {s.status for s in verify_report(collected)} == {"ok"}
    verified = verify_study(collected, need="analysed")
    assert verified.entries[-1].body == {"seal": verified.seal, "decisions_sha256": digest(data)}
    assert [(unit, total) for unit, _, total in said] == [
        (u.id, 1600) for u in verified.study.protocol.units()
    ]
    assert [read for _, read, _ in said] == [400, 800, 1200, 1600]
    assert clean(collected)


def test_a_second_analysis_compares_and_writes_nothing(collected: StudyPaths) -> None:
    first = analyse(collected)
    before = {p: p.read_bytes() for p in (collected.decisions, collected.ledger, collected.head)}
    commit = git(collected.repository, "rev-parse", "HEAD")
    assert analyse(collected) == first
    assert {p: p.read_bytes() for p in before} == before
    assert git(collected.repository, "rev-parse", "HEAD") == commit


def test_a_second_analysis_that_differs_is_refused(
    collected: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyse(collected)
    real = run.decide

    def other(*given: object) -> Decisions:
        value = json.loads(json.dumps(to_json(real(*given))))  # type: ignore[arg-type]
        value["configurations"][0]["D"] += off
        return read_machine(dump_file(value), "decisions", Decisions, where="-")

    monkeypatch.setattr(run, "decide", other)
    off = 1e-11
    analyse(collected)
    off = 1e-9
    with pytest.raises(VerificationFailed, match="/configurations/0/D"):
        analyse(collected)


def test_not_before_the_collection_is_complete(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    with pytest.raises(WrongState):
        analyse(paths)
    seal(paths)
    with pytest.raises(WrongState, match="sealed"):
        analyse(paths)
    fabricate_records(paths, skip=[("main.fair.old", 1)])
    with pytest.raises(EvidenceIncomplete, match="refuses a missing unit") as refused:
        analyse(paths)
    assert refused.value.next_step is not None and "prereg collect" in refused.value.next_step
    assert refused.value.where == "records/main.fair.old/00001.jsonl.gz"
    assert not paths.decisions.exists()


def test_not_while_a_collection_is_open(tmp_path: Path) -> None:
    paths = make_study(tmp_path, missing="bound")
    seal(paths)
    fabricate_records(paths, skip=[("main.fair.old", 1)], end=False)
    with pytest.raises(WrongState, match="a collection is open"):
        analyse(paths)


def test_a_killed_collection_is_the_wrong_state_in_the_words_of_audit(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    seal(paths)
    before = [(file, file.read_bytes()) for file in (paths.head, paths.head_signature)]
    fabricate_records(paths, skip=[("main.fair.old", 1)], end=False)
    for file, data in before:
        file.write_bytes(data)  # the run ended before it signed
    with pytest.raises(WrongState, match="the study is collecting: analysis before a collection") as refused:
        analyse(paths)
    assert refused.value.next_step == f"prereg collect {paths.root}"
    with pytest.raises(WrongState, match="the study is collecting: audit before a collection") as audited:
        audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert (refused.value.where, refused.value.next_step) == (audited.value.where, audited.value.next_step)
    next(paths.records.rglob("*.jsonl.gz")).unlink()
    with pytest.raises(PreregError) as gone:
        analyse(paths)
    assert not isinstance(gone.value, WrongState)  # what is amiss beside it comes first


def test_a_missing_unit_is_bounded_where_the_protocol_says_so(tmp_path: Path) -> None:
    paths = make_study(tmp_path, missing="bound")
    seal(paths)
    fabricate_records(paths, skip=[("main.fair.old", 1)])
    decisions = analyse(paths)
    assert {d.id: d.verdict for d in decisions.configurations}["fair"] == "INVALID"
    assert verify_study(paths).state == "analysed"
    run = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text


@pytest.mark.parametrize("who", ["rex", "col", "eve"])
def test_only_an_author_analyses(collected: StudyPaths, who: str) -> None:
    with pytest.raises(VerificationFailed):
        analyse(collected, who)
    with pytest.raises(VerificationFailed):
        analyse_study(collected, key=signing_key(collected, who), principal="ada@example.org")
    assert not collected.decisions.exists()
    assert verify_study(collected).state == "collected"


def test_a_changed_record_is_refused(collected: StudyPaths) -> None:
    path = collected.shard_records("main.fair.old", 0)
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(VerificationFailed):
        analyse(collected)
    assert not collected.decisions.exists()


def test_a_lost_unit_is_bounded(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    seal(paths)
    fabricate_records(paths, invalid={"main.fair.new": "the machine stopped"})
    decisions = analyse(paths)
    assert [d.verdict for d in decisions.configurations] == ["INVALID", "NOT_REJECTED"]
    assert [p.status for p in decisions.predictions] == ["NOT_DETERMINED"]


def test_changed_decisions_are_refused(collected: StudyPaths) -> None:
    analyse(collected)
    collected.decisions.write_bytes(collected.decisions.read_bytes().replace(b"NOT_REJECTED", b"DIFFERS"))
    with pytest.raises(VerificationFailed, match="SHA-256"):
        analyse(collected)


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("step", ["write_whole", "append", "sign_head_and_commit"])
@pytest.mark.parametrize("after", [False, True])
def test_a_killed_analysis_is_completed(
    collected: StudyPaths, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    place = LedgerWriter if step == "append" else run
    real = getattr(place, step)

    def cut(*given: object, **named: object) -> None:
        if after:
            real(*given, **named)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(place, step, cut)
        analyse(collected)
    partial = collected.decisions.with_name(".decisions.json.12345.partial")
    partial.parent.mkdir(exist_ok=True)
    partial.write_bytes(b"{")
    decisions = analyse(collected)
    if step == "sign_head_and_commit" and after:
        partial.unlink(missing_ok=True)
    assert decisions == decisions_of(verify_study(collected, need="analysed"))
    assert [e.type for e in verify_study(collected).entries].count("analysis") == 1
    assert clean(collected)


@pytest.mark.parametrize("name", [".ledger.head.json.77.partial", ".ledger.head.json.sig.77.partial"])
def test_an_unfinished_head_and_a_torn_line_of_a_killed_analysis_are_gone(
    collected: StudyPaths, name: str
) -> None:
    (collected.root / name).write_bytes(b"{")
    with collected.ledger.open("ab") as ledger:
        ledger.write(b'{"actor":"ada@exa')
    analyse(collected)
    assert {s.status for s in verify_report(collected)} == {"ok"}
    assert clean(collected)


def test_an_unsigned_analysis_that_was_committed_by_hand_is_signed(
    collected: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*given: object, **named: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(run, "sign_head_and_commit", cut)
        analyse(collected)
    git(collected.repository, "add", "studies")
    git(collected.repository, "commit", "-q", "-m", "By hand")
    analyse(collected)
    verified = verify_study(collected, need="analysed")
    assert verified.signed == len(verified.entries)


def test_what_a_killed_collector_left_is_not_let_through(collected: StudyPaths) -> None:
    collected.shard_records("main.fair.old", 0).with_name(".00009.jsonl.gz.77.partial").write_bytes(b"")
    with pytest.raises(VerificationFailed):
        analyse(collected)
    assert not collected.decisions.exists()


@pytest.mark.parametrize(
    ("one", "two", "places"),
    [
        ({"a": 1.0}, {"a": 1.0 + 1e-11}, []),
        ({"a": 1.0}, {"a": 1.0 + 1e-9}, ["/a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["/a/1"]),
        ({"a": [1, 2]}, {"a": [1]}, ["/a"]),
        ({"a": 1}, {"b": 1}, ["/"]),
        ({"a": True}, {"a": 1}, ["/a"]),
        ({"a": None}, {"a": 0}, ["/a"]),
        ({"a": "x"}, {"a": "y"}, ["/a"]),
    ],
)
def test_differences(one: object, two: object, places: list[str]) -> None:
    assert [d.split(":")[0] for d in differences(one, two)] == places
