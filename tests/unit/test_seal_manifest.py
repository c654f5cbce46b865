"""The manifest: the order of its files, and the paths that no seal takes."""

from __future__ import annotations

import pytest

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
from prereg.model.seal import Manifest, SealedFile, Signer
from prereg.seal.manifest import manifest_bytes, path_fault, read_manifest, sealed_files, sums_bytes


class TestManifest:
    def manifest(self) -> Manifest:
        return Manifest(
            study="s",
            created="2026-03-01T12:00:00+00:00",
            commit=None,
            author=Signer(principal="ada", key="SHA256:" + "A" * 43),
            rules=1,
            environments={},
            files=sealed_files({"a.txt": (b"1", "100644"), "B/c": (b"2", "100755")}),
        )

    def test_files_are_in_code_point_order_and_read_back(self) -> None:
        manifest = self.manifest()
        assert [f.path for f in manifest.files] == ["B/c", "a.txt"]
        data = manifest_bytes(manifest)
        assert read_manifest(data) == manifest
        assert sums_bytes(manifest, data).decode().splitlines() == [
            f"{digest(b'2')}  B/c",
            f"{digest(b'1')}  a.txt",
            f"{digest(data)}  seal/manifest.json",
        ]

    @pytest.mark.parametrize(
        "path",
        [
            *("/a", "a//b", "a/", "./a", "a/../b", "..", ".", "", "a\\b", "a\0b", "a\nb", "a\x7fb"),
            *("e\u0301", "\ud800", "seal/x", "records/x", "ledger.jsonl", "report/x", "seal"),
            *("con", "a/Con/b", "NUL.txt", "nul.tar.gz", "aux .json", "aux  ", "prn", "CONIN$", "conout$.x"),
            *("com0", "COM9.x", "lpt1", "Lpt5 .a.b", "COM¹", "lpt²", "com³.py"),
            *("a.", "...", "a./b", "a ", "a /b", "a<b", "a>b", "a:b", 'a"b', "a|b", "a?b", "a*b"),
        ],
    )
    def test_unsafe_paths(self, path: str) -> None:
        assert path_fault(path) is not None

    @pytest.mark.parametrize(
        "path",
        [
            *("a", "a/b.c", ".gitattributes", "ü", "a b", "...x", "sealed/x", "stampsx", "a.con", "x/a.nul"),
            *("console", "com", "com10", "com⁴", "lpt", "lptx", "nul_", " con", "au x", "conin", "$con"),
        ],
    )
    def test_safe_paths(self, path: str) -> None:
        assert path_fault(path) is None

    @pytest.mark.parametrize(
        ("names", "what"),
        [
            (["b", "a"], "out of order"),
            (["a", "a"], "the same"),
            (["A", "a"], "the same"),
            (["stra\u00dfe", "strasse"], "the same"),
            (["../x"], "empty part"),
        ],
    )
    def test_a_manifest_with_bad_paths_is_refused(self, names: list[str], what: str) -> None:
        value = self.manifest()
        files = tuple(SealedFile(path=n, size=0, mode="100644", sha256="0" * 64) for n in names)
        if what == "the same":
            files = tuple(sorted(files, key=lambda f: f.path))
        data = manifest_bytes(
            Manifest(**{k: getattr(value, k) for k in value.__slots__ if k != "files"}, files=files)
        )
        with pytest.raises(VerificationFailed, match=what) as caught:
            read_manifest(data)
        assert caught.value.where is not None
        assert caught.value.where.startswith("seal/manifest.json#/files/")
