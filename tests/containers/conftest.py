"""What tests in real containers share: the image of `plain`, made once, and who may not run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from prereg.collect.container_engine import Engine, find_engine, find_tool
from prereg.collect.image import BuiltImage, images_folder
from prereg.collect.image_build import build_image
from prereg.collect.runtime import load_build
from prereg.errors import PreregError
from tests.containers.kit import Bench, containers, podman
from tests.unit.silent import Silent
from tests.unit.test_collect_kit import make_desk


def why_not(folder: Path) -> str | None:
    """Why no container can be run here, or None; tried with nothing of the project's."""
    try:
        find_engine()
    except PreregError as error:
        return f"{error} (next: {error.next_step})"
    if os.geteuid() != 0 or find_tool("debootstrap") is None:
        return "the base image needs root and debootstrap"
    program = Path(shutil.which("true") or "/bin/true").resolve()
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    for file in [str(program), *(word for word in linked.split() if word.startswith("/"))]:
        place = folder / file.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    how = ["--runtime", "runc", "--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64", "--network", "none"]
    done = subprocess.run(
        ["podman", "run", "--rm", *how, "--rootfs", str(folder), str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else f"podman run fails: {done.stderr.strip()[-300:]}"


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    reason = why_not(tmp_path_factory.mktemp("root"))
    if reason is not None:
        pytest.skip(f"no containers here: {reason}")
    return find_engine()


@pytest.fixture(scope="session")
def cache(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of these tests' own; only the base image is the user's, if it was made before."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "images").mkdir()
    for marker in images_folder().glob("base-*.json"):
        shutil.copy(marker, folder / "images")
    before = {*podman("images", "--quiet", "--no-trunc").split()}
    yield folder
    for image in {*podman("images", "--quiet", "--no-trunc").split()} - before:
        subprocess.run(["podman", "rmi", "--force", image], capture_output=True, check=False)


@pytest.fixture(scope="session")
def plain(cache: Path) -> BuiltImage:
    """The image of `plain`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(cache))
        return build_image(load_build("plain"), Silent())


@pytest.fixture(scope="module")
def refusing(plain: BuiltImage, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A sealed study that no test of the module gets to collect."""
    bench = Bench(desk=make_desk(tmp_path_factory.mktemp("refusing")), image=plain)
    bench.sealed()
    return bench


@pytest.fixture
def bench(plain: BuiltImage, tmp_path: Path) -> Bench:
    """A repository and its key."""
    return Bench(desk=make_desk(tmp_path), image=plain)


@pytest.fixture(autouse=True)
def nothing_left(engine: Engine, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No container of ours may be there when a test is over."""
    monkeypatch.setenv("PREREG_CACHE", str(cache))
    yield
    assert containers() == []
