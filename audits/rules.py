"""The schemas of these rules: each is taken only if its bytes have a digest that ``rules.json`` gives it."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from audits import RULES
from audits.fault import Fault, reason
from audits.given import read_given
from audits.jsonc import parse
from audits.load import Folder, sha256
from audits.schema import Schema

FILE = Path(__file__).resolve().parent / "rules.json"
"""The version of the rules, and the digests of every schema file by its name: one an edition, newest last."""
OPTIONAL = {
    "leaf.schema.json": "an exact stage is checked by it",
    "hypotheses.schema.json": "a study of edition 2 is checked by it",
    "revocations.schema.json": "trust/revocations.json is checked by it",
}
"""The schemas that may be missing where nothing needs them, and what does."""
BESIDE = {
    "schemas/v1": "schemas beside the auditor",
    "prereg/_data/schemas/v1": "schemas installed with the auditor",
}
"""Folders of data beside the auditor's own, looked at in this order."""
SEALED = "code/schemas/v1"
"""Where a study keeps its copy, taken if there is nothing beside the auditor."""


class Schemas(dict[str, Schema]):
    """Every schema by its name; the use of one that is not there is a fault."""

    def __init__(self, where: str) -> None:
        """``where`` is the folder they were found in."""
        super().__init__()
        self._where = where

    def __missing__(self, name: str) -> NoReturn:
        file = f"{name}.schema.json"
        then = f"{OPTIONAL[file]}; take the schemas of the prereg that sealed it"
        raise Fault("missing", file=f"{self._where}/{file}", then=then)


def _editions() -> dict[str, tuple[str, ...]]:
    try:
        value = parse(read_given(FILE))
        if value["version"] != RULES or not value["schemas"]:
            raise ValueError
        editions = {}
        for name, digests in value["schemas"].items():
            if not isinstance(digests, list) or not digests or not all(isinstance(d, str) for d in digests):
                raise ValueError
            editions[str(name)] = tuple(digests)
        return editions
    except OSError as error:
        raise Fault(f"cannot be read: {reason(error)}", file=str(FILE)) from None
    except Fault as fault:
        raise fault.at(str(FILE)) from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Fault(f"does not hold the schemas of rules version {RULES}", file=str(FILE)) from None


def load_schemas(folder: Folder) -> tuple[Schemas, str]:
    """Every schema by its name, and where they were found."""
    beside = [(FILE.parent.parent / place, says) for place, says in BESIDE.items()]
    found = [(path, says) for path, says in beside if path.is_dir()]
    prefix, says = (str(found[0][0]), found[0][1]) if found else (SEALED, f"schemas of the study's {SEALED}")
    schemas = Schemas(prefix)
    for name, digests in _editions().items():
        file = f"{prefix}/{name}"
        there = Path(file).exists() if found else folder.has(file)
        if name in OPTIONAL and not there:
            continue
        try:
            data = read_given(Path(file)) if found else folder.read(file).data
            if sha256(data) not in digests:
                what = f"is not the schema of rules version {RULES}: rules.json has another digest for it"
                raise Fault(what)
            schemas[name.removesuffix(".schema.json")] = Schema(parse(data))
        except OSError as error:
            raise Fault(f"cannot be read: {reason(error)}", file=file) from None
        except Fault as fault:
            raise fault.at(file) from None
    return schemas, says
