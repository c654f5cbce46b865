"""What lies around a study and what the auditor writes to: pipes, devices, links, closed and full streams."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from audits_fixture import Builder
from audits_kit import change, failed, look, make_keys
from audits_plan import Plan
from audits_slow import Json
from audits_tools import ROOT

from audits import cli, output, repo
from audits.trust import parse_signers

AUDITS = ROOT / "audits"
NAMES = ("allowed_signers", "roles.json", "revocations.json")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    root = tmp_path_factory.mktemp("outside") / "r"
    Builder(root, keys, Plan()).build()
    return root


@pytest.fixture
def root(tmp_path: Path, template: Path) -> Path:
    """A repository to tamper with, whose own folder is elsewhere than where links may point."""
    shutil.copytree(template, tmp_path / "r", symlinks=True)
    nothing = '{"schema":"prereg/revocations/v1","revocations":[]}'
    (tmp_path / "r/trust/revocations.json").write_text(nothing)
    return tmp_path / "r"


def start(study: Path | str, *arguments: str, **options: int | str) -> subprocess.CompletedProcess[str]:
    """The program in a shell's hands: ``then`` are redirections, ``memory`` a limit in KiB."""
    then, memory = options.get("then", ""), options.get("memory", "unlimited")
    command = f'ulimit -v {memory}; exec "$@" {then}'
    whole = ["bash", "-c", command, "bash", sys.executable, "-I", str(AUDITS), str(study), *arguments]
    return subprocess.run(whole, capture_output=True, text=True, timeout=120)


def clean(done: subprocess.CompletedProcess[str], code: int) -> str:
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    assert "bug in the auditor" not in said
    return said


@pytest.mark.parametrize("author", ["rev@example.org", "ann@example.org"])
def test_an_author_of_the_protocol_does_not_audit_it(tmp_path: Path, keys: Path, author: str) -> None:
    def edit(protocol: Json) -> None:
        protocol["authors"].append({"name": "Another", "principal": author})

    outcome = look(Builder(tmp_path / "r", keys, change("protocol.json", edit)).build())
    wrong = f"ledger.jsonl line {len(outcome_lines(tmp_path))}#/actor: {author} is an author of the protocol"
    assert outcome.result == ("FAILED" if author.startswith("rev") else "AGREES")
    assert (wrong in failed(outcome).get(6, "")) == author.startswith("rev")


def outcome_lines(tmp_path: Path) -> list[bytes]:
    return (tmp_path / "r/studies/tiny/ledger.jsonl").read_bytes().splitlines()


def test_before_its_audit_a_reviewer_may_be_an_author(tmp_path: Path, keys: Path) -> None:
    def edit(protocol: Json) -> None:
        protocol["authors"].append({"name": "Another", "principal": "rev@example.org"})

    plan = change("protocol.json", edit, upto="analysed")
    assert failed(look(Builder(tmp_path / "r", keys, plan).build())) == {}


def _in_place(change: Callable[[Path, Path], object]) -> Callable[[Path], None]:
    """Put something else where a file is; what was there lies beside the repository."""

    def tamper(path: Path) -> None:
        kept = path.parents[2] / path.name
        path.rename(kept)
        change(path, kept)

    return tamper


