"""A shard that an earlier attempt stored and the last one too is a second result (formats, section 21)."""

from __future__ import annotations

from pathlib import Path

import pytest
import study_fixture
from study_fixture import signing_key
from third_fixture import Teller, collect_third, longer, make_third_study

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study
from prereg.model.attempts import Copies


@pytest.mark.parametrize("changed", [(), (3, 4, 5)], ids=["equal", "differing"])
def test_what_two_attempts_stored_is_compared(tmp_path: Path, changed: tuple[int, ...]) -> None:
    paths = make_third_study(tmp_path)
    study_fixture.seal(paths)

    def tell(teller: Teller) -> None:
        teller.start()
        for shard in (0, 1):
            teller.store("drawn.same.off", shard)
        teller.store("drawn.same.on", 0, changes=dict.fromkeys(changed, longer))
        teller.begin("drawn.same.on", 1)
        teller.fail("drawn.same.on", 1, "engine")
        for shard in (0, 1):
            teller.store("drawn.same.on", shard, 2)
        for unit in ("walked.other.off", "walked.other.on", "walked.same.off", "walked.same.on"):
            teller.store(unit, 0)
        teller.end(complete=True)

    collect_third(paths, tell)
    decisions = analyse_study(paths, key=signing_key(paths), principal="ada@example.org")
    told = decisions.configurations[0].duplicates
    assert told is not None
    assert told.off == Copies(copies=0, differing=0)
    assert told.on == Copies(copies=1, differing=len(changed))
    run = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
