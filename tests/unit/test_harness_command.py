"""The command adapter: what it runs, and what it makes of bad output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.adapters.base import Arm, Counters
from harness.adapters.command import CommandAdapter
from harness.wire import JobError

ARM = Arm(id="on", role="test", speculation=True)


def run(script: str, rows: int = 1, cwd: Path | None = None, seed: str = "7") -> list[Any]:
    """Outcomes of a command that is a line of Python."""
    adapter = CommandAdapter()
    command = ["{python}", "-c", script, "{arm}", "{seed}", "{rows}"]
    assert adapter.open({"command": command}, None, None, None if cwd is None else str(cwd)) is None
    drawn = adapter.draws(ARM, seed, rows)
    assert all(draw.counters == Counters() for draw in drawn)
    return [draw.outcome for draw in drawn]


def test_placeholders_are_filled_wherever_they_stand(tmp_path: Path) -> None:
    script = "import sys, os, json; print(json.dumps({'value': ' '.join([*sys.argv[1:], '{arm}/{seed}'])}))"
    assert run(script, seed="18446744073709551615") == [
        {"value": "on 18446744073709551615 1 on/18446744073709551615"}
    ]
    adapter = CommandAdapter()
    adapter.open({"command": ["{python}", "-c", "import sys; print('{\"value\":\"%s\"}' % sys.executable)"]},
                 None, None, None)  # fmt: skip
    assert adapter.draws(ARM, "1", 1)[0].outcome == {"value": sys.executable}


def test_it_runs_in_the_folder_of_the_study_with_nothing_to_read(tmp_path: Path) -> None:
    script = (
        "import os, sys, json; [print(json.dumps({'value': v})) for v in (os.getcwd(), sys.stdin.read())]"
    )
    assert run(script, rows=2, cwd=tmp_path) == [{"value": str(tmp_path)}, {"value": ""}]


@pytest.mark.parametrize(
    "value", ['"text"', '""', "1", "-1", "1.5", "1e3", "true", "false", "9007199254740991", '"\\u00e9"']
)
def test_what_a_record_can_hold_is_an_outcome(value: str) -> None:
    import json

    (outcome,) = run(f"""print('{{"value": {value.replace(chr(92), chr(92) * 2)}}}')""")
    assert outcome == {"value": json.loads(value)}
    assert type(outcome["value"]) is type(json.loads(value))


@pytest.mark.parametrize(
    ("output", "crash"),
    [
        ("{'value': 1}", "BadOutput"),
        ("1", "BadOutput"),
        ("", "BadOutput"),
        ('[["value", 1]]', "BadOutput"),
        ('{"value": null}', "BadOutput"),
        ('{"value": [1]}', "BadOutput"),
        ('{"value": {"a": 1}}', "BadOutput"),
        ('{"value": NaN}', "BadOutput"),
        ('{"value": Infinity}', "BadOutput"),
        ('{"value": 1e400}', "BadOutput"),
        ('{"value": 9007199254740992}', "BadOutput"),
        ('{"value": "\\ud800"}', "BadOutput"),
        ('{"value": "e\\u0301"}', "BadOutput"),
        ('{"value": 1, "value": 1}', "BadOutput"),
        ('{"value": 1, "more": 1}', "BadOutput"),
        ('{"other": 1}', "BadOutput"),
        ('{"value": 1}\n{"value": 2}', "BadOutput"),
        ('{"value": 1}\n', "BadOutput"),
        ("[" * 100_000, "BadOutput"),
    ],
)
def test_bad_output_is_a_crash_of_every_row(output: str, crash: str, tmp_path: Path) -> None:
    (tmp_path / "output").write_text(output)
    assert run("print(open('output').read())", cwd=tmp_path) == [{"crash": crash}]


def test_a_bad_line_spoils_its_whole_request() -> None:
    script = "print('{\"value\":1}'); print('oops'); print('{\"value\":1}')"
    assert run(script, rows=3) == [{"crash": "BadOutput"}] * 3


def test_bytes_that_are_no_text_are_bad_output() -> None:
    assert run('import os; os.write(1, b\'{"value":"\\xff"}\\n\')') == [{"crash": "BadOutput"}]


def test_too_few_lines_are_bad_output() -> None:
    assert run("print('{\"value\":1}')", rows=2) == [{"crash": "BadOutput"}] * 2


@pytest.mark.parametrize("end", ["raise SystemExit(3)", "import os; os.kill(os.getpid(), 11)"])
def test_an_exit_status_is_a_crash_even_after_good_output(end: str) -> None:
    assert run("print('{\"value\":1}', flush=True); " + end) == [{"crash": "ExitStatus"}]


def test_a_command_that_cannot_start_is_no_draw() -> None:
    adapter = CommandAdapter()
    adapter.open({"command": ["/nonexistent/program"]}, None, None, None)
    with pytest.raises(JobError, match="cannot start") as caught:
        adapter.draws(ARM, "1", 1)
    assert caught.value.code == "engine"


@pytest.mark.parametrize("command", [None, [], "echo", ["echo", 1]])
def test_a_configuration_without_a_command_is_refused(command: object) -> None:
    with pytest.raises(JobError) as caught:
        CommandAdapter().open({"command": command}, None, None, None)
    assert caught.value.code == "bad-request"


@pytest.mark.parametrize("options", [[], ["-I"], ["-E"]])
def test_a_command_reads_no_byte_code_but_the_runs_own(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Isolated interpreters do not hear of the folder by a variable."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    adapter = CommandAdapter()
    script = "import json, sys; print(json.dumps({'value': sys.pycache_prefix}))"
    adapter.open({"command": ["{python}", *options, "-c", script]}, None, None, None)
    (draw,) = adapter.draws(ARM, "1", 1)
    assert draw.outcome == {"value": str(tmp_path)}


def test_an_interpreter_that_another_program_starts_is_one_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    adapter = CommandAdapter()
    script = "import json, sys; print(json.dumps({'value': ' '.join(sys.argv[1:])}))"
    adapter.open({"command": ["{python}", "-c", script, "{python}", "x.py"]}, None, None, None)
    (draw,) = adapter.draws(ARM, "1", 1)
    assert draw.outcome == {"value": f"{sys.executable} x.py"}


def test_a_command_that_somebody_killed_is_no_draw() -> None:
    with pytest.raises(JobError, match="was killed"):
        run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)") == [{"crash": "ExitStatus"}]
