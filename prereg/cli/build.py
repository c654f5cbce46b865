"""`prereg build`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, say, table
from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.collect.runtime import Build


@app.command(epilog="Example: prereg build hf-5.17.0   ·   prereg build plain --container")
def build(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Builds to make.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Make every build.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the builds and which are made.")] = False,
    container: Annotated[
        bool,
        typer.Option(
            "--container",
            help="Make container images, for the runtime container, with podman, or with docker if "
            "PREREG_CONTAINER_ENGINE=docker; the same choice then runs them.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the environment of an engine build, or its container image, once, outside the tree."""
    from prereg.collect.progress import Lines
    from prereg.collect.runtime import build_environment, build_names, built, environment_folder, load_build

    if listing:
        _list(as_json)
        return
    wanted = build_names() if every else list(names or [])
    if not wanted:
        raise UsageError(
            "name a build", where="NAME", next_step=f"prereg build {' | '.join(build_names())} | --all"
        )
    specs = [load_build(name) for name in wanted]
    if container:
        _images(specs, as_json)
        return
    made = []
    for spec in specs:
        if built(spec) is None:
            say(f"{spec.name}: an environment for this engine is made once; it can take minutes.")
        folder = build_environment(spec, Lines(sys.stderr))
        marker = built(spec)
        made.append(
            {"build": spec.name, "folder": str(folder), "fingerprint": marker.fingerprint if marker else None}
        )
        say(f"{spec.name}: ready in {environment_folder(spec)}")
    if as_json:
        emit({"builds": made})


def _images(specs: list[Build], as_json: bool) -> None:
    from prereg.codec.convert import to_json
    from prereg.collect.image import built_image
    from prereg.collect.image_build import build_image
    from prereg.collect.progress import Lines

    made = []
    for spec in specs:
        if built_image(spec) is None:
            say(f"{spec.name}: a container image for this build is made once; it can take minutes.")
        image = build_image(spec, Lines(sys.stderr))
        made.append(
            {
                "build": spec.name,
                **to_json(image.digests),
                "fingerprint": image.fingerprint,
                "bytes": image.size,
            }
        )
        say(f"{spec.name}: ready as image {image.id}")
    if as_json:
        emit({"images": made})


def _list(as_json: bool) -> None:
    from prereg.collect.image import built_image
    from prereg.collect.runtime import build_names, built, environment_folder, load_build

    rows = []
    for name in build_names():
        spec = load_build(name)
        marker = built(spec)
        image = built_image(spec)
        rows.append(
            {
                "build": name,
                "adapter": spec.adapter,
                "built": marker is not None,
                "fingerprint": marker.fingerprint if marker else None,
                "folder": str(environment_folder(spec)),
                "image": image.id if image else None,
            }
        )
    if as_json:
        emit({"builds": rows})
        return
    table(
        "Engine builds",
        ("build", "adapter", "made", "image", "folder"),
        [
            (
                r["build"],
                r["adapter"],
                "yes" if r["built"] else "no",
                "yes" if r["image"] else "no",
                r["folder"],
            )
            for r in rows
        ],
    )