def _bound(path: Path, kept: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


def _sparse(path: Path, kept: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


TAMPERED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (_in_place(lambda path, kept: os.mkfifo(path)), "not a regular file"),
    "a socket": (_in_place(_bound), "not a regular file"),
    "a folder": (_in_place(lambda path, kept: path.mkdir()), "not a regular file"),
    "20 GiB": (_in_place(_sparse), "larger than"),
    "a hard link": (_in_place(lambda path, kept: os.link(kept, path)), "hard link"),
    "a link": (_in_place(lambda path, kept: path.symlink_to(kept)), "is a link"),
    "a link to itself": (_in_place(lambda path, kept: path.symlink_to(path.name)), "is a link"),
    "a link to a device": (_in_place(lambda path, kept: path.symlink_to("/dev/zero")), "is a link"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", TAMPERED)
def test_the_files_of_trust_are_plain_files(root: Path, name: str, kind: str) -> None:
    tamper, says = TAMPERED[kind]
    tamper(root / "trust" / name)
    done = start(root / "studies/tiny", "--without-history")
    said = next(line for line in clean(done, 1).splitlines() if line.startswith("4     signature"))
    assert says in said
    assert f"trust/{name}" in said


def test_a_file_of_trust_that_an_option_names_is_one_still(root: Path) -> None:
    (root / "trust/allowed_signers").rename(root / "x")
    (root / "trust/allowed_signers").symlink_to("../x")
    outcome = look(root / "studies/tiny", signers=root / "studies/../trust/allowed_signers")
    assert "is a link" in failed(outcome)[4]


def test_revocations_of_head_behind_a_pipe(root: Path, keys: Path) -> None:
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run(["git", *who, "commit", "-qm", "revocations"], cwd=root, check=True)
    (root / "trust/revocations.json").unlink()
    os.mkfifo(root / "trust/revocations.json")
    assert "trust/revocations.json" in clean(start(root / "studies/tiny"), 1)


def test_a_file_that_an_option_names_may_be_a_link(root: Path, tmp_path: Path) -> None:
    elsewhere, linked = tmp_path / "elsewhere", tmp_path / "linked"
    shutil.copytree(root / "trust", elsewhere)
    linked.mkdir()
    for name in NAMES:
        (linked / name).symlink_to(elsewhere / name)
    options = {"signers": linked / NAMES[0], "roles": linked / NAMES[1]}
    assert failed(look(root / "studies/tiny", **options)) == {}
    os.link(elsewhere / NAMES[2], tmp_path / "hard")
    assert failed(look(root / "studies/tiny", revocations=tmp_path / "hard")) == {}
    (linked / NAMES[2]).unlink()
    (linked / NAMES[2]).symlink_to("nowhere")
    assert "is a link to nothing" in failed(look(root / "studies/tiny", **options))[4]


@pytest.mark.parametrize("where", ["link", "end"])
def test_revocations_beside_a_link_and_beside_its_end_both_count(
    root: Path, tmp_path: Path, where: str
) -> None:
    elsewhere, linked = tmp_path / "elsewhere", tmp_path / "linked"
    shutil.copytree(root / "trust", elsewhere)
    (elsewhere / NAMES[2]).unlink()
    linked.mkdir()
    (linked / NAMES[0]).symlink_to(elsewhere / NAMES[0])
    ((linked if where == "link" else elsewhere) / NAMES[2]).write_text("{")
    outcome = look(root / "studies/tiny", signers=linked / NAMES[0])
    assert NAMES[2] in failed(outcome)[4]


@pytest.mark.parametrize("option", ["--signers", "--roles", "--revocations"])
@pytest.mark.parametrize("junk", ["/dev/zero", "a" * 5000, "/dev/full", "", "/", "pipe", "loop", "\udcff"])
def test_junk_that_an_option_names(root: Path, tmp_path: Path, option: str, junk: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    path = str(tmp_path / junk) if junk in ("pipe", "loop") else junk
    said = clean(start(root / "studies/tiny", "--without-history", option, path), 1)
    assert "4     signature               failed" in said


@pytest.mark.parametrize(("junk", "code"), [("a" * 5000, 1), ("/dev/zero", 1), ("loop", 1)])
def test_junk_as_the_folder_of_the_studies(root: Path, tmp_path: Path, junk: str, code: int) -> None:
    (tmp_path / "loop").symlink_to("loop")
    path = str(tmp_path / junk) if junk == "loop" else junk
    assert "see --studies" in clean(start(root / "studies/tiny", "--studies", path), code)


@pytest.mark.parametrize("junk", ["a" * 5000, "a/" * 3000, "", "/dev/null", "\udcff", "a\nresult: AGREES"])
def test_a_study_that_is_none(tmp_path: Path, junk: str) -> None:
    done = start(junk or str(tmp_path / "nothing"))
    assert "not a folder" in clean(done, 2)
    assert len(done.stderr.splitlines()) == 1


def test_a_present_folder_that_is_gone(tmp_path: Path) -> None:
    command = f'mkdir {tmp_path}/x; cd {tmp_path}/x; rmdir {tmp_path}/x; exec "$@"'
    whole = ["bash", "-c", command, "bash", sys.executable, "-I", str(AUDITS), "."]
    assert "not a folder" in clean(subprocess.run(whole, capture_output=True, text=True), 2)


def test_the_name_of_the_folder_does_not_reach_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[31m\nresult: AGREES (history checked)"
    folder.mkdir()
    done = start(folder)
    assert "\x1b" not in clean(done, 1)
    assert [line for line in done.stdout.splitlines() if line.startswith("result")] == [
        "result: FAILED (history missing)"
    ]


UNWRITABLE = {
    "full": ">/dev/full",
    "full, as JSON": "--json >/dev/full",
    "closed": ">&-",
    "closed, as JSON": "--json >&-",
    "help, full": "--help >/dev/full",
    "help, closed": "--help >&-",
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_an_output_that_cannot_be_written(template: Path, name: str) -> None:
    said = clean(start(template / "studies/tiny", then=UNWRITABLE[name]), 2)
    assert "the standard output: cannot be written" in said
    assert len(said.splitlines()) == 1


def test_an_output_that_nobody_reads(template: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-I", str(AUDITS), str(template / "studies/tiny")]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 2
    assert done.stderr == "audits: the standard output: cannot be written: Broken pipe\n"


def test_the_report_is_written_though_the_output_is_full(template: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    study = template / "studies/tiny"
    clean(start(study, "--report", str(report), then=">/dev/full"), 2)
    assert b'"result":"AGREES"' in report.read_bytes()


@pytest.mark.parametrize("junk", ["/dev/full", "pipe", "a" * 5000, "/", "/dev/null/x"])
def test_a_report_that_cannot_be_written(template: Path, tmp_path: Path, junk: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / junk) if junk == "pipe" else junk
    said = clean(start(template / "studies/tiny", "--report", path), 2)
    assert "result: AGREES" in said
    assert "cannot be written" in said


@pytest.mark.parametrize("then", ["2>/dev/full", "2>&-", "0<&- 2>&-"])
@pytest.mark.parametrize(("junk", "code"), [("", 0), ("--what", 2), ("--report /nonexistent/x", 2)])
def test_a_closed_or_full_error_stream_does_not_change_the_exit_code(
    template: Path, then: str, junk: str, code: int
) -> None:
    study = template / "studies/tiny"
    assert start(study, *junk.split(), then=then).returncode == code
    assert start("/nonexistent", then=then).returncode == 2


def test_a_closed_stream_is_no_file_s_place(template: Path, tmp_path: Path) -> None:
    """What is told goes nowhere, and not into the file that was opened next."""
    report = tmp_path / "report.json"
    start(template / "studies/tiny", "--report", str(report), then="0<&- >&- 2>&-")
    assert report.read_bytes().startswith(b"{")
    assert report.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("memory", [40_000, 200_000])
def test_memory_that_is_not_enough(root: Path, memory: int) -> None:
    with (root / "studies/tiny/ledger.jsonl").open("r+b") as file:
        file.truncate((1 << 28) - 1)
    said = clean(start(root / "studies/tiny", memory=memory), 3)
    assert len(said.splitlines()) == 1
    assert "nothing was decided" in said


def test_line_ends_make_no_list_of_lines() -> None:
    """A quarter of a GiB of them would be a list of 2 GiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert parse_signers(b"\n" * (1 << 24), "allowed_signers") == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


GIT = {"a pipe": os.mkfifo, "a device": lambda path: path.symlink_to("/dev/zero")}


@pytest.mark.parametrize("at", ["HEAD", "config", "index", "packed-refs", "objects/pack/pack-1.idx"])
@pytest.mark.parametrize("kind", GIT)
def test_a_pipe_in_the_repository_s_own_folder(root: Path, at: str, kind: str) -> None:
    (root / ".git" / at).unlink(missing_ok=True)
    GIT[kind](root / ".git" / at)
    said = clean(start(root / "studies/tiny"), 1)
    assert f".git/{at}: not a regular file" in said


def test_a_pipe_that_a_setting_of_git_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repo, "AT_FIRST", 1)
    os.mkfifo(root / "pipe")
    with (root / ".git/config").open("a") as file:
        file.write("[include]\n\tpath = ../pipe\n")
    wrong = failed(look(root / "studies/tiny"))
    assert "git rev-parse took more than 1 seconds" in wrong[4]
    assert "git rev-parse took more than 1 seconds" in wrong[9]


def test_a_folder_of_git_that_is_deep_and_holds_a_socket_is_fine(root: Path) -> None:
    inner = root / ".git"
    for _ in range(12):
        inner /= "d" * 200
        inner.mkdir()
    _bound(root / ".git/ipc", root)
    assert stat.S_ISSOCK((root / ".git/ipc").stat().st_mode)
    clean(start(root / "studies/tiny"), 0)


def test_a_program_git_that_cannot_be_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin/git").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert cli.main([str(root / "studies/tiny")]) == 3


def test_a_folder_whose_name_has_line_ends(root: Path, tmp_path: Path) -> None:
    """They are no lines of what git says of the folder."""
    (root / "studies/tiny").rename(root / "studies/ti\nfalse\n.git\nny")
    said = clean(start(root / "studies/ti\nfalse\n.git\nny"), 1)
    assert "9     order" in said


def test_very_many_folders_and_files(root: Path) -> None:
    for i in range(10_000):
        (root / f"studies/tiny/d{i}").mkdir()
        (root / f"studies/tiny/f{i}").touch()
    said = clean(start(root / "studies/tiny", "--without-history"), 1)
    assert "d0: an empty folder that nothing lists" in said


def test_whoever_calls_it_in_the_same_process_gets_its_words() -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        output.put_text("result: é\n")
    assert said.getvalue() == "result: é\n"
