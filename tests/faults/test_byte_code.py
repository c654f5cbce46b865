"""Byte code that lies beside the sources of an environment is no part of its fingerprint, and never runs."""

from __future__ import annotations

import importlib.util
import marshal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit"), str(HERE.parent / "tamper")]

import verbs  # noqa: E402
from desk import Desk, copy_of, make_desk  # noqa: E402

from prereg.codec.study_files import parse_study  # noqa: E402
from prereg.collect.network import isolation  # noqa: E402
from prereg.collect.rehearse import rehearse  # noqa: E402
from prereg.collect.runtime import environment_of, interpreter  # noqa: E402
from prereg.collect.worker import Launch, Worker  # noqa: E402
from prereg.store.layout import harness_root  # noqa: E402

STUDY_FILES = ("protocol", "seeds", "events", "predicates", "predictions")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The packages of a fresh environment of the build `plain`: one module, imported at every start."""
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path / "builds"))
    assert verbs.prereg("build", "plain").code == 0
    (found,) = environment_of("plain").glob("lib/python*/site-packages")
    (found / "sitecustomize.py").write_text("CLEAN = True\n")
    yield found


def poison(site: Path, marker: Path) -> None:
    """Give the module other byte code, which Python is told not to compare with the source."""
    code = compile(f"open({str(marker)!r}, 'a').write('x')\nimport random; random.seed = None", "-", "exec")
    place = Path(importlib.util.cache_from_source(str(site / "sitecustomize.py")))
    place.parent.mkdir(exist_ok=True)
    unchecked = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + b"\x00" * 8
    place.write_bytes(unchecked + marshal.dumps(code))


def test_altered_byte_code_does_not_run(
    site: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    desk = make_desk(tmp_path / "home", tmp_path / "builds")
    clean = copy_of(desk, tmp_path / "clean")
    assert clean.collect().code == 0
    marker = tmp_path / "ran"
    poison(site, marker)
    with Worker(
        Launch(
            python=interpreter(environment_of("plain")),
            code=harness_root().parent,
            scratch=tmp_path / "scratch",
            isolation=isolation(),
        )
    ) as worker:
        worker.call("hello")
    assert marker.read_text(), "the poison is no poison"
    marker.unlink()
    study = parse_study({f"{n}.json": (desk.paths.root / f"{n}.json").read_bytes() for n in STUDY_FILES})
    assert not any(arm.crashed for arm in rehearse(desk.paths, study))
    done = desk.collect()
    assert done.code == 0, done.said
    assert not marker.exists()
    records = sorted(p.relative_to(clean.paths.records) for p in clean.paths.records.rglob("*.gz"))
    assert records
    for name in records:
        assert (desk.paths.records / name).read_bytes() == (clean.paths.records / name).read_bytes()
    record_property("group", "altered byte code")
    for name, count in desk.faults().items():
        record_property(name, count)
    desk.check_sound()


@pytest.mark.parametrize("name", ["usercustomize.pyc", "random.pyc"])
def test_byte_code_without_a_source_is_refused(
    name: str, site: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Outside of the caches it is imported in the place of a source."""
    record_property("group", "altered byte code")
    desk: Desk = make_desk(tmp_path / "home", tmp_path / "builds")
    (site / name).write_bytes(
        importlib.util.MAGIC_NUMBER + b"\x00" * 12 + marshal.dumps(compile("", "-", "exec"))
    )
    done = desk.collect()
    assert done.code == 4, done.said
    assert "gate 6" in done.said and name in done.said
