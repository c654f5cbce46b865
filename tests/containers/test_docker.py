"""The same sandbox with docker: a daemon of these tests' own, without a network, and what it must refuse."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prereg.collect.container_engine import CHOICE, Engine, find_engine, find_tool
from prereg.collect.image import BuiltImage, built_image
from prereg.collect.image_base import BASE_NAME
from prereg.collect.image_build import build_image
from prereg.collect.runtime import load_build
from prereg.errors import EngineFailed, WrongState
from tests.containers.conftest import why_not
from tests.containers.kit import HANGS, HUNGRY, OPENED, Bench, plant, podman, refused
from tests.unit.silent import Silent
from tests.unit.test_collect_kit import body_of, check_whole, collect_process, make_desk, types_of

pytestmark = pytest.mark.containers

CEILINGS = {"study_seconds": 600, "unit_seconds": 300, "request_seconds": 8, "on_ceiling": "INVALID"}


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a docker daemon that keeps everything in one folder, and touches no firewall."""
    program = find_tool("dockerd")
    if program is None or shutil.which("docker") is None or os.geteuid() != 0:
        pytest.skip("no docker here: its daemon (Debian's docker.io) or root is missing")
    place = tmp_path_factory.mktemp("docker")
    folders = ("--data-root", str(place / "data"), "--exec-root", str(place / "exec"))
    no_network = ("--bridge=none", "--iptables=false", "--ip6tables=false")
    address = f"unix://{place}/d.sock"
    words = [program, "--host", address, *folders, "--pidfile", str(place / "pid"), *no_network]
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "PATH": path})
    asked = ["docker", "--host", address, "version"]
    until = time.monotonic() + 60
    while subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            process.wait()
            pytest.skip(f"no docker here: its daemon does not start: {(place / 'log').read_text()[-600:]}")
        time.sleep(0.2)
    yield address
    process.terminate()
    process.wait(timeout=60)
    # It leaves a mount of its own network's name behind, and what is mounted cannot be removed.
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        if (mounted := line.split()[1]).startswith(f"{place}/"):
            subprocess.run(["umount", mounted], check=True)
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def carried(daemon: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Podman's base image, saved there and loaded here, if there is podman: one bootstrap is enough."""
    folder = tmp_path_factory.mktemp("carried")
    if why_not(folder) is not None:
        return
    request.getfixturevalue("plain")
    name = podman("images", "--format", "{{.Repository}}:{{.Tag}}", BASE_NAME).split()[0]
    podman("save", "--quiet", "--format", "docker-archive", "--output", str(folder / "base.tar"), name)
    docker("--host", daemon, "load", "--quiet", "--input", str(folder / "base.tar"))


@pytest.fixture(scope="module")
def chosen(daemon: str, carried: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Docker, chosen as a user chooses it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", daemon)
        patch.setenv(CHOICE, "docker")
        patch.setenv("PREREG_CACHE", str(tmp_path_factory.mktemp("docker-cache")))
        yield find_engine()


@pytest.fixture(scope="module")
def image(chosen: Engine) -> BuiltImage:
    """The image of `plain`, in docker."""
    return build_image(load_build("plain"), Silent())


@pytest.fixture
def bench(image: BuiltImage, tmp_path: Path) -> Bench:
    return Bench(desk=make_desk(tmp_path), image=image)


@pytest.fixture(scope="module")
def refusing(image: BuiltImage, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A sealed study that no test of the module gets to collect."""
    bench = Bench(desk=make_desk(tmp_path_factory.mktemp("refusing")), image=image)
    bench.sealed()
    return bench


@pytest.fixture(autouse=True)
def nothing_left(chosen: Engine) -> Iterator[None]:
    """No container may be there when a test is over, of all that this daemon knows."""
    yield
    assert docker("ps", "--all", "--quiet") == ""


def test_a_collection_in_docker_is_whole(bench: Bench, chosen: Engine) -> None:
    paths = bench.sealed()
    result = bench.desk.collect()
    assert result.complete and result.network == "cut" and not result.invalid
    check_whole(paths)
    assert body_of(paths, "collection-started")["container"] == {
        "engine": "docker",
        "version": chosen.version,
        "images": {"plain": bench.image.id},
    }


def test_an_image_is_made_once_and_each_engine_has_its_own(image: BuiltImage) -> None:
    assert build_image(load_build("plain"), Silent()) == image
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(CHOICE)
        assert built_image(load_build("plain")) is None
    assert docker("image", "inspect", "--format", "{{.Id}}", image.id) == image.id


@pytest.mark.parametrize("fault", OPENED)
def test_a_container_that_is_not_closed_is_refused(
    fault: str, refusing: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, said = OPENED[fault]
    plant(monkeypatch, tmp_path, body, "docker")
    error = refused(refusing)
    assert isinstance(error, WrongState)
    assert "gate 6: the container of plain is not closed" in error.what and said in error.what


def test_a_container_of_a_moved_tag_is_refused(
    refusing: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag names another image of the same files, and something makes docker run by the tag."""
    made = docker("create", refusing.image.id, "sh")
    docker("commit", made, "localhost/prereg/moved:tag")
    docker("rm", made)
    by_tag = f"words = ['localhost/prereg/moved:tag' if w == {refusing.image.id!r} else w for w in words]"
    plant(monkeypatch, tmp_path, f"if words[0] == 'run':\n    {by_tag}", "docker")
    assert "its image is" in refused(refusing).what


def test_a_sealed_image_that_is_gone_is_refused(bench: Bench, tmp_path: Path) -> None:
    """And what was saved and is loaded again is the sealed one."""
    made = docker("create", bench.image.id, "sh")
    other = docker("commit", "--change", "LABEL other=yes", made)
    docker("rm", made)
    paths = Bench(desk=bench.desk, image=replace(bench.image, id=other, image=other, platform=other)).sealed()
    docker("save", "--output", str(tmp_path / "it.tar"), other)
    docker("rmi", other)
    error = refused(bench)
    assert "is not on this machine" in error.what and "docker load" in str(error.next_step)
    docker("load", "--quiet", "--input", str(tmp_path / "it.tar"))
    assert bench.desk.collect().complete
    check_whole(paths)


def test_a_unit_that_reaches_the_limit_of_memory_is_invalid(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREREG_CONTAINER_MEMORY", "128m")
    bench.sealed(script=HUNGRY)
    result = bench.desk.collect()
    assert result.complete and list(result.invalid) == ["main.one.b"]
    assert f"reached its container's limit of memory, {128 << 20} bytes" in result.invalid["main.one.b"]


def test_a_hung_container_of_a_killed_collection_is_removed_by_the_next(bench: Bench) -> None:
    """Killed outside, and stopped by the watchdog in the next run."""
    paths = bench.sealed(script=HANGS, ceilings=CEILINGS)
    process = collect_process(bench.desk)
    until = time.monotonic() + 60
    while types_of(paths).count("shard-stored") < 5 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = set(docker("ps", "--all", "--format", "{{.Names}}").split())
    assert left
    result = bench.desk.collect(workers=1)
    assert list(result.invalid) == ["main.one.b"]
    assert "sent nothing for 8 seconds" in result.invalid["main.one.b"]
    swept = {note.split(":")[0] for note in bench.desk.notes if "a killed run left" in note}
    assert swept and swept <= left


def test_a_daemon_that_does_not_answer_says_so(chosen: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/d.sock")
    with pytest.raises(EngineFailed, match=r"docker version failed: .*nowhere") as caught:
        find_engine()
    assert caught.value.next_step == "docker info"
