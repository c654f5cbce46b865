"""The fingerprint of an environment: the same at another place, another after any change."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import fingerprint
from harness.session import Session


def site_folder(environment: Path) -> Path:
    return environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def install(environment: Path) -> None:
    """Lay a small distribution as an installer would: a module, a script, notes of the installer's own."""
    site = site_folder(environment)
    (site / "tiny").mkdir()
    (site / "tiny" / "__init__.py").write_text("A = 1\n")
    (site / "tiny" / "données.bin").write_bytes(bytes(range(256)))
    script = environment / "bin" / "tiny"
    script.write_text(f"#!{environment}/bin/python\nimport tiny\n")
    script.chmod(0o755)
    manual = environment / "share" / "tiny.1"
    manual.parent.mkdir(exist_ok=True)
    manual.write_text("a manual page\n")
    info = site / "Tiny_Thing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Tiny_Thing\nVersion: 1.0\n\nVersion: 9\n")
    (info / "INSTALLER").write_text(f"an installer at {environment}\n")
    (info / "direct_url.json").write_text(f'{{"url": "{environment}"}}')
    listed = [
        "tiny/__init__.py",
        "tiny/__pycache__/__init__.cpython-311.pyc",
        "tiny/données.bin",
        "../../../share/tiny.1",
        "Tiny_Thing-1.0.dist-info/METADATA",
        "Tiny_Thing-1.0.dist-info/INSTALLER",
        "Tiny_Thing-1.0.dist-info/direct_url.json",
        "Tiny_Thing-1.0.dist-info/RECORD",
    ]
    # What an installer writes about its scripts differs from place to place.
    record = "".join(f"{path},sha256={environment.name},1\n" for path in listed)
    of_script = base64.urlsafe_b64encode(hashlib.sha256(script.read_bytes()).digest()).rstrip(b"=").decode()
    record += f"../../../bin/tiny,sha256={of_script},1\n"
    (info / "RECORD").write_text(record)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def take(environment: Path) -> dict[str, Any]:
    with Session(str(environment / "bin" / "python")) as session:
        return session.ask("fingerprint").ok


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = tmp_path_factory.mktemp("one") / "environment"
    venv.create(environment, with_pip=True, symlinks=True)
    install(environment)
    return environment


