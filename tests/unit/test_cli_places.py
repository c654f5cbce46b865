"""What the command line says of a place that is another than the verb is for, and of who is next."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from prereg.cli.next_step import typed
from prereg.errors import WrongState
from prereg.seal.build import seal_study
from prereg.seal.tell import close_study
from prereg.seal.verify import verify_report
from tests.unit.study_fixture import ENVIRONMENTS, copy_repository, make_study, seal, signing_key
from tests.unit.test_cli import prereg
from tests.unit.third_fixture import make_third_study


@pytest.mark.parametrize("verb", ["check", "show"])
def test_seeds_are_compared_in_the_folder_of_all_studies(verb: str, tmp_path: Path) -> None:
    """In one study there is no other, and nothing would ever be found."""
    paths = make_study(tmp_path)
    done = prereg("seeds", verb, str(paths.root))
    assert done.returncode == 2
    assert f"next:  prereg seeds {verb} {paths.root.parent}" in done.stderr


def test_an_interrupted_seal_is_cleared_away_by_what_is_typed(tmp_path: Path) -> None:
    paths = make_study(tmp_path / "with a space")
    key = signing_key(paths)
    kept = copy_repository(paths, tmp_path / "kept")
    seal(kept)
    # As a killed seal leaves them: written, and not committed.
    for name in ("seal", "code", "ledger.jsonl"):
        (kept.root / name).rename(paths.root / name)
    with pytest.raises(WrongState, match="interrupted") as caught:
        seal_study(paths, key=key, principal="ada@example.org", environments=ENVIRONMENTS)
    step = str(caught.value.next_step)
    words = shlex.split(step.partition(", then")[0])
    assert words[:2] == ["rm", "-r"]
    assert {Path(word) for word in words[2:]} == {paths.seal, paths.code, paths.ledger}
    assert typed(step, paths.root).startswith(step.partition(", then")[0] + ", then"), "a space is no end"


def test_what_a_closed_study_lacks_is_not_called_complete(tmp_path: Path) -> None:
    paths = make_third_study(tmp_path)
    seal(paths)
    close_study(paths, "Enough.", key=signing_key(paths), principal="ada@example.org", unfinished=True)
    done = prereg("collect", str(paths.root), "--key", str(tmp_path / "keys" / "col"))
    assert done.returncode == 4
    assert "never drawn" in done.stderr and "every sealed draw is there" not in done.stderr


def test_head_is_said_to_hold_what_it_holds(tmp_path: Path) -> None:
    paths = make_third_study(tmp_path)
    seal(paths)
    detail = verify_report(paths)[8].detail
    tree = [p for p in paths.root.rglob("*") if p.is_file() and p.name != "ledger.jsonl"]
    assert f"HEAD holds {len(tree)} files" in detail
