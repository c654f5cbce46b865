"""Whoever the protocol names as an author does not audit it, whatever roles trust gives them."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import forge

AT = "audited"
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "authors", "auditor": "is an author of the protocol"}


def apply(study: Path, tools: ModuleType) -> None:
    last = json.loads(tools.ledger(study)[-1])["actor"]
    one = b'"principal": "ada@example.org"'
    data = (study / "protocol.json").read_bytes()
    at = data.index(one)
    more = (
        data[:at] + one + b'}, {"name": "Rex", "principal": "' + last.encode() + b'"' + data[at + len(one) :]
    )
    forge.sealed_file(study, "protocol.json", more)
    seal = tools.sha((study / forge.MANIFEST).read_bytes())
    signature = tools.sha((study / f"{forge.MANIFEST}.sig").read_bytes())

    def entered(found: list[Any]) -> None:
        for entry in found:
            if "seal" in entry["body"]:
                entry["body"]["seal"] = seal
        found[0]["body"]["signature_sha256"] = signature

    forge.entries(study, entered, last.split("@")[0])
