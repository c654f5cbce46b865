"""The auditor as a program: copied alone, isolated, with its exit codes and what it prints."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_plan import Plan
from audits_slow import canon
from audits_tools import ROOT, fingerprint, make_key

from audits import cli
from audits.__main__ import Refusal
from audits.jsonc import parse
from audits.report import code_digest
from audits.schema import Schema

AUDITS = ROOT / "audits"
SCHEMA = Schema(parse((ROOT / "schemas/v1/audit-report.schema.json").read_bytes()))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    (folder / "keys").mkdir()
    for name in ("author", "reviewer", "collector"):
        make_key(folder / "keys", name)
    return Builder(folder / "r", folder / "keys", Plan()).build()


def start(auditor: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(auditor), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={"PATH": "/usr/bin:/bin"})


def alone(tmp_path: Path) -> Path:
    """The folder `audits/` alone, as a reviewer would copy it."""
    shutil.copytree(AUDITS, tmp_path / "audits", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "audits"


def test_the_folder_alone_audits_a_study_copied_alone(tmp_path: Path, study: Path) -> None:
    auditor = alone(tmp_path)
    shutil.copytree(study, tmp_path / "elsewhere" / "tiny")
    trust = study.parent.parent / "trust"
    signers = ("--signers", str(trust / "allowed_signers"), "--roles", str(trust / "roles.json"))
    report = tmp_path / "report.json"
    before = {path: path.read_bytes() for path in auditor.rglob("*")}
    done = start(auditor, str(tmp_path / "elsewhere" / "tiny"), *signers, "--report", str(report))
    assert (done.returncode, done.stderr) == (3, "")
    assert "--without-history" in done.stdout
    assert "schemas of the study's code/schemas/v1" in done.stdout
    done = start(auditor, str(tmp_path / "elsewhere" / "tiny"), *signers, "--without-history")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "result: AGREES (history waived)"
    assert {path: path.read_bytes() for path in auditor.rglob("*")} == before, "something was written"
    assert report.read_bytes() == canon(json.loads(report.read_bytes())) + b"\n"


def test_a_study_that_changed_its_own_schemas(tmp_path: Path, study: Path) -> None:
    auditor = alone(tmp_path)
    shutil.copytree(study, tmp_path / "s")
    (tmp_path / "s/code/schemas/v1/seeds.schema.json").write_text("{}")
    trust = study.parent.parent / "trust"
    signers = ("--signers", str(trust / "allowed_signers"), "--roles", str(trust / "roles.json"))
    done = start(auditor, str(tmp_path / "s"), *signers, "--without-history", "--json")
    steps = {step["number"]: step for step in json.loads(done.stdout)["steps"]}
    assert done.returncode == 1
    assert steps[2]["status"] == "failed"
    assert "code/schemas/v1/seeds.schema.json" in steps[2]["detail"]
    assert steps[5]["status"] == "not-checked"


def test_a_study_sealed_with_laxer_schemas_of_its_own(tmp_path: Path, study: Path) -> None:
    def edit(name: str, value: Any) -> Any:
        if name == "code":
            (value / "schemas/v1/protocol.schema.json").write_text("{}")
        if name == "protocol.json":
            value["note"] = "no schema of rules version 1 knows this"
        return value

    keys = study.parents[2] / "keys"
    lax = Builder(tmp_path / "lax", keys, Plan(edit=edit)).build()
    done = start(alone(tmp_path), str(lax), "--json")
    steps = {step["number"]: step for step in json.loads(done.stdout)["steps"]}
    assert done.returncode == 1, done.stdout
    assert "code/schemas/v1/protocol.schema.json" in steps[2]["detail"]


def _revoked(study: Path, reason: str = "lost") -> str:
    """Revocations of the author's key, from before the seal."""
    key = fingerprint(study.parents[2] / "keys/author")
    item = {"key": key, "at": "2026-01-01T00:00:00+00:00", "reason": reason, "note": ""}
    return json.dumps({"schema": "prereg/revocations/v1", "revocations": [item]})


