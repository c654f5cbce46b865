"""llama-cpp-python in a container: compiled outside, installed and walked inside, draft to audit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.image import BuiltImage
from prereg.collect.image_build import build_image
from prereg.collect.runtime import cache_folder, load_build
from prereg.collect.wheels import known_wheel, split_lock, this_machine, wheel_place
from prereg.store.layout import StudyPaths
from tests.containers.kit import prereg
from tests.unit.silent import Silent
from tests.unit.test_collect_kit import body_of, git

pytestmark = pytest.mark.containers

BUILD = "lcp-0.3.35"
CONFIGURATION = "lcp-1-35"
"""In the main study's template: speculation and a processor that looks at its prefix."""


def wheel() -> Path | None:
    """The folder of the compiled wheel in this user's cache, if it was compiled here."""
    build = load_build(BUILD)
    (source,) = build.compiled
    _, pinned = split_lock(build.lock, [source.package])
    place = wheel_place(cache_folder() / "wheels", source, pinned[source.package], this_machine("3.11"))
    return None if known_wheel(place) is None else place


COMPILED = wheel()
HOUSE = cache_folder() / "wheelhouses" / f"{BUILD}-{load_build(BUILD).lock_digest[:12]}"
"""What an image of the build that this user has was made from."""


@pytest.fixture(scope="module")
def llama(cache: Path) -> BuiltImage:
    """The image of the build, from the wheel that was compiled before: it takes too long for these tests."""
    if COMPILED is None:
        pytest.skip(f"the wheel of {BUILD} was not compiled here (prereg build {BUILD})")
    shutil.copytree(COMPILED, cache / "wheels" / COMPILED.name)
    if HOUSE.is_dir():
        shutil.copytree(HOUSE, cache / "wheelhouses" / HOUSE.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(cache))
        return build_image(load_build(BUILD), Silent())


def changed(main: dict[str, Any]) -> dict[str, Any]:
    """The main study's template with this one configuration, few draws, and containers."""
    (configuration,) = (c for c in main["configurations"] if c["id"] == CONFIGURATION)
    drawn = {"id": "s2", "purpose": "discovery", "configurations": [CONFIGURATION]}
    sampling = {arm: {"draws": 400, "rows": 1, "shard_requests": 200} for arm in ("off", "on")}
    ceilings = {"study_seconds": 900, "unit_seconds": 600, "request_seconds": 60, "on_ceiling": "INVALID"}
    rest = {name: value for name, value in main.items() if name != "hypotheses"}
    return {
        **rest,
        "edition": 3,
        "runtime": "container",
        "models": {name: m for name, m in main["models"].items() if name == configuration["model"]},
        "configurations": [configuration],
        "stages": [drawn, {**drawn, "id": "exact", "channel": "exact"}],
        "sampling": sampling,
        "ceilings": {**ceilings, "memory_mib": 1024},
        "power": {**main["power"], "target": 0.1},
    }


def test_a_study_of_llama_in_containers(llama: BuiltImage, tmp_path: Path) -> None:
    repository, ada, rex = tmp_path / "repository", str(tmp_path / "ada"), str(tmp_path / "rex")
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    prereg(repository, "key", "new", ada, "--principal", "ada@example.org", "--role", "author")
    prereg(repository, "key", "new", rex, "--principal", "rex@example.org", "--role", "reviewer")
    blanks = ["--title", "T", "--question", "Q?", "--author", "Ada", "--principal", "ada@example.org"]
    prereg(repository, "draft", "studies/llama", "--template", "main", *blanks)
    paths = StudyPaths(root=repository / "studies" / "llama")
    paths.protocol.write_text(json.dumps(changed(json.loads(paths.protocol.read_text()))))
    predictions = json.loads((paths.root / "predictions.json").read_text())
    own = [p for p in predictions["predictions"] if p["claim"].get("configuration") == CONFIGURATION]
    (paths.root / "predictions.json").write_text(json.dumps({**predictions, "predictions": own}))
    (paths.root / "hypotheses.json").unlink()
    prereg(repository, "seeds", "plan", "studies/llama")
    prereg(repository, "events", "studies/llama")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Draft")
    sealed = prereg(repository, "seal", "studies/llama", "--key", ada, "--json")
    assert sealed["images"] == {BUILD: llama.id}
    assert prereg(repository, "collect", "studies/llama", "--key", ada, "--json")["complete"] is True
    assert body_of(paths, "collection-started")["container"]["memory_mib"] == 1024
    prereg(repository, "analyse", "studies/llama", "--key", ada)
    assert prereg(repository, "audit", "studies/llama", "--key", rex, "--json")["result"] == "AGREES"
    decisions = json.loads((paths.root / "analysis" / "decisions.json").read_bytes())
    assert [c["verdict"] for c in decisions["exact"]["configurations"]] == ["DEPARTS"]
