"""The studies under attack, made once a session."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "unit"), str(HERE)]

import exact_fixture  # noqa: E402
import lives_heads  # noqa: E402
import lives_second  # noqa: E402
import lives_third  # noqa: E402
import study_fixture  # noqa: E402
import verbs  # noqa: E402
from lives import KEYS, LIFE, OWN, OWN_CLASS, link_or_copy, with_own_class  # noqa: E402

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


class Saved:
    """Copies of a study at the states that it came to."""

    def __init__(self, place: Path, to: Path) -> None:
        self.states: dict[str, Path] = {}
        self.place, self.to = place, to

    def __call__(self, state: str) -> None:
        self.states[state] = self.to / state
        shutil.copytree(self.place, self.to / state, symlinks=True, copy_function=link_or_copy)


def kept(folders: pytest.TempPathFactory, name: str) -> Saved:
    """Where a study lives its life, and its states are kept."""
    return Saved(folders.mktemp(name) / "x", folders.mktemp(f"{name}-states"))


@pytest.fixture(scope="session")
def signed(life: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same for the study of edition 2 that has everything of sections 17 to 19."""
    saved, bare = kept(tmp_path_factory, "signed"), tmp_path_factory.mktemp("bare")
    lives_second.signed_life(saved.place, bare, life["cache"], saved)
    return saved.states


@pytest.fixture(scope="session")
def heads(life: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same for the study of edition 3 whose heads are stamped."""
    saved = kept(tmp_path_factory, "heads")
    lives_heads.heads_life(saved.place, life["cache"], saved)
    return saved.states


@pytest.fixture(scope="session")
def second(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same for the study of edition 2 with records and a registered mechanism."""
    saved = kept(tmp_path_factory, "second")
    lives_second.second_life(saved.place, saved)
    return saved.states


@pytest.fixture(scope="session")
def third(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same for the study of edition 3 that was tried again and came twice."""
    saved = kept(tmp_path_factory, "third")
    lives_third.third_life(saved.place, saved)
    return saved.states


@pytest.fixture(scope="session")
def contained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same for a study of edition 3 that is collected in containers of limited memory."""
    saved = kept(tmp_path_factory, "contained")
    lives_third.contained_life(saved.place, saved)
    return saved.states


@pytest.fixture(scope="session")
def place_of(request: pytest.FixtureRequest) -> Callable[[str, str], Path]:
    """Where a study lies at a state; it is made when it is first asked for."""

    def found(study: str, state: str) -> Path:
        if study == "exact":
            return request.getfixturevalue("trees")  # type: ignore[no-any-return]
        return request.getfixturevalue(study or "life")[state]  # type: ignore[no-any-return]

    return found
