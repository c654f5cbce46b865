"""The images and containers that a study's workers ran in, held against its plan (formats, section 20)."""

from __future__ import annotations

from collections.abc import Sequence

from prereg.errors import VerificationFailed
from prereg.model.seal import Entry, Manifest
from prereg.model.study import Protocol
from prereg.seal.manifest import WHERE


def check_images(manifest: Manifest, protocol: Protocol) -> None:
    """Check that a manifest names an image for each build exactly where workers run in containers (step 5).

    Raises VerificationFailed.
    """
    where = f"{WHERE}#/images"
    if protocol.runtime != "container":
        if manifest.images is not None:
            raise VerificationFailed("are there, and no worker runs in a container", where=where)
        return
    if manifest.images is None:
        raise VerificationFailed(
            "are missing, and the workers run in containers",
            where=where,
            next_step="prereg build NAME --container, before the seal",
        )
    if manifest.images.keys() != manifest.environments.keys():
        raise VerificationFailed("are not those of the environments' builds", where=where)


def check_containers(entries: Sequence[Entry], manifest: Manifest, protocol: Protocol) -> None:
    """Check what each `collection-started` tells of its containers (step 7).

    There are containers exactly where the manifest has images: those images by their ids, the network cut,
    and the protocol's limit of memory, told exactly where it has one. Raises VerificationFailed.
    """
    for entry in entries:
        if entry.type == "collection-started":
            _check_started(entry, manifest, protocol)


def _check_started(entry: Entry, manifest: Manifest, protocol: Protocol) -> None:
    where = f"ledger.jsonl:{entry.seq}#/body"
    told = entry.body.get("container")
    if manifest.images is None:
        if told is not None:
            raise VerificationFailed("is there, and the seal has no images", where=f"{where}/container")
        return
    if told is None:
        raise VerificationFailed("is missing, and the seal has images", where=f"{where}/container")
    if entry.body["network"] != "cut":
        raise VerificationFailed("is not cut, as it is in a container", where=f"{where}/network")
    ids = {build: image.id for build, image in manifest.images.items()}
    for build in sorted({*ids, *told["images"]}):
        if told["images"].get(build) != ids.get(build):
            raise VerificationFailed(
                f"is not the id of the image in {WHERE}", where=f"{where}/container/images/{build}"
            )
    limit, said = protocol.ceilings.memory_mib, told.get("memory_mib")
    if said != limit:
        what = "there is none" if said is None else f"it is {said}"
        wanted = "has none" if limit is None else f"says {limit}"
        raise VerificationFailed(f"{what}, and the protocol {wanted}", where=f"{where}/container/memory_mib")
