"""Images of builds in the seal, and containers in the ledger (docs/formats.md section 20)."""

from __future__ import annotations

from collections.abc import Iterable

from prereg.errors import VerificationFailed
from prereg.model.seal import Entry, Manifest
from prereg.model.study import Protocol
from prereg.seal.manifest import WHERE


def check_images(manifest: Manifest, protocol: Protocol) -> None:
    """A seal has images exactly where workers run in containers, one for each build (step 5)."""
    contained = protocol.runtime == "container"
    if (manifest.images is not None) != contained:
        raise VerificationFailed(
            f"images are sealed exactly for the runtime container; this one is {protocol.runtime}",
            where=f"{WHERE}#/images",
        )
    if manifest.images is not None and set(manifest.images) != set(manifest.environments):
        raise VerificationFailed("are not those of the sealed environments", where=f"{WHERE}#/images")


def check_containers(entries: Iterable[Entry], manifest: Manifest) -> None:
    """Every collection ran where the seal says: in containers of its images, or in none (step 7)."""
    sealed = None if manifest.images is None else {name: i.id for name, i in manifest.images.items()}
    for number, entry in enumerate(entries, 1):
        if entry.type != "collection-started":
            continue
        line, container = f"ledger.jsonl:{number}#/body", entry.body.get("container")
        if (container is not None) != (sealed is not None):
            raise VerificationFailed(
                "is there exactly if the seal has images of containers", where=f"{line}/container"
            )
        if container is None:
            continue
        if container["images"] != sealed:
            raise VerificationFailed("are not the ids of the sealed images", where=f"{line}/container/images")
        if entry.body["network"] != "cut":
            raise VerificationFailed("a container has no network", where=f"{line}/network")
