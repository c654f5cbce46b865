"""The studies under attack, made once a session."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "unit"), str(HERE)]

import exact_fixture  # noqa: E402
import study_fixture  # noqa: E402
import verbs  # noqa: E402
from lives import KEYS, LIFE, OWN, OWN_CLASS, with_own_class  # noqa: E402

from prereg.analyse.run import analyse_study  # noqa: E402
from prereg.audit.run import audit_study  # noqa: E402


@pytest.fixture(scope="session")
def life(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with keys and a repository for each state of one study's life."""
    cache = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(cache))
        assert verbs.prereg("build", "plain").code == 0
        place = tmp_path_factory.mktemp("life")
        paths = study_fixture.make_study(place, draws=2000, rows=100, shard_requests=5)
        found = {"cache": cache}
        for state, verb in zip(LIFE, (None, "seal", "collect", "analyse", "audit"), strict=True):
            if verb is not None:
                done = verbs.run(verb, paths.root, KEYS[verb], {})
                assert done.code == 0, done.said
            found[state] = tmp_path_factory.mktemp(state) / "copy"
            shutil.copytree(place, found[state], symlinks=True)
    return found


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for a study with an exact stage, analysed and audited."""
    place = tmp_path_factory.mktemp("trees")
    paths = exact_fixture.make_exact_study(place, with_own_class, own={OWN: OWN_CLASS})
    study_fixture.seal(paths)
    exact_fixture.fabricate(paths)
    analyse_study(paths, key=study_fixture.signing_key(paths), principal="ada@example.org")
    run = audit_study(paths, key=study_fixture.signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
    return place
