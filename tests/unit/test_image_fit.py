"""Wheels that were compiled on a newer system than the images have are refused before they are installed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import cryptography
import pytest

from prereg.collect.image_fit import refuse_unfit, wanted
from prereg.errors import EngineFailed


def wheel(folder: Path, *symbols: str, elf: bool = True) -> Path:
    """A wheel with one library, or what looks like one, that names these versions of symbols."""
    path = folder / "wheels" / "toy-1.0-abc" / "toy-1.0-py3-none-linux_x86_64.whl"
    path.parent.mkdir(parents=True)
    words = b"\0".join(symbol.encode() for symbol in ("", *symbols, "puts", ""))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy/__init__.py", "# \0GLIBC_2.99\0\n")
        archive.writestr("toy/lib/libtoy.so", (b"\x7fELF" if elf else b"text") + words)
    return path


FITS = ("GLIBC_2.36", "GLIBC_2.2.5", "GLIBC_PRIVATE", "GLIBCXX_3.4.30", "CXXABI_1.3.13")


def test_a_wheel_for_the_release_fits(tmp_path: Path) -> None:
    made = wheel(tmp_path, *FITS)
    assert wanted(made) == {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
    refuse_unfit(made, "toy")


@pytest.mark.parametrize("symbol", ["GLIBC_2.38", "GLIBC_2.100", "GLIBCXX_3.4.32", "CXXABI_1.3.14"])
def test_a_wheel_for_a_newer_system_is_refused(symbol: str, tmp_path: Path) -> None:
    with pytest.raises(EngineFailed) as caught:
        refuse_unfit(wheel(tmp_path, *FITS, symbol), "toy")
    assert caught.value.what.endswith(f"it wants {symbol.replace('_', ' ')}")
    assert "prereg build toy" in str(caught.value.next_step)
    assert "wheels/toy-1.0-abc" in str(caught.value.next_step)


def test_what_is_no_library_wants_nothing(tmp_path: Path) -> None:
    assert wanted(wheel(tmp_path, "GLIBC_2.99", elf=False)) == {}


def test_a_real_library_says_what_it_wants(tmp_path: Path) -> None:
    library = next((Path(cryptography.__file__).parent / "hazmat" / "bindings").glob("*.so"))
    with zipfile.ZipFile(tmp_path / "it.whl", "w") as archive:
        archive.write(library, library.name)
    assert (2, 2, 5) <= wanted(tmp_path / "it.whl")["GLIBC"] < (3,)
