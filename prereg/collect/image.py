"""The images that builds were made into on this machine, and the proof that one is the sealed one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.codec.canonical import loads_machine
from prereg.collect.container_engine import Engine, engine_choice, find_engine, inspect
from prereg.collect.containers import ContainedWorker, Containers
from prereg.collect.environments import Fingerprint
from prereg.collect.runtime import Build, cache_folder, load_build
from prereg.collect.staging import staged
from prereg.collect.worker import SETUP_SECONDS, WorkerLost, WorkerRefused
from prereg.errors import EngineFailed, WrongState
from prereg.model.image import Image
from prereg.store.files import read_once
from prereg.store.harness import sealed_code


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImage:
    """A finished image of a build: the contents of its marker file."""

    name: str
    lock: str
    base: str
    """The base image's id."""
    image: str
    platform: str
    id: str
    fingerprint: str
    """Of the environment, as taken inside a container."""
    python: str
    size: int
    """Bytes, with the base image."""
    time: str
    detail: dict[str, Any]

    @property
    def digests(self) -> Image:
        """As a seal has them."""
        return Image(image=self.image, platform=self.platform, id=self.id)


def images_folder() -> Path:
    """Where the markers of the chosen engine's images are kept; the images themselves are the engine's."""
    folder = cache_folder() / "images"
    return folder if (engine := engine_choice()) == "podman" else folder / engine


def image_marker(build: Build) -> Path:
    """The marker of a build's image."""
    return images_folder() / f"{build.name}-{build.lock_digest[:12]}.json"


def built_image(build: Build) -> BuiltImage | None:
    """What the marker of a build's image says, or None without a whole one. The image itself may be gone."""
    marker = image_marker(build)
    if not marker.is_file():
        return None
    value = loads_machine(read_once(marker), where=str(marker))
    if not isinstance(value, dict) or value.get("lock") != build.lock_digest:
        return None
    try:
        return BuiltImage(**value)
    except TypeError:
        return None


def image_command(name: str) -> str:
    """What makes the image of the build `name`."""
    return f"prereg build {name} --container"


def image_of(build: Build) -> BuiltImage:
    """The finished image of a build. Raises WrongState if there is none."""
    found = built_image(build)
    if found is None:
        raise WrongState(
            f"the build {build.name} has no image",
            where=str(image_marker(build)),
            next_step=image_command(build.name),
        )
    return found


def digests_of(engine: Engine, image: str) -> Image | None:
    """The digests of an image that the engine has under that id or name, or None."""
    try:
        told = inspect(engine, "image", image)
    except EngineFailed:
        return None
    found = str(told.get("Id", ""))
    # Docker has no digest of a manifest for an image that it made itself; its id stands in.
    manifest = str(told.get("Digest") or f"sha256:{found.removeprefix('sha256:')}")
    return Image(image=manifest, platform=manifest, id=f"sha256:{found.removeprefix('sha256:')}")


def refuse_other_image(engine: Engine, name: str, sealed: Image) -> None:
    """Raise WrongState unless the engine has the sealed image of the build `name`.

    The id decides: it binds the bytes of every layer. The digest of a manifest changes with how they are
    compressed: an image that was saved and loaded has another.
    """
    present = digests_of(engine, sealed.id)
    if present is None or present.id != sealed.id:
        raise WrongState(
            f"the sealed image of {name}, {sealed.id}, is not on this machine",
            where=f"seal/manifest.json#/images/{name}",
            next_step=f"{engine.name} load -i FILE, with the image as {engine.name} save wrote it; "
            f"what {image_command(name)} makes is another image, for another seal",
        )


def fingerprint_in(containers: Containers, name: str) -> Fingerprint:
    """The fingerprint of the environment of the build `name`, taken inside an admitted container.

    Raises EngineFailed if no worker runs there, WrongState if the container is not closed.
    """
    try:
        with ContainedWorker(containers.launch(name)) as worker:
            value = worker.call("fingerprint")
        return Fingerprint(digest=str(value["digest"]), detail=dict(value["detail"]))
    except (WorkerLost, WorkerRefused, OSError, KeyError, TypeError) as error:
        raise EngineFailed(
            f"no worker runs in the container of {name}: {error}", next_step=image_command(name)
        ) from None


def fingerprint_of(engine: Engine, name: str, image: Image) -> Fingerprint:
    """The fingerprint of an image's environment, taken by this installation's harness."""
    with staged({f"code/{path}": data for path, data in sealed_code(()).items()}) as stage:
        containers = Containers(
            engine=engine,
            images={name: image},
            study=stage.study,
            seconds=int(2 * SETUP_SECONDS),
        )
        return fingerprint_in(containers, name)


def images_for_seal(names: Iterable[str]) -> tuple[dict[str, str], dict[str, Image]]:
    """The fingerprint and the image of each named build, for the manifest.

    Raises WrongState for a build without an image, or whose image is no more the one that was built.
    """
    engine = find_engine()
    prints: dict[str, str] = {}
    images: dict[str, Image] = {}
    for name in sorted(set(names)):
        made = image_of(load_build(name))
        present = digests_of(engine, made.id)
        if present is None:
            raise WrongState(
                f"the image of {name} that was built, {made.id}, is not there any more",
                where=str(image_marker(load_build(name))),
                next_step=image_command(name),
            )
        images[name] = present
        prints[name] = fingerprint_of(engine, name, present).digest
    return prints, images
