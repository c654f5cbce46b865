"""What may go wrong with containers, each by name: refused before the first draw, or lost with its reason."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from prereg.collect.container_engine import Engine, new_name, sweep
from prereg.collect.image import images_for_seal
from prereg.collect.image_build import build_image
from prereg.collect.runtime import load_build
from prereg.errors import EngineFailed, WrongState
from prereg.seal.verify import verify_report
from tests.containers.kit import HANGS, HUNGRY, OPENED, SLOW, Bench, containers, plant, podman, refused
from tests.unit.silent import Silent
from tests.unit.test_collect_kit import body_of, check_whole, collect_process, configuration, types_of

pytestmark = pytest.mark.containers


def test_a_collection_in_containers_is_whole(bench: Bench) -> None:
    paths = bench.sealed()
    result = bench.desk.collect()
    assert result.complete and result.network == "cut" and not result.invalid
    check_whole(paths)
    started = body_of(paths, "collection-started")
    assert started["container"]["images"] == {"plain": bench.image.id}
    assert started["environments"] == {"plain": bench.image.fingerprint}


@pytest.mark.parametrize("fault", OPENED)
def test_a_container_that_is_not_closed_is_refused(
    fault: str, refusing: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, said = OPENED[fault]
    plant(monkeypatch, tmp_path, body)
    error = refused(refusing)
    assert isinstance(error, WrongState)
    assert "gate 6: the container of plain is not closed" in error.what and said in error.what


def test_a_container_of_a_moved_tag_is_refused(
    refusing: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tag names another image of the same files, and something makes podman run by the tag."""
    made = podman("create", refusing.image.id.removeprefix("sha256:"))
    podman("commit", "--quiet", made, "localhost/prereg/moved:tag")
    podman("rm", made)
    by_tag = f"words = ['localhost/prereg/moved:tag' if w == {refusing.image.id!r} else w for w in words]"
    plant(monkeypatch, tmp_path, f"if words[0] == 'run':\n    {by_tag}")
    assert "its image is" in refused(refusing).what


def test_a_moved_tag_changes_nothing(bench: Bench) -> None:
    paths = bench.sealed()
    tag = podman("image", "inspect", "--format", "{{index .RepoTags 0}}", bench.image.id)
    base = podman("images", "--quiet", "--no-trunc", "localhost/prereg/base").split()[0]
    podman("tag", base, tag)
    try:
        assert bench.desk.collect().complete
    finally:
        podman("tag", bench.image.id.removeprefix("sha256:"), tag)
    check_whole(paths)


