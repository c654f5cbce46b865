"""The command lines that containers are started with, and what is read back from a running one."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.container import Sandbox, run_command
from prereg.collect.container_check import LOOK, inside_faults, outside_faults
from prereg.collect.container_engine import new_name
from prereg.collect.image_base import MIRROR, mirror
from prereg.errors import EngineFailed, WrongState

ID = "sha256:" + "ab" * 32
BOX = Sandbox(name="prereg-1-2-c0ffee", image=ID, study=Path("/stage/study"), memory=1 << 30, seconds=900)
ARGV = ["/opt/engine/bin/python", "-c", "pass"]

PODMAN = """
podman run --rm -i --pull never --name prereg-1-2-c0ffee --label prereg.worker
--runtime runc --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --read-only-tmpfs=false --http-proxy=false
--timeout 900 --workdir /scratch
--network none --ipc none --hostname prereg --log-driver none
--read-only --cap-drop ALL --security-opt no-new-privileges --user 65534:65534 --pids-limit 1024
--memory 1073741824 --memory-swap 1073741824
--mount type=tmpfs,destination=/scratch,tmpfs-size=1073741824,tmpfs-mode=1777
--mount type=bind,source=/stage/study,destination=/study,readonly=true
--env A=1 --env HOME=/scratch --entrypoint
"""

APPTAINER = """
apptainer exec --containall --cleanenv --no-home --no-privs --drop-caps ALL
--net --network none --hostname prereg --pids-limit 1024 --memory 1073741824 --memory-swap 1073741824
--scratch /scratch --bind /stage/study:/study:ro --pwd /scratch
/images/plain.sif env -i A=1 HOME=/scratch timeout -s KILL 900
"""

VARIABLES = {"HOME": "/scratch", "A": "1"}


def test_podman() -> None:
    words = run_command("podman", "podman", BOX, VARIABLES, ARGV, runc=True)
    known = PODMAN.split()
    assert words[: len(known)] == known
    assert words[len(known) :][:4] == ["", ID, "/bin/sh", "-c"]
    assert words[-4:] == ["sh", *ARGV]


def test_docker_has_the_same_sandbox_and_its_limit_of_time_inside() -> None:
    own = {"--runtime", "runc", "--ulimit", "nofile=1024:1024", "nproc=4096:4096", "--timeout", "900"}
    own |= {"--read-only-tmpfs=false", "--http-proxy=false"}
    words = run_command("docker", "docker", BOX, VARIABLES, ARGV)
    same = [word for word in PODMAN.split()[1:] if word not in own]
    same[same.index("--workdir") + 1] = "/"
    assert words[1 : words.index(ID) - 1] == same
    assert words[-11:] == ["sh", "env", "-C", "/scratch", "timeout", "-s", "KILL", "900", *ARGV]


def test_apptainer() -> None:
    """By its own page of `exec`, where `--pwd` is `--cwd` since 1.2; nobody has run it here."""
    box = Sandbox(name="x", image="/images/plain.sif", study=BOX.study, memory=BOX.memory, seconds=900)
    assert run_command("apptainer", "apptainer", box, VARIABLES, ARGV) == [*APPTAINER.split(), *ARGV]


@pytest.mark.parametrize("image", ["localhost/prereg/plain:latest", "plain", "ab" * 32, f"plain@{ID}", ""])
def test_an_image_is_run_by_its_id_alone(image: str) -> None:
    box = Sandbox(name="x", image=image, study=BOX.study, memory=1, seconds=1)
    with pytest.raises(WrongState, match="no image id"):
        run_command("podman", "podman", box, {}, ARGV)


@pytest.mark.parametrize(("code", "said"), [(0, ""), (3, ""), (137, "limit of memory, 1073741824 bytes")])
def test_the_first_process_tells_of_a_worker_that_the_kernel_killed(
    code: int, said: str, tmp_path: Path
) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom 1\noom_kill 1\n")
    words = run_command("podman", "podman", BOX, {}, ["/bin/sh", "-c", f"cat; exit {code}"])
    shell = [w.replace("/sys/fs/cgroup/memory.events", str(counter)) for w in words[words.index(ID) + 1 :]]
    done = subprocess.run(shell, input="lines", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "lines")
    assert said in done.stderr and bool(said) == bool(done.stderr)


PODMAN_TOLD: dict[str, Any] = {
    "Image": "ab" * 32,
    "State": {"Running": True},
    "EffectiveCaps": None,
    "BoundingCaps": [],
    "Mounts": [{"Type": "bind", "Source": "/stage/study", "Destination": "/study", "RW": False}],
    "Config": {"User": "65534:65534", "Timeout": 900},
    "HostConfig": {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "Privileged": False,
        "Memory": 1 << 30,
        "MemorySwap": 1 << 30,
        "PidsLimit": 1024,
        "CapAdd": [],
        "SecurityOpt": ["no-new-privileges"],
        "PidMode": "private",
        "IpcMode": "none",
        "UTSMode": "private",
        "Tmpfs": {"/scratch": "rw"},
    },
}

DOCKER_TOLD = copy.deepcopy(PODMAN_TOLD)
DOCKER_TOLD["Image"] = ID
DOCKER_TOLD["Mounts"].append({"Type": "tmpfs", "Source": "", "Destination": "/scratch", "RW": True})
DOCKER_TOLD["Config"] = {"User": "65534:65534"}
DOCKER_TOLD["HostConfig"] |= {"CapDrop": ["ALL"], "CapAdd": None, "Tmpfs": None, "PidMode": ""}


def test_a_closed_container_has_no_fault() -> None:
    assert outside_faults("podman", PODMAN_TOLD, BOX) == []
    assert outside_faults("docker", DOCKER_TOLD, BOX) == []


OUTSIDE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "its image": lambda told: told.update(Image="cd" * 32),
    "its state": lambda told: told["State"].update(Running=False),
    "its network": lambda told: told["HostConfig"].update(NetworkMode="bridge"),
    "its read-only root": lambda told: told["HostConfig"].update(ReadonlyRootfs=False),
    "its privilege": lambda told: told["HostConfig"].update(Privileged=True),
    "its user": lambda told: told["Config"].update(User=""),
    "its memory is": lambda told: told["HostConfig"].update(Memory=0),
    "its memory with swap": lambda told: told["HostConfig"].update(MemorySwap=-1),
    "its number of processes": lambda told: told["HostConfig"].update(PidsLimit=0),
    "its added capabilities": lambda told: told["HostConfig"].update(CapAdd=["CAP_NET_RAW"]),
    "its capabilities": lambda told: told.update(BoundingCaps=["CAP_NET_RAW"]),
    "its longest life": lambda told: told["Config"].update(Timeout=0),
    "it may gain privileges": lambda told: told["HostConfig"].update(SecurityOpt=[]),
    "its PidMode": lambda told: told["HostConfig"].update(PidMode="host"),
    "its IpcMode": lambda told: told["HostConfig"].update(IpcMode="host"),
    "its writable memory": lambda told: told["HostConfig"].update(Tmpfs={"/scratch": "", "/tmp": ""}),
    "it mounts": lambda told: told["Mounts"].append({"Type": "volume", "Destination": "/x", "RW": False}),
    "it may write to": lambda told: told["Mounts"][0].update(RW=True),
    "/study is /other": lambda told: told["Mounts"][0].update(Source="/other"),
}


@pytest.mark.parametrize("said", OUTSIDE)
def test_each_difference_has_a_name(said: str) -> None:
    told = copy.deepcopy(PODMAN_TOLD)
    OUTSIDE[said](told)
    (fault,) = outside_faults("podman", told, BOX)
    assert fault.startswith(said)


def test_docker_must_have_dropped_all_capabilities() -> None:
    told = copy.deepcopy(DOCKER_TOLD)
    told["HostConfig"]["CapDrop"] = ["NET_RAW"]
    assert outside_faults("docker", told, BOX) == ["its dropped capabilities is ['NET_RAW'], not ['ALL']"]


def test_an_answer_of_no_form_is_no_closed_container() -> None:
    assert len(outside_faults("podman", {}, BOX)) > 8


SEEN: dict[str, Any] = {
    "uid": ["65534"] * 4,
    "gid": ["65534"] * 4,
    "groups": ["65534"],
    "capabilities": ["0000000000000000"] * 5,
    "no_new_privileges": ["1"],
    "writable": ["/scratch", "/dev/mqueue"],
    "interfaces": ["lo"],
    "way_out": 0,
}


def test_a_closed_sandbox_seen_from_inside() -> None:
    assert inside_faults(SEEN) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"way_out": 1}, "a connection out"),
        ({"interfaces": ["lo", "eth0"]}, "the network interfaces"),
        ({"capabilities": ["0", "0", "0", "0000000000002000", "0"]}, "the capabilities"),
        ({"uid": ["0"] * 4}, "runs as"),
        ({"groups": ["0"]}, "runs as"),
        ({"no_new_privileges": ["0"]}, "gain privileges"),
        ({"no_new_privileges": None}, "gain privileges"),
        ({"writable": ["/scratch", "/"]}, "can write to ['/']"),
        ({"writable": []}, "cannot write to /scratch"),
    ],
)
def test_each_opening_seen_from_inside_has_a_name(change: dict[str, Any], said: str) -> None:
    (fault,) = inside_faults({**SEEN, **change})
    assert said in fault


def test_the_look_from_inside_runs_anywhere() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", LOOK], capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    assert set(seen) == set(SEEN) and "lo" in seen["interfaces"]


def test_names_of_containers_are_all_different_and_tell_whose_they_are() -> None:
    names = {new_name() for _ in range(20)}
    assert len(names) == 20
    assert {name.split("-")[1] for name in names} == {str(os.getpid())}


TARGETS = """\
trixie-security Debian http://mirror.example/security/
trixie Debian http://mirror.example/debian/
noble Other http://other.example/
"""


def apt(folder: Path, targets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "apt-get"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{targets}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))
    monkeypatch.delenv(MIRROR, raising=False)


def test_the_mirror_is_that_of_this_machines_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt(tmp_path, TARGETS, monkeypatch)
    assert mirror() == "http://mirror.example/debian/"
    apt(tmp_path, TARGETS + "bookworm Debian http://near.example/debian/\n", monkeypatch)
    assert mirror() == "http://near.example/debian/"
    monkeypatch.setenv(MIRROR, "http://chosen.example/debian")
    assert mirror() == "http://chosen.example/debian"


def test_without_a_mirror_the_error_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt(tmp_path, "noble Other http://other.example/\n", monkeypatch)
    with pytest.raises(EngineFailed) as caught:
        mirror()
    assert f"{MIRROR}=URL" in str(caught.value.next_step)
