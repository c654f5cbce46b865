"""The plan of the house, checked: what loads at start, who imports whom, how long a file is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "numpy",
    "scipy",
    "torch",
    "git",
    "transformers",
    "matplotlib",
    "jsonschema",
    "cattrs",
    "cryptography",
)


def python_files() -> list[Path]:
    out = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in out.stdout.splitlines() if not line.startswith("studies/")]


def test_help_loads_nothing_heavy() -> None:
    probe = (
        "import sys\n"
        "sys.argv = ['prereg', '--help']\n"
        "from prereg.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit as end:\n    assert end.code == 0, end.code\n"
        f"loaded = sorted(set(sys.modules) & set({HEAVY!r}))\n"
        "print('LOADED', loaded)\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED []"
    for verb in ("draft", "check", "seal", "collect", "analyse", "audit", "status", "verify", "demo"):
        assert f" {verb} " in done.stdout


def test_import_rules_hold() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([str(linter)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_auditor_imports_only_the_standard_library_and_cryptography() -> None:
    allowed = set(sys.stdlib_module_names) | {"cryptography", "audits"}
    for path in (ROOT / "audits").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] in allowed, f"{path.name} imports {name}"


def test_files_stay_short() -> None:
    sizes = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in python_files()}
    assert {name: size for name, size in sizes.items() if size > 420} == {}


def test_nothing_is_written_to_another_projects_folder() -> None:
    """The name on the package index belongs to another project, and so does its folder."""
    for path in python_files():
        if path == Path(__file__):
            continue
        assert '".prereg' not in path.read_text(), path


def test_every_module_of_tests_has_a_name_of_its_own() -> None:
    """Pytest imports tests by name alone: two of one name end the collection, wherever they lie."""
    faults = ROOT / "tests" / "tamper"
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.parent.parent != faults]
    twice = sorted({name for name in names if names.count(name) > 1} - {"__init__.py", "conftest.py"})
    assert not twice, f"several files under tests/ are called {', '.join(twice)}"
