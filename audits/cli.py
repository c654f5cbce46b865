"""The command line: ``python -I audits STUDY``."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from audits.fault import Fault
from audits.report import EXIT, report_bytes, text
from audits.run import Options, audit

USAGE, BUG = 2, 70
"""Exit codes beside those of the result."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -I audits",
        description="Derive every step and decision of a study again from its raw files.",
        epilog="exit code: 0 the claims agree, 1 they do not or the evidence fails, 2 usage, 3 incomplete",
    )
    parser.add_argument("study", type=Path, metavar="STUDY", help="the study's folder")
    parser.add_argument("--signers", type=Path, metavar="FILE", help="OpenSSH allowed_signers to trust")
    parser.add_argument("--roles", type=Path, metavar="FILE", help="roles.json to trust")
    parser.add_argument("--revocations", type=Path, metavar="FILE", help="revocations.json to trust")
    parser.add_argument("--studies", type=Path, metavar="DIR", help="the folder that holds the other studies")
    parser.add_argument(
        "--without-history", action="store_true", help="waive the check of git history, as the reviewer"
    )
    parser.add_argument("--json", action="store_true", help="print the canonical report")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the canonical report there")
    parser.add_argument("--debug", action="store_true", help="show the traceback of a bug")
    return parser


def _options(arguments: argparse.Namespace) -> Options:
    study: Path = arguments.study
    trust = study.resolve().parent.parent / "trust"
    return Options(
        study=study,
        signers=arguments.signers or trust / "allowed_signers",
        roles=arguments.roles or trust / "roles.json",
        studies=arguments.studies or study.resolve().parent,
        revocations=arguments.revocations,
        without_history=arguments.without_history,
    )


def _complain(message: str) -> None:
    print(f"audits: {message}", file=sys.stderr)


def main(argv: list[str]) -> int:
    """Run one audit; returns the exit code."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        import cryptography  # noqa: F401
    except ImportError:
        _complain("signatures need the package `cryptography`: python -m pip install cryptography")
        return USAGE
    if not arguments.study.is_dir():
        _complain(f"{arguments.study}: not a folder; name the study's folder, as in studies/rq3")
        return USAGE
    try:
        outcome = audit(_options(arguments))
        value = outcome.value()
        data = report_bytes(value)
        if arguments.json:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        else:
            print(text(value, outcome.incomplete), end="")
        if arguments.report is not None:
            try:
                arguments.report.write_bytes(data)
            except OSError as error:
                _complain(f"{arguments.report}: cannot be written: {error.strerror}")
                return USAGE
        return EXIT[outcome.result]
    except Fault as fault:
        _complain(str(fault))
        return EXIT["FAILED"]
    except Exception as error:
        if arguments.debug:
            traceback.print_exc()
        _complain(f"a bug in the auditor, please report it: {type(error).__name__}: {error}; see --debug")
        return BUG
