"""Containers (section 20): what can be told of them from the seal and the ledger."""

from __future__ import annotations

from typing import Any

from audits.fault import Found
from audits.ledger import LEDGER, Ledger
from audits.seal import MANIFEST
from audits.study import Study


def check_images(study: Study, manifest: dict[str, Any], found: Found) -> None:
    """Step 5: a container's image is sealed for each build, and nothing of containers stands elsewhere."""
    contained, images = study.protocol["runtime"] == "container", manifest.get("images")
    if study.edition < 2 and contained:
        what = "is of edition 2, and the protocol names no edition"
        found.fault(what, file="protocol.json", pointer="/runtime")
    if (images is not None) != contained:
        found.fault("is there exactly for the runtime `container`", file=MANIFEST, pointer="/images")
    elif images is not None and images.keys() != manifest["environments"].keys():
        found.fault("does not have the builds of `environments`", file=MANIFEST, pointer="/images")


def check_containers(study: Study, manifest: dict[str, Any], ledger: Ledger, found: Found) -> None:
    """Step 7: every collection ran in containers of the sealed images, without a network, or in none."""
    contained = study.protocol["runtime"] == "container"
    memory = study.protocol["ceilings"].get("memory_mib")
    sealed = {build: image["id"] for build, image in manifest.get("images", {}).items()}
    for i, entry in enumerate(ledger.entries, 1):
        if entry["type"] != "collection-started":
            continue
        place, body = f"{LEDGER} line {i}", entry["body"]
        container = body.get("container")
        if (container is not None) != contained:
            found.fault("is there exactly for the runtime `container`", file=place, pointer="/body/container")
        if container is None or not contained:
            continue
        found.applied += 1
        if body["network"] != "cut":
            found.fault("a container's network is cut", file=place, pointer="/body/network")
        if container.get("memory_mib") != memory:
            what = f"is {container.get('memory_mib')}, sealed as {memory}"
            found.fault(what, file=place, pointer="/body/container/memory_mib")
        for build, image in container["images"].items():
            if sealed.get(build) != image:
                pointer = f"/body/container/images/{build}"
                found.fault("is not the id of the sealed image", file=place, pointer=pointer)
        if missing := sorted(sealed.keys() - container["images"].keys()):
            what = f"names no image for {missing[0]}"
            found.fault(what, file=place, pointer="/body/container/images")
        found.notes.append(f"containers of {container['engine']} {container['version']}")
