"""Making the image of a build: wheels are fetched outside, and installed on the base without a network."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from prereg.codec.canonical import dump_file
from prereg.collect.container import ENVIRONMENT, LABEL, PYTHON, USER, engine_options
from prereg.collect.container_engine import Engine, ask, find_engine, inspect, new_name, remove, sweep
from prereg.collect.image import (
    BuiltImage,
    built_image,
    digests_of,
    fingerprint_of,
    image_command,
    image_marker,
)
from prereg.collect.image_base import PYTHON_VERSION, base_image, keep
from prereg.collect.image_fit import refuse_unfit
from prereg.collect.installer import alone, bundled_pip, pip_for, run
from prereg.collect.progress import Progress
from prereg.collect.runtime import Build, base_python, cache_folder
from prereg.collect.wheels import compiled_wheel, split_lock, this_machine, wheel_place
from prereg.errors import EngineFailed
from prereg.model.image import Image
from prereg.store.files import write_whole

HOUSE = "/wheels"
"""Where the wheels are seen while a build is installed."""


def build_image(build: Build, progress: Progress) -> BuiltImage:
    """Make the image of a build, or return the finished one if the engine still has it.

    Two builds at once wait for each other; what a killed one leaves has no marker and is made anew. Raises
    EngineFailed with what is missing, or with the end of the installer's output.
    """
    engine = find_engine()
    marker = image_marker(build)
    marker.parent.mkdir(parents=True, exist_ok=True)
    with alone(marker.with_suffix(".lock"), build.name, progress):
        known = built_image(build)
        if known is not None and digests_of(engine, known.id) is not None:
            return known
        sweep(engine)
        base = base_image(engine, progress)
        house = _wheelhouse(build, progress)
        made = _installed(engine, build, base, house, progress)
        progress.note(f"{build.name}: taking the fingerprint inside a container")
        taken = fingerprint_of(engine, build.name, made)
        note = {
            "name": build.name,
            "lock": build.lock_digest,
            "base": base.id,
            "image": made.image,
            "platform": made.platform,
            "id": made.id,
            "fingerprint": taken.digest,
            "python": str(taken.detail.get("python", "")),
            "size": int(inspect(engine, "image", made.id)["Size"]),
            "time": datetime.now(UTC).isoformat(),
            "detail": taken.detail,
        }
        write_whole(marker, dump_file(note))
    finished = built_image(build)
    assert finished is not None
    progress.note(f"{build.name}: image {finished.id}, {finished.size / 1e6:,.0f} MB")
    return finished


def _wheelhouse(build: Build, progress: Progress) -> Path:
    """The folder with every wheel of the build, and the lists to install them by; filled once."""
    place = cache_folder() / "wheelhouses" / f"{build.name}-{build.lock_digest[:12]}"
    if place.is_dir():
        progress.note(f"{build.name}: its wheels were fetched before")
        return place
    base, version = base_python(build)
    if version != PYTHON_VERSION:
        raise EngineFailed(
            f"wheels for the image's Python {PYTHON_VERSION} are fetched with its like; {base} is {version}",
            next_step=f"PREREG_PYTHON=/path/to/python{PYTHON_VERSION} {image_command(build.name)}",
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{place.name}.part-", dir=place.parent) as part:
        house = Path(part) / "house"
        house.mkdir()
        pip = [*pip_for(base, build.name), "--python", base, "--disable-pip-version-check", "--no-input"]
        _fetch(build, version, house, pip, progress)
        house.rename(place)
    return place


def _fetch(build: Build, version: str, house: Path, pip: Sequence[str], progress: Progress) -> None:
    def download(*words: str) -> None:
        run([*pip, "download", "-d", str(house), *words], build.name, progress)

    bundled = bundled_pip()
    if bundled is not None:
        shutil.copy(bundled, house)
    else:
        download("--no-deps", "pip")
    rest, pinned = split_lock(build.lock, [source.package for source in build.compiled])
    for source in build.compiled:
        entry = pinned[source.package]
        known = wheel_place(cache_folder() / "wheels", source, entry, this_machine(version))
        wheel = compiled_wheel(source, entry, known, pip=pip, name=build.name, progress=progress)
        refuse_unfit(wheel, build.name)
        shutil.copy(wheel, house)
    (house / "compiled.txt").write_text("".join(f"{p}=={e.version}\n" for p, e in pinned.items()))
    for name, lock in (("requirements.lock", rest), ("data.lock", build.data)):
        write_whole(house / name, lock)
        if _lists_something(lock):
            progress.note(f"{build.name}: fetching what {name} lists")
            download("--require-hashes", "--no-deps", "-r", str(house / name))
    (house / "unhashed.txt").write_text("".join(f"{requirement}\n" for requirement in build.unhashed))
    if build.unhashed:
        progress.note(f"{build.name}: fetching {', '.join(build.unhashed)}")
        # With dependencies, as an environment gets them; the versions of the lock hold for them too.
        versions = house / "versions.txt"
        names = [line.split()[0] for line in rest.decode().splitlines() if line[:1].isalnum()]
        versions.write_text("".join(f"{name.rstrip(';')}\n" for name in names))
        download("-c", str(versions), *build.unhashed)


def _lists_something(lock: bytes) -> bool:
    lines = (line.strip() for line in lock.decode("utf-8", "replace").splitlines())
    return any(line and not line.startswith("#") for line in lines)


def _installed(engine: Engine, build: Build, base: Image, house: Path, progress: Progress) -> Image:
    """Install the wheels in a container without a network, and make an image of it."""
    progress.note(f"{build.name}: installing inside a container without a network")
    name = new_name()
    own = [*engine_options(engine.runc), "--http-proxy=false"] if engine.name == "podman" else []
    limits = [*own, "--network", "none", "--pull", "never"]
    mount = f"type=bind,source={house},destination={HOUSE},readonly=true"
    words = ["run", "--name", name, "--label", LABEL, *limits, "--mount", mount]
    try:
        run([engine.program, *words, base.id, "/bin/sh", "-euc", _script(build, house)], build.name, progress)
        progress.note(f"{build.name}: making the image")
        changes = (
            f"USER {USER}:{USER}",
            f"LABEL prereg.build={build.name}",
            f"LABEL prereg.lock={build.lock_digest}",
        )
        quiet = ["--quiet"] if engine.name == "podman" else []
        words = ["commit", *quiet, *(word for change in changes for word in ("--change", change)), name]
        said = ask(engine, words, seconds=1800)
    finally:
        remove(engine, name)
    made = digests_of(engine, said.split()[-1])
    if made is None:
        raise EngineFailed(f"the image of {build.name} is gone as soon as it was made")
    keep(engine, build.name, made)
    return made


def _script(build: Build, house: Path) -> str:
    """What is run as root inside: the same steps as for an environment outside, from the wheels alone."""
    pip_wheel = next(house.glob("pip-*.whl")).name
    pip = f"python3 {HOUSE}/{pip_wheel}/pip --python {PYTHON} --disable-pip-version-check --no-input"
    install = f"{pip} install --no-index --find-links {HOUSE} --no-cache-dir --root-user-action=ignore"
    steps = [f"python3 -m venv --without-pip {ENVIRONMENT}"]
    if _lists_something(build.lock):
        steps.append(f"{install} --require-hashes --no-deps -r {HOUSE}/requirements.lock")
    if build.compiled:
        steps.append(f"{install} --no-deps -r {HOUSE}/compiled.txt")
    if build.unhashed:
        steps.append(f"{install} -r {HOUSE}/unhashed.txt")
    if len(steps) > 1:
        steps.append(f"{pip} check")
    if build.data:
        steps.append(f"{install} --require-hashes --no-deps -r {HOUSE}/data.lock")
    return "\n".join(steps)
