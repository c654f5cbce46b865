"""Containers: the sealed images, and what a collection says that it ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_seals import IMAGES, build, second, well
from audits_tools import make_key

STARTED = "collection-started body"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_keys(tmp_path_factory.mktemp("audit-keys"))
    make_key(folder, "third")
    return folder


def test_containers(tmp_path: Path, keys: Path) -> None:
    assert "containers of podman 4.3.1" in well(build(tmp_path, keys, second(runtime="container")))


def _put(name: str, key: str, value: Any) -> Any:
    def edit(kind: str, said: Any) -> Any:
        if kind != name:
            return said
        return {k: v for k, v in said.items() if k != key} | ({} if value is None else {key: value})

    return edit


def _two_builds(kind: str, said: Any) -> Any:
    """The manifest has two builds, and the collection's container names the image of one."""
    if kind == "manifest":
        images = {"b-1": IMAGES["b-1"], "b-2": IMAGES["b-1"]}
        return said | {"environments": {"b-1": "e" * 64, "b-2": "e" * 64}, "images": images}
    # The fewer environments that it names too are for step 6, whose fault would hide step 7.
    return said | {"environments": {"b-1": "e" * 64, "b-2": "e" * 64}} if kind == STARTED else said


_CONTAINER = {"engine": "podman", "version": "4", "images": {"b-1": IMAGES["b-1"]["id"]}}
CONTAINERS: dict[str, tuple[Plan, int, str]] = {
    "no images": (second(_put("manifest", "images", None), runtime="container"), 5, "/images"),
    "images of another build": (
        second(_put("manifest", "images", {"b-2": IMAGES["b-1"]}), runtime="container"), 5, "/images",
    ),
    "images without containers": (second(_put("manifest", "images", IMAGES)), 5, "/images"),
    "no container": (
        second(_put(STARTED, "container", None), runtime="container"), 7, "/body/container",
    ),
    "a container of none": (
        second(_put(STARTED, "container", _CONTAINER)), 7, "/body/container",
    ),
    "another image": (
        second(
            _put(STARTED, "container", _CONTAINER | {"images": {"b-1": IMAGES["b-1"]["image"]}}),
            runtime="container",
        ), 7, "not the id of the sealed image",
    ),
    "no image": (
        second(_put(STARTED, "container", _CONTAINER | {"images": {}}), runtime="container"), 7,
        "names no image for b-1",
    ),
    "no image of a build that none has": (
        second(_two_builds, runtime="container"), 7, "names no image for b-2",
    ),
    "a network": (
        second(_put(STARTED, "network", "not-cut"), runtime="container"), 7, "network is cut",
    ),
    "edition 1": (
        Plan(upto="sealed", edit=lambda n, v: v | {"runtime": "container"} if n == "protocol.json" else v), 5,
        "#/runtime",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_that_are_not_as_sealed(tmp_path: Path, keys: Path, name: str) -> None:
    plan, number, says = CONTAINERS[name]
    found = failed(look(build(tmp_path, keys, plan).folder))
    assert number in found, found
    assert says in found[number]
