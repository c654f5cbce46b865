"""A coin study, sealed and collected once, and ways to break it: shared by the tests of verification."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import digest, dump_file
from prereg.errors import PreregError
from prereg.model.record import Record
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.head import head_bytes, sign_head
from prereg.seal.records import encode_shard
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import START, append, head_of, line_of, read_ledger
from tests.unit.study_fixture import (
    copy_repository,
    fabricate_records,
    git,
    make_study,
    seal,
    signing_key,
)


@pytest.fixture(scope="module")
def sealed_once(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = make_study(tmp_path_factory.mktemp("sealed"))
    seal(paths)
    return paths


@pytest.fixture(scope="module")
def collected_once(tmp_path_factory: pytest.TempPathFactory, sealed_once: StudyPaths) -> StudyPaths:
    paths = copy_repository(sealed_once, tmp_path_factory.mktemp("collected") / "x")
    fabricate_records(paths)
    return paths


@pytest.fixture
def sealed(sealed_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(sealed_once, tmp_path / "copy")


@pytest.fixture
def collected(collected_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(collected_once, tmp_path / "copy")


def fails(paths: StudyPaths, step: int, what: str, **options: Any) -> PreregError:
    """Verification stops at that step, and the report shows the same step as the first that failed."""
    with pytest.raises(PreregError, match=what) as caught:
        verify_study(paths, **options)
    assert f"(step {step}, " in caught.value.what
    if not options:
        first = next(s for s in verify_report(paths) if s.status == "failed")
        assert first.number == step
        assert caught.value.what.split(" (step")[0] in first.detail
    return caught.value


def finish(paths: StudyPaths, who: str, *touched: Path) -> None:
    sign_head_and_commit(
        paths, key=signing_key(paths, who), principal=f"{who}@example.org", message="x", touched=touched
    )


def resign_head(paths: StudyPaths, who: str = "col") -> None:
    """Make head and signature agree with the ledger as it now is, without a commit."""
    data = paths.ledger.read_bytes()
    head = head_bytes("coin", read_ledger(data), head_of(data))
    paths.head.write_bytes(head)
    paths.head_signature.write_bytes(sign_head(head, signing_key(paths, who)))


def enter(paths: StudyPaths, kind: str, body: dict[str, Any], who: str) -> None:
    """An entry that only its body's check can refuse; the head is signed by its actor."""
    append(paths, kind, body, f"{who}@example.org")  # type: ignore[arg-type]
    resign_head(paths, who)


def forge(
    paths: StudyPaths,
    change: Callable[[dict[str, Any]], object] = lambda manifest: None,
    *,
    actor: str = "ada",
    **body: Any,
) -> None:
    """A seal with another manifest or `sealed` body, made anew in every other respect by its author."""
    value = json.loads(paths.manifest.read_bytes())
    change(value)
    data = dump_file(value)
    signature = signing_key(paths).sign(data, namespace="prereg-seal")
    paths.manifest.write_bytes(data)
    paths.manifest_signature.write_bytes(signature)
    sums = [f"{f['sha256']}  {f['path']}\n" for f in value["files"]]
    paths.sums.write_text("".join([*sums, f"{digest(data)}  seal/manifest.json\n"]))
    sealed = {"seal": digest(data), "signature_sha256": digest(signature), "commit": value["commit"]}
    line = line_of(1, value["created"], "sealed", f"{actor}@example.org", {**sealed, **body}, START)
    paths.ledger.write_bytes(line)
    resign_head(paths, actor)
    git(paths.repository, "add", "studies")
    git(paths.repository, "commit", "-q", "--amend", "-m", "Forged")


SHARD = "records/main.fair.old/00000"


Tamper = Callable[[StudyPaths], object]


def put(name: str, data: bytes) -> Tamper:
    def do(paths: StudyPaths) -> None:
        (paths.root / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.root / name).write_bytes(data)

    return do


def link(name: str, target: str) -> Tamper:
    def do(paths: StudyPaths) -> None:
        (paths.root / name).unlink(missing_ok=True)
        (paths.root / name).symlink_to(target)

    return do


def remove(name: str) -> Tamper:
    return lambda paths: (paths.root / name).unlink()


def replace(name: str, old: bytes, new: bytes) -> Tamper:
    def do(paths: StudyPaths) -> None:
        data = (paths.root / name).read_bytes()
        assert old in data
        (paths.root / name).write_bytes(data.replace(old, new, 1))

    return do


def flip(name: str) -> Tamper:
    """Change the byte in the middle."""

    def do(paths: StudyPaths) -> None:
        data = bytearray((paths.root / name).read_bytes())
        data[len(data) // 2] ^= 1
        (paths.root / name).write_bytes(data)

    return do


def chmod(name: str, mode: int) -> Tamper:
    return lambda paths: (paths.root / name).chmod(mode)


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Tamper:
    """Change the ledger's lines."""

    def do(paths: StudyPaths) -> None:
        paths.ledger.write_bytes(b"".join(change(paths.ledger.read_bytes().splitlines(keepends=True))))

    return do


def then(*steps: Tamper) -> Tamper:
    return lambda paths: [step(paths) for step in steps]


def record_line(record: Record) -> bytes:
    """The line of one record, as a shard holds it."""
    return gzip.decompress(encode_shard([record]).data)