def _signature(done: subprocess.CompletedProcess[str]) -> str:
    """What step 4 says in the text."""
    return next(line for line in done.stdout.splitlines() if line.startswith("4     signature"))


def test_it_says_that_no_revocations_were_read(tmp_path: Path, study: Path) -> None:
    """A pair of copied files drops what the third one said; that is told, and the exit code is as it was."""
    for folder in ("r", "pair"):
        shutil.copytree(study.parent.parent / "trust", tmp_path / folder / "trust")
    shutil.copytree(study, tmp_path / "r/s/mine")
    at, pair, own = tmp_path / "r/s/mine", tmp_path / "pair/trust", tmp_path / "r/trust"
    signers, roles = ("--signers", str(pair / "allowed_signers")), ("--roles", str(pair / "roles.json"))
    nothing = "no revocations file was given or found: revoked keys count"
    for options in (signers, roles, (*signers, *roles)):
        done = start(AUDITS, str(at), *options, "--without-history")
        assert done.returncode == 0, done.stdout
        assert nothing in _signature(done)
        assert f"warning: {nothing}" in done.stdout.splitlines()[-2:]
    done = start(AUDITS, str(at), "--without-history")
    assert done.returncode == 0
    assert "no revocations;" in _signature(done)
    assert "warning" not in done.stdout

    own.joinpath("revocations.json").write_text(
        json.dumps({**json.loads(_revoked(study)), "revocations": []})
    )
    done = start(AUDITS, str(at), *signers, *roles, "--without-history")
    assert done.returncode == 0
    assert "none lies beside the signers: a key counts unless the repository's own" in _signature(done)
    assert "warning: no revocations file was given, and none" in done.stdout
    assert "revocations" not in start(AUDITS, str(at), "--without-history").stdout


def test_revocations_beside_the_signers_are_read_by_themselves(tmp_path: Path, study: Path) -> None:
    shutil.copytree(study, tmp_path / "s/mine")
    shutil.copytree(study.parent.parent / "trust", tmp_path / "keys")
    (tmp_path / "keys/revocations.json").write_text(_revoked(study))
    signers = ("--signers", "keys/allowed_signers", "--roles", "keys/roles.json")
    done = start(AUDITS, "s/mine", *signers, "--without-history", cwd=tmp_path)
    assert done.returncode == 1
    assert "was revoked at 2026-01-01" in _signature(done)
    assert "revoked keys count" not in done.stdout
    (tmp_path / "keys/revocations.json").rename(tmp_path / "given.json")
    for given, code in (((), 0), (("--revocations", "given.json"), 1)):
        done = start(AUDITS, "s/mine", *signers, *given, "--without-history", cwd=tmp_path)
        assert done.returncode == code
        assert ("revoked keys count" in done.stdout) == (not given)


def test_json_is_the_canonical_report(tmp_path: Path, study: Path) -> None:
    report = tmp_path / "report.json"
    done = start(AUDITS, str(study), "--json", "--report", str(report))
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert done.stdout.encode() == canon(value) + b"\n" == report.read_bytes()
    assert SCHEMA.first_wrong(value) is None
    assert value["auditor"]["code_sha256"] == code_digest(AUDITS)
    assert value["result"] == "AGREES"


