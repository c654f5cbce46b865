"""The limits of containers: who sets them, which engines can hold to them, and where the kernel counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.container_engine import CHOICE, Engine, find_engine, refuse_without_limits
from prereg.collect.containers import (
    MEMORY,
    Containers,
    exhausted,
    limit_without_effect,
    memory_counter,
    memory_limit,
)
from prereg.collect.image import images_folder
from prereg.errors import EngineFailed, UsageError
from prereg.model.image import Image


@pytest.mark.parametrize(
    ("text", "size"), [("", 4 << 30), ("512m", 512 << 20), ("2G", 2 << 30), ("1000", 1000)]
)
def test_the_limit_of_memory(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY, text)
    assert memory_limit() == size


@pytest.mark.parametrize("text", ["0", "-1", "2t", "much", "1.5g"])
def test_what_is_no_limit_of_memory(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY, text)
    with pytest.raises(UsageError, match="no amount of memory"):
        memory_limit()


def test_an_engine_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHOICE, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineFailed, match="podman is not installed") as caught:
        find_engine()
    assert "apt-get install" in str(caught.value.next_step)


def test_where_only_docker_is_installed_the_error_says_how_to_choose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.delenv(CHOICE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineFailed) as caught:
        find_engine()
    assert str(caught.value.next_step).endswith(f"or {CHOICE}=docker")


def test_each_engine_has_markers_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that one engine has, another has not."""
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path))
    monkeypatch.delenv(CHOICE, raising=False)
    assert images_folder() == tmp_path / "images"
    monkeypatch.setenv(CHOICE, "docker")
    assert images_folder() == tmp_path / "images" / "docker"


def test_an_engine_that_the_ledger_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "apptainer")
    with pytest.raises(UsageError, match="apptainer"):
        find_engine()


def containers(memory_mib: int | None) -> Containers:
    image = "sha256:" + "a" * 64
    return Containers(
        engine=Engine(name="docker", program="docker", version="20.10.24", runc=True),
        images={"plain": Image(image=image, platform=image, id="sha256:" + "b" * 64)},
        study=Path("/stage/study"),
        seconds=900,
        memory_mib=memory_mib,
    )


def test_the_protocols_limit_of_memory_decides_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edition 3: also where the collector's own is set, or is no amount at all."""
    for own in ("", "2g", "much"):
        monkeypatch.setenv(MEMORY, own)
        assert containers(512).launch("plain").sandbox.memory == 512 << 20
        assert memory_limit(512) == 512 << 20
        said = limit_without_effect(512)
        assert (said is None) == (own == "")
        assert said is None or (MEMORY in said and "512 MiB" in said)
        assert limit_without_effect(None) is None


def test_the_ledger_has_the_limit_that_was_sealed_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY, "2g")
    told = {"engine": "docker", "version": "20.10.24", "images": {"plain": "sha256:" + "b" * 64}}
    assert containers(None).as_json() == told
    assert containers(512).as_json() == {**told, "memory_mib": 512}
    assert containers(None).launch("plain").sandbox.memory == 2 << 30


def podman_info(version: str, rootless: bool, controllers: list[str] | None) -> dict[str, Any]:
    return {
        "host": {
            "cgroupVersion": version,
            "cgroupControllers": controllers,
            "security": {"rootless": rootless},
        }
    }


def docker_info(version: str, *, rootless: bool = False, **limits: bool) -> dict[str, Any]:
    options = ["name=seccomp,profile=default", *(["name=rootless"] if rootless else [])]
    given = {"MemoryLimit": True, "SwapLimit": True, "PidsLimit": True}
    return {"CgroupVersion": version, "SecurityOptions": options, **given, **limits}


V1 = ["cpuset", "cpu", "cpuacct", "blkio", "memory", "devices", "freezer", "pids"]


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("podman", podman_info("v1", False, V1)),
        ("podman", podman_info("v2", False, ["cpuset", "cpu", "io", "memory", "pids"])),
        ("podman", podman_info("v2", True, ["memory", "pids"])),
        ("docker", docker_info("1")),
        ("docker", docker_info("2", rootless=True)),
    ],
)
def test_an_engine_that_can_hold_to_the_limits(engine: Any, told: dict[str, Any]) -> None:
    refuse_without_limits(engine, json.dumps(told))


@pytest.mark.parametrize(
    ("engine", "told", "said", "remedy"),
    [
        (
            "podman",
            podman_info("v1", True, []),
            "memory and pids here (control groups of version 1, without",
            "as root",
        ),
        ("podman", podman_info("v1", True, None), "memory and pids", "as root"),
        ("podman", podman_info("v2", True, ["cpu", "pids"]), "limit memory here", "delegate memory"),
        ("podman", podman_info("v2", False, ["memory"]), "limit pids here", "boot with"),
        ("docker", docker_info("1", MemoryLimit=False, SwapLimit=False), "memory and swap", "boot with"),
        ("docker", docker_info("2", rootless=True, PidsLimit=False), "without root", "delegate pids"),
    ],
)
def test_an_engine_that_cannot_is_refused(engine: Any, told: dict[str, Any], said: str, remedy: str) -> None:
    with pytest.raises(EngineFailed) as caught:
        refuse_without_limits(engine, json.dumps(told))
    assert said in caught.value.what and remedy in str(caught.value.next_step)
    assert "the runtime venv" in str(caught.value.next_step)


@pytest.mark.parametrize("info", ["", "no", "[]", "{}", '{"host": {"security": null}}'])
def test_an_engine_that_does_not_say_is_refused(info: str) -> None:
    for engine in ("podman", "docker"):
        with pytest.raises(EngineFailed, match="does not say which limits"):
            refuse_without_limits(engine, info)


GROUPS_1 = "9:name=systemd:/docker/c\n8:pids:/docker/c\n4:memory:/docker/c\n0::/docker/c\n"
GROUPS_JOINED = "4:cpu,cpuacct:/a\n3:memory,hugetlb:/docker/c\n"
GROUPS_2 = "0::/machine.slice/libpod-c.scope\n"

KILLED = {
    "memory/docker/c/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill {n}\n",
    "machine.slice/libpod-c.scope/memory.events": "low 0\nmax 12\noom 1\noom_kill {n}\noom_group_kill 0\n",
}


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        (GROUPS_1, "memory/docker/c/memory.oom_control"),
        (GROUPS_JOINED, "memory/docker/c/memory.oom_control"),
        (GROUPS_2, "machine.slice/libpod-c.scope/memory.events"),
    ],
)
def test_what_the_kernel_killed_is_counted_by_either_version(groups: str, name: str, tmp_path: Path) -> None:
    for other, text in KILLED.items():
        (tmp_path / other).parent.mkdir(parents=True)
        (tmp_path / other).write_text(text.format(n=0))
    counter = memory_counter(groups, tmp_path)
    assert counter == tmp_path / name
    assert not exhausted(counter.read_text())
    counter.write_text(KILLED[name].format(n=2))
    assert exhausted(counter.read_text())


@pytest.mark.parametrize("groups", ["", "8:pids:/docker/c\n", GROUPS_1, GROUPS_2])
def test_memory_that_cannot_be_watched_is_no_sandbox(groups: str, tmp_path: Path) -> None:
    """An engine on another machine gives the number of a process that is none here, or is another."""
    with pytest.raises(EngineFailed, match="cannot be watched"):
        memory_counter(groups, tmp_path)