def test_a_rebuilt_image_is_refused(
    bench: Bench, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same lock, built again, is another image; the sealed one is gone."""
    other = tmp_path / "cache"
    shutil.copytree(cache / "images", other / "images")
    (other / "images" / f"plain-{bench.image.lock[:12]}.json").unlink()
    monkeypatch.setenv("PREREG_CACHE", str(other))
    again = build_image(load_build("plain"), Silent())
    assert again.id != bench.image.id and again.fingerprint == bench.image.fingerprint
    Bench(desk=bench.desk, image=again).sealed()
    podman("rmi", again.id.removeprefix("sha256:"))
    error = refused(bench)
    assert "is not on this machine" in error.what
    assert "prereg build plain --container" in str(error.next_step)


def test_a_sealed_image_that_was_carried_here_is_the_sealed_one(bench: Bench, tmp_path: Path) -> None:
    """Saving and loading compresses anew: another manifest, the same image."""
    made = podman("create", bench.image.id.removeprefix("sha256:"), "sh")
    podman("commit", "--quiet", "--change", "LABEL carried=yes", made, "localhost/prereg/carried:one")
    podman("rm", made)
    told = podman("image", "inspect", "--format", "{{.Id}} {{.Digest}}", "localhost/prereg/carried:one")
    id_, digest = told.split()
    carried = replace(bench.image, id=f"sha256:{id_}", image=digest, platform=digest)
    paths = Bench(desk=bench.desk, image=carried).sealed()
    podman("save", "--quiet", "--format", "oci-archive", "--output", str(tmp_path / "it.tar"), id_)
    podman("rmi", id_)
    refused(bench)
    podman("load", "--quiet", "--input", str(tmp_path / "it.tar"))
    assert podman("image", "inspect", "--format", "{{.Digest}}", id_) != digest
    assert bench.desk.collect().complete
    check_whole(paths)


def test_a_unit_that_reaches_the_limit_of_memory_is_invalid(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel kills the study's command; that is not the command's own crash."""
    monkeypatch.setenv("PREREG_CONTAINER_MEMORY", "128m")
    paths = bench.sealed(script=HUNGRY)
    result = bench.desk.collect()
    assert result.complete and list(result.invalid) == ["main.one.b"]
    assert f"reached its container's limit of memory, {128 << 20} bytes" in result.invalid["main.one.b"]
    assert "unit-invalid" in types_of(paths)


def test_the_limit_of_memory_is_the_protocols(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edition 3 seals it: it holds whatever the collector's own is, and the ledger has it."""
    monkeypatch.setenv("PREREG_CONTAINER_MEMORY", "2g")
    ceilings = {"study_seconds": 600, "unit_seconds": 300, "request_seconds": 20, "on_ceiling": "INVALID"}
    paths = bench.sealed(edition=3, script=HUNGRY, ceilings={**ceilings, "memory_mib": 144})
    result = bench.desk.collect()
    assert list(result.invalid) == ["main.one.b"]
    assert f"reached its container's limit of memory, {144 << 20} bytes" in result.invalid["main.one.b"]
    assert body_of(paths, "collection-started")["container"]["memory_mib"] == 144
    assert any("PREREG_CONTAINER_MEMORY does not apply" in note for note in bench.desk.notes)
    assert not [step for step in verify_report(paths) if step.status == "failed"]


def test_a_worker_that_hangs_is_stopped_with_its_container(bench: Bench) -> None:
    ceilings = {"study_seconds": 600, "unit_seconds": 300, "request_seconds": 3, "on_ceiling": "INVALID"}
    bench.sealed(script=HANGS, ceilings=ceilings)
    begun = time.monotonic()
    result = bench.desk.collect()
    assert list(result.invalid) == ["main.one.b"] and time.monotonic() - begun < 60
    assert "sent nothing for 3 seconds" in result.invalid["main.one.b"]


def test_a_killed_collection_goes_on_and_leaves_no_container(bench: Bench) -> None:
    paths = bench.sealed(script=SLOW)
    process = collect_process(bench.desk)
    until = time.monotonic() + 60
    while "shard-stored" not in types_of(paths) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert types_of(paths)[-1] != "collection-ended"
    result = bench.desk.collect()
    assert result.complete
    check_whole(paths)


def test_a_hung_container_of_a_killed_collection_is_removed_by_the_next(bench: Bench) -> None:
    """Nothing tells a worker that hangs that its collector is gone."""
    ceilings = {"study_seconds": 600, "unit_seconds": 300, "request_seconds": 8, "on_ceiling": "INVALID"}
    paths = bench.sealed(script=HANGS, ceilings=ceilings)
    process = collect_process(bench.desk)
    until = time.monotonic() + 60
    while types_of(paths).count("shard-stored") < 5 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = {name for container in containers() for name in container["Names"]}
    assert left
    result = bench.desk.collect(workers=1)
    assert list(result.invalid) == ["main.one.b"]
    swept = {note.split(":")[0] for note in bench.desk.notes if "a killed run left" in note}
    assert swept and swept <= left


def test_what_a_dead_process_left_is_swept_away(bench: Bench, engine: Engine) -> None:
    mine, dead = new_name(), "prereg-999999999-1-aaaaaaaaaaaa"
    for name in (mine, dead):
        podman("run", "--detach", "--label", "prereg.worker", "--name", name, "--network", "none",
               "--runtime", "runc", "--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64",
               bench.image.id, "sleep", "60")  # fmt: skip
    try:
        assert sweep(engine) == [dead]
        assert [c["Names"] for c in containers()] == [[mine]]
    finally:
        podman("rm", "--force", "--time", "0", "--ignore", mine, dead)


def test_a_container_that_does_not_start_is_the_machines_trouble(
    refusing: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, tmp_path, "if words[0] == 'run': sys.exit('no space left')")
    error = refused(refusing)
    assert isinstance(error, EngineFailed) and "no space left" in error.what


def test_without_an_image_a_study_is_not_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path))
    with pytest.raises(WrongState, match="has no image") as caught:
        images_for_seal(["plain"])
    assert caught.value.next_step == "prereg build plain --container"


def test_commands_of_two_arms(bench: Bench) -> None:
    """Two configurations, more workers than cores: each worker is a container of its own."""
    paths = bench.sealed(configurations=[configuration("one"), configuration("two")])
    assert bench.desk.collect(workers=3).complete
    check_whole(paths)
