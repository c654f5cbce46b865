"""What `collect` refuses before the first draw, gate by gate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_collect_kit import (
    AUTHOR,
    SIMULATE,
    Desk,
    collect_process,
    fresh_desk,
    make_study,
    stop_after,
    types_of,
)

from prereg.collect.runner import collect_study
from prereg.collect.runtime import build_environment
from prereg.errors import PreregError, UsageError, VerificationFailed, WrongState
from prereg.model.plan import plan
from prereg.seal.keys import generate_key
from prereg.seal.verify import verify_study
from prereg.store.ledger import LedgerWriter
from prereg.store.lock import study_lock
from tests.unit import study_fixture
from tests.unit.silent import Silent


@pytest.fixture
def desk(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return fresh_desk(tmp_path, tmp_path_factory, monkeypatch)


def test_a_draft_is_refused(desk: Desk) -> None:
    paths = make_study(desk, seal=False)
    with pytest.raises(WrongState, match=r"gate 2.*draft") as caught:
        desk.collect()
    assert caught.value.next_step == f"prereg seal {paths.root}"


def test_a_collected_study_has_nothing_to_do(desk: Desk) -> None:
    paths = make_study(desk)
    desk.collect()
    before = paths.ledger.read_bytes()
    with pytest.raises(WrongState, match=r"gate 2.*nothing is left") as caught:
        desk.collect()
    assert str(caught.value.next_step).startswith("prereg analyse")
    assert paths.ledger.read_bytes() == before


def test_an_altered_study_is_refused(desk: Desk) -> None:
    paths = make_study(desk)
    (paths.root / "simulate.py").write_text(SIMULATE + "\n")
    with pytest.raises(VerificationFailed, match="gate 3"):
        desk.collect()
    assert types_of(paths) == ["sealed"]


def test_an_altered_record_is_refused_on_the_next_run(desk: Desk) -> None:
    paths = make_study(desk)
    stop_after(desk, 3)
    unit = next(paths.records.iterdir())
    shard = next(unit.glob("*.gz"))
    data = bytearray(shard.read_bytes())
    data[-6] ^= 1
    shard.write_bytes(data)
    with pytest.raises(VerificationFailed, match="gate 3"):
        desk.collect()


def test_a_stranger_is_refused(desk: Desk, tmp_path: Path) -> None:
    paths = make_study(desk)
    key = generate_key(tmp_path / "keys" / "eve")
    with pytest.raises(VerificationFailed, match="gate 4"):
        collect_study(paths, key=key, principal=AUTHOR, progress=desk)
    with pytest.raises(VerificationFailed, match="gate 4"):
        collect_study(paths, key=desk.key, principal="eve@example.org", progress=desk)
    assert types_of(paths) == ["sealed"]


def test_an_environment_that_changed_by_a_byte_is_refused(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path / "own-cache"))
    folder = build_environment("plain", Silent())
    site = next(folder.glob("lib/python*/site-packages"))
    info = site / "toydist-1.0.dist-info"
    info.mkdir()
    (site / "toydist.py").write_text("VALUE = 1\n")
    (info / "METADATA").write_text("Name: toydist\nVersion: 1.0\n")
    (info / "RECORD").write_text("toydist.py,,\ntoydist-1.0.dist-info/METADATA,,\n")
    paths = make_study(desk)
    (site / "toydist.py").write_text("VALUE = 2\n")
    with pytest.raises(WrongState, match=r"gate 6.*fingerprint.*toydist") as caught:
        desk.collect()
    assert caught.value.exit_code == 4
    assert "prereg build plain" in str(caught.value.next_step)
    assert types_of(paths) == ["sealed"]
    (site / "toydist.py").write_text("VALUE = 1\n")
    assert desk.collect().complete


def test_an_environment_that_is_not_built_is_refused(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study(desk)
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path / "empty"))
    with pytest.raises(WrongState, match=r"gate 6.*not built") as caught:
        desk.collect()
    assert caught.value.next_step == "prereg build plain"


@pytest.mark.parametrize("above", [0, 1 << 32], ids=["64", "32"])
def test_seeds_that_another_study_reserves_are_refused(desk: Desk, above: int) -> None:
    make_study(desk, "first", first_seed=7_000_000)
    make_study(desk, "second", first_seed=7_000_055 + above)
    with pytest.raises(VerificationFailed, match="gate 7") as caught:
        desk.collect("second")
    said = caught.value.what
    for word in ("study first", "study second", "block two-b", "block one-a", "[7000055, 7000056)"):
        assert word in said
    assert ("low 32 bits" in said) == bool(above)


def test_seeds_that_another_studys_records_used_are_refused(desk: Desk) -> None:
    first = make_study(desk, "first", first_seed=7_000_000)
    desk.collect("first")
    seeds = json.loads((first.root / "seeds.json").read_text())
    for block in seeds["blocks"]:  # it now claims to have used others
        block["first"], block["end"] = (str(int(block[k]) + 10**9) for k in ("first", "end"))
    (first.root / "seeds.json").write_text(json.dumps(seeds))
    make_study(desk, "second", first_seed=7_000_050)
    with pytest.raises(VerificationFailed, match=r"gate 7.*records/main\.two\.b"):
        desk.collect("second")


def test_a_second_collect_at_the_same_time_is_refused(desk: Desk) -> None:
    paths = make_study(desk)
    with study_lock(paths):
        process = collect_process(desk)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "another prereg is writing to this study" in error
    assert types_of(paths) == ["sealed"]


@pytest.mark.parametrize("workers", [0, -1, 5000])
def test_a_silly_number_of_workers_is_refused(desk: Desk, workers: int) -> None:
    make_study(desk)
    with pytest.raises(UsageError, match="workers"):
        desk.collect(workers=workers)


def test_nobody_goes_on_over_the_unsigned_entries_of_another(tmp_path: Path) -> None:
    paths = study_fixture.make_study(tmp_path)
    sealed = study_fixture.seal(paths)
    shard = plan(verify_study(paths).study.protocol, verify_study(paths).study.seeds)[0]
    with LedgerWriter.open(paths) as writer:
        started = {
            "seal": sealed.seal,
            "attempt": 1,
            "environments": study_fixture.ENVIRONMENTS,
            "workers": 1,
            "network": "not-cut",
            "network_reason": "a test",
        }
        writer.append("collection-started", started, "col@example.org")
        study_fixture.store_shard(writer, "coin", sealed.seal, shard, "col")
    before = paths.ledger.read_bytes()
    with pytest.raises(WrongState, match=r"entry 2 is col@example\.org's and not signed yet") as refused:
        collect_study(
            paths, key=study_fixture.signing_key(paths), principal="ada@example.org", progress=Silent()
        )
    assert refused.value.next_step is not None and refused.value.next_step.startswith("col@example.org runs")
    assert paths.ledger.read_bytes() == before
    # Their own next run passes this gate: it is stopped by the environment, which this study made up.
    with pytest.raises(PreregError, match="gate 6"):
        collect_study(
            paths, key=study_fixture.signing_key(paths, "col"), principal="col@example.org", progress=Silent()
        )
