"""The base image of all builds: a minimal Debian with its Python, made once on this machine.

No registry is asked: debootstrap takes it from the mirror that this machine's own package manager uses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from prereg.codec.canonical import dump_file, loads_machine
from prereg.collect.container_engine import INSTALL, Engine, ask, find_tool
from prereg.collect.image import digests_of, images_folder
from prereg.collect.installer import alone, run
from prereg.collect.progress import Progress
from prereg.errors import EngineFailed, PreregError
from prereg.model.image import Image
from prereg.store.files import read_once, write_whole

RELEASE = "bookworm"
PYTHON_VERSION = "3.11"
"""That release's Python: wheels are fetched for it."""
MIRROR = "PREREG_DEBIAN_MIRROR"
BASE_NAME = "localhost/prereg/base"
_SPARE = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "var/cache/apt",
    "var/lib/apt/lists",
)


def base_image(engine: Engine, progress: Progress) -> Image:
    """The base image, made now unless it was before. Raises EngineFailed that says what is missing."""
    folder = images_folder()
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / f"base-{RELEASE}.json"
    with alone(folder / "base.lock", "base image", progress):
        known = _known(engine, marker) or _carried(engine, progress)
        if known is not None:
            return known
        progress.note(f"base image: making a minimal Debian {RELEASE}, once; it takes a minute or two")
        with tempfile.TemporaryDirectory(prefix="base-", dir=folder) as place:
            root = Path(place) / "root"
            _bootstrap(engine.name, root, progress)
            for spare in _SPARE:
                shutil.rmtree(root / spare, ignore_errors=True)
            made = digests_of(engine, _imported(engine, root, progress))
        if made is None:
            raise EngineFailed("the base image is gone as soon as it was made")
        keep(engine, "base", made)
        note = {
            "id": made.id,
            "image": made.image,
            "platform": made.platform,
            "time": datetime.now(UTC).isoformat(),
        }
        write_whole(marker, dump_file(note))
        progress.note(f"base image: {made.id}")
        return made


def keep(engine: Engine, name: str, image: Image) -> None:
    """Name an image, for people to read and so that it is not pruned; a name of its own that never moves."""
    short = image.id.removeprefix("sha256:")
    ask(engine, ["tag", short, f"localhost/prereg/{name}:{short[:12]}"])


def _known(engine: Engine, marker: Path) -> Image | None:
    if not marker.is_file():
        return None
    try:
        value = loads_machine(read_once(marker), where=str(marker))
    except PreregError:
        return None
    if not isinstance(value, dict):
        return None
    return digests_of(engine, str(value.get("id", "")))


def _carried(engine: Engine, progress: Progress) -> Image | None:
    """The base that somebody made elsewhere (`keep` named it so) and loaded into this engine, or None.

    Whoever is no root cannot make one. Its bytes are bound by the id of every image that is built on it.
    """
    words = ["images", "--quiet", "--no-trunc", "--filter", f"reference={BASE_NAME}"]
    found = ask(engine, words).split()
    if not found:
        return None
    progress.note(f"base image: {found[0]}, which is here as {BASE_NAME}")
    return digests_of(engine, found[0])


def _bootstrap(engine: str, root: Path, progress: Progress) -> None:
    program = find_tool("debootstrap")
    if program is None:
        raise EngineFailed("debootstrap is not installed: it makes the base image", next_step=INSTALL)
    if os.geteuid() != 0:
        raise EngineFailed(
            "only root can make the base image (debootstrap)",
            next_step=f"prereg build NAME --container, as root; or load a base made elsewhere: "
            f"{engine} save -o FILE {BASE_NAME} there, {engine} load -i FILE here",
        )
    words = ["--variant=minbase", "--include=python3", RELEASE, str(root), mirror()]
    run([program, *words], "base image", progress)


def mirror() -> str:
    """The Debian mirror: PREREG_DEBIAN_MIRROR, else the one in this machine's sources of packages.

    Raises EngineFailed where neither names one.
    """
    chosen = os.environ.get(MIRROR)
    if chosen:
        return chosen
    apt = find_tool("apt-get")
    told = ""
    if apt is not None:
        words = [apt, "indextargets", "--format", "$(CODENAME) $(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        told = done.stdout.decode("utf-8", "replace")
    targets = [line.split(" ") for line in told.splitlines() if line.count(" ") == 2]
    fitting = [t for t in targets if t[0] == RELEASE] + [
        t for t in targets if t[1] == "Debian" and "-" not in t[0]
    ]
    if not fitting:
        raise EngineFailed(
            "this machine's package sources name no Debian mirror to make the base image from",
            next_step=f"{MIRROR}=URL prereg build NAME --container",
        )
    return fitting[0][2]


def _imported(engine: Engine, root: Path, progress: Progress) -> str:
    """The id of the image made of the files below `root`."""
    progress.note("base image: importing it")
    tar = ["tar", "-C", str(root), "--numeric-owner", "--one-file-system", "-c", "."]
    with subprocess.Popen(tar, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as packing:
        done = subprocess.run(
            [engine.program, "import", *(["--quiet"] if engine.name == "podman" else []), "-"],
            stdin=packing.stdout,
            capture_output=True,
            check=False,
        )
    if done.returncode != 0 or packing.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise EngineFailed(f"the base image could not be imported: {said or 'tar failed'}")
    return done.stdout.decode("ascii", "replace").split()[-1]
