"""Images in the seal and containers in the ledger: where each stands, and whose they are (section 20)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prereg.errors import PreregError
from prereg.model.image import Image
from prereg.seal.build import seal_study
from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter
from tests.unit.study_fixture import ENVIRONMENTS, git, make_study, signing_key

IMAGES = {"plain": Image(image="sha256:" + "a" * 64, platform="sha256:" + "a" * 64, id="sha256:" + "b" * 64)}
CONTAINER = {"engine": "podman", "version": "4.3.1", "images": {"plain": IMAGES["plain"].id}}


def study(tmp_path: Path, **changes: Any) -> StudyPaths:
    paths = make_study(tmp_path, commit=False)
    protocol = json.loads(paths.protocol.read_text())
    paths.protocol.write_text(json.dumps({**protocol, **changes}))
    git(paths.repository, "add", "studies")
    git(paths.repository, "commit", "-q", "-m", "Draft")
    return paths


def sealed(paths: StudyPaths, images: dict[str, Image] | None = IMAGES) -> None:
    seal_study(
        paths,
        key=signing_key(paths, "ada"),
        principal="ada@example.org",
        environments=ENVIRONMENTS,
        images=images,
    )


def contained(tmp_path: Path) -> StudyPaths:
    paths = study(tmp_path, edition=2, runtime="container")
    sealed(paths)
    return paths


def started(paths: StudyPaths, **changes: Any) -> dict[int, str]:
    """Enter the start of a collection; what the steps then say."""
    seal = json.loads(paths.ledger.read_bytes())["body"]["seal"]
    body = {
        "seal": seal,
        "attempt": 1,
        "environments": ENVIRONMENTS,
        "workers": 1,
        "network": "cut",
        "network_reason": None,
        "container": CONTAINER,
        **changes,
    }
    with LedgerWriter.open(paths) as writer:
        writer.append("collection-started", {k: v for k, v in body.items() if v != {}}, "col@example.org")
    return {step.number: step.detail for step in verify_report(paths) if step.status == "failed"}


def test_a_seal_has_the_images(tmp_path: Path) -> None:
    paths = contained(tmp_path)
    manifest = json.loads(paths.manifest.read_bytes())
    assert manifest["images"]["plain"]["id"] == IMAGES["plain"].id
    assert all(step.status != "failed" for step in verify_report(paths))


def test_without_containers_a_seal_says_nothing_of_images(tmp_path: Path) -> None:
    paths = study(tmp_path)
    sealed(paths, None)
    assert b"images" not in paths.manifest.read_bytes()


@pytest.mark.parametrize(
    ("changes", "images", "said"),
    [
        ({"edition": 2, "runtime": "container"}, None, "are missing, and the workers run in containers"),
        ({"edition": 2}, IMAGES, "no worker runs in a container"),
        ({"runtime": "container"}, IMAGES, "belongs to edition 2"),
        ({"edition": 2, "runtime": "container"}, {}, "not those of the environments"),
        (
            {"edition": 2, "runtime": "container"},
            {**IMAGES, "other": IMAGES["plain"]},
            "not those of the environments",
        ),
    ],
)
def test_what_is_not_sealed(
    changes: dict[str, Any], images: dict[str, Image] | None, said: str, tmp_path: Path
) -> None:
    paths = study(tmp_path, **changes)
    with pytest.raises(PreregError, match=said):
        sealed(paths, images)
    assert not paths.manifest.exists()


def test_a_collection_in_the_sealed_containers(tmp_path: Path) -> None:
    found = started(contained(tmp_path))
    assert 5 not in found and 7 not in found


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no-container": ({"container": {}}, "is missing, and the seal has images"),
    "other-image": (
        {"container": {**CONTAINER, "images": {"plain": "sha256:" + "c" * 64}}},
        "is not the id of the image",
    ),
    "no-image": ({"container": {**CONTAINER, "images": {}}}, "is not the id of the image"),
    "network": ({"network": "not-cut", "network_reason": "none"}, "is not cut, as it is in a container"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_collection_elsewhere_fails_step_7(fault: str, tmp_path: Path) -> None:
    changes, said = FAULTS[fault]
    assert said in started(contained(tmp_path), **changes)[7]


def limited(tmp_path: Path, memory: int | None) -> StudyPaths:
    """Of edition 3, with a limit of memory or without."""
    protocol = json.loads(make_study(tmp_path / "x").protocol.read_text())
    more = {} if memory is None else {"memory_mib": memory}
    paths = study(tmp_path, edition=3, runtime="container", ceilings=protocol["ceilings"] | more)
    sealed(paths)
    return paths


@pytest.mark.parametrize(
    ("limit", "told", "said"),
    [
        (512, 512, None),
        (None, None, None),
        (512, 513, "it is 513, and the protocol says 512"),
        (512, None, "there is none, and the protocol says 512"),
        (None, 512, "it is 512, and the protocol has none"),
    ],
)
def test_the_limit_of_memory_is_the_protocols(
    limit: int | None, told: int | None, said: str | None, tmp_path: Path
) -> None:
    container = CONTAINER if told is None else {**CONTAINER, "memory_mib": told}
    found = started(limited(tmp_path, limit), container=container)
    if said is None:
        assert 7 not in found
    else:
        assert said in found[7]


def test_in_edition_2_no_limit_of_memory_is_told(tmp_path: Path) -> None:
    found = started(contained(tmp_path), container={**CONTAINER, "memory_mib": 512})
    assert "the protocol has none" in found[7]


def test_a_container_in_a_study_without_images_fails_step_7(tmp_path: Path) -> None:
    paths = study(tmp_path, edition=2)
    sealed(paths, None)
    assert "is there, and the seal has no images" in started(paths)[7]
