"""The command line: exit codes, one JSON object, errors that say what, where and what next."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.unit import study_fixture

ROOT = Path(__file__).resolve().parents[2]
PREREG = str(Path(sys.executable).parent / "prereg")


def prereg(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PREREG, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


USAGE = {
    "no such verb": ["nosuch"],
    "an argument is missing": ["check"],
    "an option is missing": ["draft", "x"],
    "an option without its value": ["draft", "x", "--template"],
    "no such option": ["check", ".", "--colour"],
    "a number that is none": ["collect", ".", "--key", "k", "--workers", "two"],
    "no such template": ["draft", "x", "--template", "nope"],
    "no such folder": ["verify", "nowhere"],
    "no study in the folder": ["status", "."],
    "no such key": ["seal", ".", "--key", "nowhere"],
    "no such build": ["build", "nowhere"],
    "no build named": ["build"],
    "no studies": ["seeds", "check", "nowhere"],
    "a setting that is none": ["probe", "--build", "hf-5.17.0", "--set", "top_k"],
    "a setting that is no JSON": ["probe", "--build", "hf-5.17.0", "--set", "top_k=x"],
    "a prompt with other letters": ["probe", "--build", "hf-5.17.0", "--prompt", "xyz"],
    "a tolerance that is none": ["probe", "--build", "hf-5.17.0", "--tolerance", "nan"],
    "a model seed that is none": ["probe", "--build", "hf-5.17.0", "--model-seed", "abc"],
    "no such drafter": ["probe", "--build", "hf-5.17.0", "--drafter", "crystal-ball"],
}


@pytest.mark.parametrize("name", USAGE)
def test_a_usage_error_ends_with_2_and_says_what_next(name: str, tmp_path: Path) -> None:
    done = prereg(*USAGE[name], cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr
    assert done.stdout == ""


def test_help_for_every_verb_has_an_example() -> None:
    shown = prereg("--help").stdout
    verbs = re.findall(r"^│ (\w+) ", shown.split("Commands")[1], re.M)
    assert len(verbs) >= 15
    for verb in verbs:
        done = prereg(verb, "--help")
        assert done.returncode == 0, verb
        if verb not in ("key", "seeds"):
            assert "Example: " in done.stdout, verb


@pytest.mark.parametrize("verb", ["verify", "check", "diff", "status", "report"])
def test_a_failure_prints_one_json_object(verb: str, tmp_path: Path) -> None:
    paths = study_fixture.make_study(tmp_path)
    study_fixture.seal(paths)
    (paths.root / "coin.py").write_text("changed")
    (paths.root / "predictions.json").write_text("{")
    done = prereg(verb, str(paths.root), "--json")
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout
    assert isinstance(json.loads(lines[0]), dict)
    assert done.returncode == (0 if verb == "status" else done.returncode)
    assert done.returncode in (0, 1, 2)
    assert "Traceback" not in done.stderr


STATES = {
    "collect a draft": (["collect", "{study}", "--key", "{ada}"], 4, "prereg seal"),
    "analyse a draft": (["analyse", "{study}", "--key", "{ada}"], 4, "prereg seal"),
    "audit a draft": (["audit", "{study}", "--key", "{rex}"], 4, "prereg seal"),
    "verify a draft": (["verify", "{study}"], 4, "prereg seal"),
    "diff a draft": (["diff", "{study}"], 4, "prereg seal"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_verb_out_of_order_ends_with_4(name: str, tmp_path: Path) -> None:
    paths = study_fixture.make_study(tmp_path)
    keys = {who: str(tmp_path / "keys" / who) for who in ("ada", "rex")}
    arguments, code, remedy = STATES[name]
    done = prereg(*(a.format(study=paths.root, **keys) for a in arguments))
    assert done.returncode == code, done.stderr
    assert remedy in done.stderr


def test_every_import_is_a_declared_dependency() -> None:
    """What the tests' environment happens to hold must not hide a missing dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=\[ ]", d)[0].lower() for d in project["dependencies"]}
    names = {"git": "gitpython", "rfc3161_client": "rfc3161-client"}
    allowed = set(sys.stdlib_module_names) | {"prereg"}
    for path in (ROOT / "prereg").rglob("*.py"):
        if "templates" in path.parts:
            continue
        # The pytest plugin is loaded by pytest alone.
        here = allowed | {"pytest"} if "testing" in path.parts else allowed
        for node in ast.walk(ast.parse(path.read_text())):
            found: list[str] = []
            if isinstance(node, ast.Import):
                found = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found = [node.module]
            for name in found:
                top = name.split(".")[0]
                assert top in here or names.get(top, top) in declared, f"{path}: {name}"


def test_a_key_that_trust_refuses_is_not_left_behind(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    done = prereg(
        "key", "new", str(tmp_path / "k"), "--principal", "not a name", "--role", "author", cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    assert not (tmp_path / "k").exists() and not (tmp_path / "k.pub").exists()


CRASHING = {
    "a command that fails": "import sys\nprint('no such thing', file=sys.stderr)\nsys.exit(3)\n",
    "a command that prints something else": "print('hello')\n",
    "a command that prints too little": "print('{\"value\": 1}')\n",
}


@pytest.mark.parametrize("name", CRASHING)
def test_a_command_that_only_crashes_is_found_before_the_seal(name: str, tmp_path: Path) -> None:
    fill = ["--title", "T", "--question", "Q", "--author", "A", "--principal", "a@example.org"]
    study = tmp_path / "studies" / "x"
    assert prereg("draft", str(study), "--template", "two-arm", *fill).returncode == 0
    assert prereg("build", "plain").returncode == 0
    done = prereg("check", str(study), "--json")
    assert done.returncode == 0, done.stderr
    tried = json.loads(done.stdout)["rehearsal"]
    assert [(t["configuration"], t["arm"], t["crashed"]) for t in tried] == [
        (c, a, 0) for c in ("pocock", "naive") for a in ("fixed", "peeking")
    ]
    (study / "experiment.py").write_text(CRASHING[name])
    done = prereg("check", str(study))
    assert done.returncode == 2, done.stderr
    assert "all that was tried of pocock in the reference arm fixed crashed" in done.stderr
    if "fails" in name:
        assert "no such thing" in done.stderr


SEALED_PLACES = ["seal/manifest.json", "ledger.jsonl", "ledger.head.json", "ledger.head.json.sig", "coin.py"]


@pytest.mark.parametrize("name", ["protocol.json", "seeds.json", "events.json", *SEALED_PLACES])
def test_a_folder_in_place_of_a_file_is_no_bug(name: str, tmp_path: Path) -> None:
    paths = study_fixture.make_study(tmp_path)
    verbs = ["check", "status"]
    if name in SEALED_PLACES:
        study_fixture.seal(paths)
        verbs = ["verify", "diff", "status"]
    (paths.root / name).unlink()
    (paths.root / name).mkdir()
    for verb in verbs:
        done = prereg(verb, str(paths.root))
        assert "Traceback" not in done.stderr, (verb, done.stderr)
        assert done.returncode in (0, 1, 2, 3, 4), (verb, done.returncode)
        if verb in ("check", "verify"):
            assert done.returncode != 0, verb
