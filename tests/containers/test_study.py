"""A study in containers from its draft to its audit, by the commands that a user types."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from prereg.collect.image import BuiltImage, built_image
from prereg.collect.image_build import build_image
from prereg.collect.installer import bundled_pip
from prereg.collect.runtime import Build
from prereg.errors import EngineFailed
from tests.containers.kit import prereg
from tests.unit.silent import Silent
from tests.unit.test_collect_kit import git

pytestmark = pytest.mark.containers


def test_a_study_from_its_draft_to_its_audit(plain: BuiltImage, tmp_path: Path) -> None:
    repository, ada, rex = tmp_path / "repository", str(tmp_path / "ada"), str(tmp_path / "rex")
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    prereg(repository, "key", "new", ada, "--principal", "ada@example.org", "--role", "author")
    prereg(repository, "key", "new", rex, "--principal", "rex@example.org", "--role", "reviewer")
    blanks = ["--title", "T", "--question", "Q?", "--author", "Ada", "--principal", "ada@example.org"]
    prereg(repository, "draft", "studies/peek", "--template", "two-arm", *blanks)
    protocol = repository / "studies" / "peek" / "protocol.json"
    value = json.loads(protocol.read_text())
    protocol.write_text(json.dumps({**value, "edition": 2, "runtime": "container"}))
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Draft")
    checked = prereg(repository, "check", "studies/peek", "--json")
    assert len(checked["rehearsal"]) == 4 and not any(row["crashed"] for row in checked["rehearsal"])
    sealed = prereg(repository, "seal", "studies/peek", "--key", ada, "--json")
    assert sealed["images"] == {"plain": plain.id}
    assert sealed["environments"] == {"plain": plain.fingerprint}
    collected = prereg(repository, "collect", "studies/peek", "--key", ada, "--json")
    assert (collected["complete"], collected["network"], collected["draws"]) == (True, "cut", 32_000)
    prereg(repository, "analyse", "studies/peek", "--key", ada)
    assert prereg(repository, "audit", "studies/peek", "--key", rex, "--json")["result"] == "AGREES"
    prereg(repository, "verify", "studies/peek")
    decisions = json.loads((protocol.parent / "analysis" / "decisions.json").read_bytes())
    assert {c["id"]: c["verdict"] for c in decisions["configurations"]} == {
        "pocock": "NOT_REJECTED",
        "naive": "DIFFERS",
    }


def toy(lock: str) -> Build:
    return Build(
        name="toy",
        adapter="command",
        python="3.11",
        requests_per_second={},
        unhashed=(),
        lock=lock.encode(),
    )


def wheel(folder: Path) -> Path:
    """A wheel of one module, made by hand."""
    path = folder / "toy_engine-1.0-py3-none-any.whl"
    info = "toy_engine-1.0.dist-info"
    files = {
        "toy_engine.py": "ANSWER = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: toy-engine\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def wheelhouse(cache: Path, build: Build) -> Path:
    """A house of wheels that was filled before."""
    house = cache / "wheelhouses" / f"{build.name}-{build.lock_digest[:12]}"
    house.mkdir(parents=True)
    pip = bundled_pip()
    assert pip is not None
    (house / pip.name).write_bytes(pip.read_bytes())
    (house / "requirements.lock").write_bytes(build.lock)
    return house


def test_an_engine_is_installed_from_its_wheels_without_a_network(cache: Path, tmp_path: Path) -> None:
    made = wheel(tmp_path)
    build = toy(f"toy-engine==1.0 --hash=sha256:{hashlib.sha256(made.read_bytes()).hexdigest()}\n")
    made.rename(wheelhouse(cache, build) / made.name)
    image = build_image(build, Silent())
    assert image.detail["distributions"]["toy-engine"]["version"] == "1.0"
    assert build_image(build, Silent()) == image


def test_what_cannot_be_installed_is_no_image(cache: Path) -> None:
    build = toy(f"toy-engine==2.0 --hash=sha256:{'0' * 64}\n")
    wheelhouse(cache, build)
    with pytest.raises(EngineFailed, match=r"toy-engine==2\.0"):
        build_image(build, Silent())
    assert built_image(build) is None
