"""The command line: ``python -I audits STUDY``."""

from __future__ import annotations

import argparse
import io
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from audits.__main__ import is_shortage
from audits.fault import Fault
from audits.given import real
from audits.output import hold_streams, plain, put, put_text, store, tell
from audits.report import EXIT, report_bytes, text
from audits.run import Options, audit

USAGE, BUG = 2, 70
"""Exit codes beside those of the result."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -I audits",
        description="Derive every step and decision of a study again from its raw files.",
        epilog="exit code: 0 the claims agree, 1 they do not or the evidence fails, "
        "2 usage, or the report cannot be written, 3 incomplete, or the memory is not enough",
    )
    parser.add_argument("study", type=Path, metavar="STUDY", help="the study's folder")
    parser.add_argument("--signers", type=Path, metavar="FILE", help="OpenSSH allowed_signers to trust")
    parser.add_argument("--roles", type=Path, metavar="FILE", help="roles.json to trust")
    parser.add_argument(
        "--revocations",
        type=Path,
        metavar="FILE",
        help="revocations.json to trust; else the one beside the signers, if it is there",
    )
    parser.add_argument("--studies", type=Path, metavar="DIR", help="the folder that holds the other studies")
    parser.add_argument(
        "--without-history", action="store_true", help="waive the check of git history, as the reviewer"
    )
    parser.add_argument("--json", action="store_true", help="print the canonical report")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the canonical report there")
    parser.add_argument("--debug", action="store_true", help="show the traceback of a bug")
    return parser


def _options(arguments: argparse.Namespace) -> Options:
    study = real(arguments.study)
    trust = study.parent.parent / "trust"
    return Options(
        study=arguments.study,
        signers=arguments.signers or trust / "allowed_signers",
        roles=arguments.roles or trust / "roles.json",
        studies=arguments.studies or study.parent,
        revocations=arguments.revocations,
        named=arguments.signers is not None or arguments.roles is not None,
        without_history=arguments.without_history,
    )


def _complain(message: str) -> None:
    tell(f"audits: {plain(message)}\n")


def _arguments(argv: list[str]) -> argparse.Namespace | int:
    """What was asked for; an exit code where that was help, or cannot be understood."""
    said, wrong = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(wrong):
            return _parser().parse_args(argv)
    except SystemExit as stop:
        tell(wrong.getvalue())
        code = stop.code if isinstance(stop.code, int) else USAGE
        return code if _written("the standard output", lambda: put_text(said.getvalue())) else USAGE


def _written(place: str, write: Callable[[], None]) -> bool:
    """Whether something was written; why not is told."""
    try:
        write()
    except OSError as error:
        _complain(f"{place}: cannot be written: {error.strerror}")
        return False
    return True


def _is_folder(path: Path) -> bool:
    try:
        return real(path).is_dir()
    except (Fault, OSError) as error:
        if is_shortage(error):
            raise
        # A name too long, or behind a folder that may not be entered or is no more.
        return False


def main(argv: list[str]) -> int:
    """Run one audit; returns the exit code."""
    hold_streams()
    arguments = _arguments(argv)
    if isinstance(arguments, int):
        return arguments
    try:
        return _run(arguments)
    except Fault as fault:
        _complain(str(fault))
        return EXIT["FAILED"]
    except Exception as error:
        if arguments.debug:
            tell(traceback.format_exc())
        if is_shortage(error):
            _complain("the memory is not enough: nothing was decided; audit where there is more of it")
            return EXIT["INCOMPLETE"]
        _complain(f"a bug in the auditor, please report it: {type(error).__name__}: {error}; see --debug")
        return BUG


def _run(arguments: argparse.Namespace) -> int:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        if is_shortage(error):
            raise
        _complain("signatures need the package `cryptography`: python -m pip install cryptography")
        return USAGE
    if not _is_folder(arguments.study):
        _complain(f"{arguments.study}: not a folder; name the study's folder, as in studies/rq3")
        return USAGE
    outcome = audit(_options(arguments))
    value = outcome.value()
    data = report_bytes(value)
    said = data if arguments.json else text(value, outcome.incomplete, outcome.warnings)
    # One that cannot be written does not take the other away.
    written = _written(
        "the standard output", lambda: put(said) if isinstance(said, bytes) else put_text(said)
    )
    if arguments.report is not None:
        written &= _written(str(arguments.report), lambda: store(arguments.report, data))
    return EXIT[outcome.result] if written else USAGE