def test_the_text_has_every_step_and_ends_with_the_result(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([str(study)]) == 0
    text = capsys.readouterr().out
    for words in ("1     folder", "13    comparison", "control", "NOT_REJECTED", "FAILS", "HELD"):
        assert words in text
    assert text.splitlines()[-1] == "result: AGREES (history checked)"


def test_it_runs_from_the_study_as_a_relative_path(study: Path) -> None:
    assert start(AUDITS, "tiny", cwd=study.parent).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["/nonexistent"], "not a folder"),
        ([], "STUDY"),
        (["{study}", "--what"], "--what"),
        (["{study}", "--report", "/nonexistent/x"], "cannot be written"),
        (["{study}/protocol.json"], "not a folder"),
    ],
)
def test_usage(study: Path, arguments: list[str], says: str) -> None:
    done = start(AUDITS, *(argument.format(study=study) for argument in arguments))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_is_one_line(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def boom(options: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(cli, "audit", boom)
    assert cli.main([str(study)]) == 70
    error = capsys.readouterr().err
    assert "ZeroDivisionError: oh" in error
    assert len(error.splitlines()) == 1
    assert cli.main([str(study), "--debug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_hostile_names_do_not_reach_the_terminal(study: Path, tmp_path: Path) -> None:
    shutil.copytree(study, tmp_path / "s")
    (tmp_path / "s" / "\x1b[31mred").write_text("x")
    done = start(AUDITS, str(tmp_path / "s"), "--without-history")
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "\\x1b[31mred" in done.stdout


@pytest.mark.parametrize("name", ["prereg", "prereg.stats", "harness", "harness.oracle.naive"])
def test_the_code_under_audit_is_refused(name: str) -> None:
    with pytest.raises(ImportError, match="must not import"):
        Refusal.find_spec(name)
    assert Refusal.find_spec("prereg_other") is None


def test_the_program_refuses_it_though_it_is_there(tmp_path: Path, study: Path) -> None:
    auditor = alone(tmp_path)
    (tmp_path / "prereg.py").write_text("")
    with (auditor / "cli.py").open("a") as file:
        file.write("\n\nimport prereg\n")
    done = start(auditor, str(study))
    assert done.returncode == 1
    assert "must not import 'prereg'" in done.stderr


def test_nothing_beside_the_folder_can_be_imported(tmp_path: Path, study: Path) -> None:
    auditor = alone(tmp_path)
    (tmp_path / "statistics.py").write_text("raise SystemExit('shadowed')")
    (auditor / "argparse.py").write_text("raise SystemExit('shadowed')")
    assert start(auditor, str(study)).returncode in (0, 3), "a file beside a module shadowed the library"


def test_bytecode_is_not_believed(tmp_path: Path, study: Path) -> None:
    auditor = alone(tmp_path)
    source = auditor / "report.py"
    original = source.read_bytes()
    source.write_bytes(b"raise SystemExit('forged')".ljust(len(original), b"#"))
    times = (source.stat().st_atime, source.stat().st_mtime)
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    source.write_bytes(original)
    os.utime(source, times)
    assert start(auditor, str(study)).returncode == 0


def test_the_digest_is_of_the_code(tmp_path: Path) -> None:
    auditor = alone(tmp_path)
    assert code_digest(auditor) == code_digest(AUDITS)
    (auditor / "notes.txt").write_text("x")
    assert code_digest(auditor) == code_digest(AUDITS)
    (auditor / "rules.json").write_text('{"version":2}\n')
    assert code_digest(auditor) != code_digest(AUDITS)


def test_only_the_standard_library_and_cryptography() -> None:
    import ast

    allowed = set(sys.stdlib_module_names) | {"cryptography", "audits"}
    for path in AUDITS.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "?"]
            for name in names:
                assert name.partition(".")[0] in allowed, f"{path.name} imports {name}"
        assert len(path.read_text().splitlines()) < 400


@pytest.mark.parametrize(
    "at", ["seeds.json", "ledger.jsonl", "records", "records/main.probe.on/00000.jsonl.gz"]
)
def test_a_pipe_in_a_study_beside_this_one_does_not_hang(tmp_path: Path, study: Path, at: str) -> None:
    shutil.copytree(study.parent.parent, tmp_path / "r", symlinks=True)
    pipe = tmp_path / "r/studies/beside" / at
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    command = [sys.executable, "-I", str(AUDITS), str(tmp_path / "r/studies/tiny")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert "beside" in done.stdout
    # A draft whose seeds cannot be understood reserves nothing; anything more than a draft is a fault.
    assert done.returncode == (0 if at == "seeds.json" else 1), done.stdout


def test_a_pipe_that_takes_a_file_s_place_in_the_last_moment_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "seeds.json")
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\nfrom audits.seeds import reserved\nfrom audits.fault import Fault\n"
        "Path.is_file = lambda self, **_: True\n"
        f"try: reserved(Path({str(tmp_path)!r}), 'x')\nexcept Fault as fault: print(fault)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.stdout == "seeds.json: not a regular file\n"