@pytest.fixture
def site(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the site folder alone, to be changed."""
    return Path(shutil.copytree(site_folder(pristine), tmp_path / "lib" / "x" / "site-packages"))


def test_two_environments_of_one_lock_at_different_places(pristine: Path, tmp_path: Path) -> None:
    other = tmp_path / "a longer path" / "of another environment"
    venv.create(other, with_pip=True, symlinks=True)
    install(other)
    one, two = take(pristine), take(other)
    assert one == two
    assert one["digest"] == fingerprint.digest(one["detail"])
    detail = one["detail"]
    assert detail["python"] == sys.version.split()[0]
    assert detail["executable"] == hashlib.sha256(Path(sys.executable).resolve().read_bytes()).hexdigest()
    assert {"pip", "tiny-thing"} <= detail["distributions"].keys()
    assert detail["distributions"]["tiny-thing"]["version"] == "1.0"
    # pip's own scripts name the environment, and that pip runs leaves byte code behind: neither counts.
    (site_folder(other) / "tiny" / "__pycache__").mkdir()
    (site_folder(other) / "tiny" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"anything")
    assert take(other) == one


def flip(site: Path) -> None:
    path = site / "tiny" / "__init__.py"
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))


def delete(site: Path) -> None:
    (site / "tiny" / "données.bin").unlink()


def add(site: Path) -> None:
    (site / "sitecustomize.py").write_text("A = 2\n")


def add_to_a_package(site: Path) -> None:
    (site / "tiny" / "extra.py").write_text("")


def add_bytecode_without_a_source(site: Path) -> None:
    (site / "sitecustomize.pyc").write_bytes(b"imported at every start")


def add_link(site: Path) -> None:
    (site / "linked").symlink_to(site / "tiny")


def rename(site: Path) -> None:
    metadata = site / "Tiny_Thing-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.1"))


def forget(site: Path) -> None:
    (site / "Tiny_Thing-1.0.dist-info" / "RECORD").unlink()


@pytest.mark.parametrize(
    "change", [flip, delete, add, add_to_a_package, add_bytecode_without_a_source, add_link, rename, forget]
)
def test_any_change_gives_another_digest(site: Path, change: Callable[[Path], None]) -> None:
    before = fingerprint.describe([site])
    assert fingerprint.digest(before) == fingerprint.digest(fingerprint.describe([site]))
    change(site)
    after = fingerprint.describe([site])
    assert fingerprint.digest(after) != fingerprint.digest(before)


def test_a_change_outside_what_is_imported_counts(pristine: Path) -> None:
    before = take(pristine)
    script, manual = pristine / "bin" / "tiny", pristine / "share" / "tiny.1"
    kept = script.read_text(), manual.read_text()
    try:
        script.write_text(kept[0] + "import os\n")
        assert [line.split()[0] for line in take(pristine)["detail"]["unowned"]] == ["bin/tiny"]
        script.write_text(kept[0])
        assert take(pristine) == before
        manual.write_text("another manual page\n")
        assert take(pristine)["digest"] != before["digest"]
    finally:
        script.write_text(kept[0])
        manual.write_text(kept[1])


@pytest.mark.parametrize("kind", ["program", "link", "lost link", "folder"])
def test_a_program_beside_the_interpreter_is_named(pristine: Path, tmp_path: Path, kind: str) -> None:
    """`bin` is in the PATH of whatever an engine starts: a `uname` there would be run unseen."""
    before, place = take(pristine), pristine / "bin" / "uname"
    if kind == "folder":
        place.mkdir()
    elif kind == "program":
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
    else:
        place.symlink_to("/bin/true" if kind == "link" else tmp_path / "nothing")
    try:
        after = take(pristine)
    finally:
        place.rmdir() if kind == "folder" else place.unlink()
    assert [line.split()[0] for line in after["detail"]["unowned"]] == ["bin/uname"]
    assert after["digest"] != before["digest"]
    assert take(pristine) == before


def test_what_nobody_owns_is_named_with_its_digest(site: Path) -> None:
    assert fingerprint.describe([site])["unowned"] == []
    add(site)
    add_link(site)
    assert fingerprint.describe([site])["unowned"] == [
        f"linked link:{site / 'tiny'}",
        f"sitecustomize.py {sha('A = 2' + chr(10))}",
    ]


def test_the_digest_of_a_distribution_is_what_it_is_documented_to_be(site: Path) -> None:
    delete(site)
    (site / ".." / ".." / ".." / "share").mkdir()
    (site / ".." / ".." / ".." / "share" / "tiny.1").write_text("a manual page\n")
    metadata = (site / "Tiny_Thing-1.0.dist-info" / "METADATA").read_text()
    lines = [
        f"../../../share/tiny.1 {sha('a manual page' + chr(10))}\n",
        f"Tiny_Thing-1.0.dist-info/METADATA {sha(metadata)}\n",
        f"tiny/__init__.py {sha('A = 1' + chr(10))}\n",
        "tiny/données.bin missing\n",
    ]
    described = fingerprint.describe([site])["distributions"]["tiny-thing"]
    assert described == {"version": "1.0", "files": sha("".join(lines))}


def test_a_second_site_folder_is_kept_apart(site: Path, tmp_path: Path) -> None:
    second = Path(shutil.copytree(site, tmp_path / "second"))
    add(second)
    detail = fingerprint.describe([site, second])
    assert {"tiny-thing", "tiny-thing#1"} <= detail["distributions"].keys()
    assert [line.split("#")[1] for line in detail["unowned"]] == ["1"]


def test_another_interpreter_in_the_place_of_python_is_seen(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    before = take(environment)
    python = environment / "bin" / "python"
    real = python.resolve()
    python.unlink()
    (environment / "bin" / "python.real").symlink_to(real)
    python.write_text(f'#!/bin/sh\nexec {environment}/bin/python.real "$@"\n')
    python.chmod(0o755)
    assert take(environment)["digest"] != before["digest"]
