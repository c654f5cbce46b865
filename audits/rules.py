"""The schemas of these rules: each is taken only if its bytes have the digest that ``rules.json`` gives."""

from __future__ import annotations

from pathlib import Path

from audits import RULES
from audits.fault import Fault
from audits.jsonc import parse
from audits.load import Folder, sha256
from audits.schema import Schema

FILE = Path(__file__).resolve().parent / "rules.json"
"""The version of the rules, and the digest of every schema file by its name."""
BESIDE = {
    "schemas/v1": "schemas beside the auditor",
    "prereg/_data/schemas/v1": "schemas installed with the auditor",
}
"""Folders of data beside the auditor's own, looked at in this order."""
SEALED = "code/schemas/v1"
"""Where a study keeps its copy, taken if there is nothing beside the auditor."""


def _digests() -> dict[str, str]:
    try:
        value = parse(FILE.read_bytes())
        if value["version"] != RULES or not value["schemas"]:
            raise ValueError
        return {str(name): str(digest) for name, digest in value["schemas"].items()}
    except OSError as error:
        raise Fault(f"cannot be read: {error.strerror}", file=str(FILE)) from None
    except Fault as fault:
        raise fault.at(str(FILE)) from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Fault(f"does not hold the schemas of rules version {RULES}", file=str(FILE)) from None


def load_schemas(folder: Folder) -> tuple[dict[str, Schema], str]:
    """Every schema by its name, and where they were found."""
    beside = [(FILE.parent.parent / place, says) for place, says in BESIDE.items()]
    found = [(path, says) for path, says in beside if path.is_dir()]
    prefix, says = (str(found[0][0]), found[0][1]) if found else (SEALED, f"schemas of the study's {SEALED}")
    schemas = {}
    for name, digest in _digests().items():
        file = f"{prefix}/{name}"
        try:
            data = Path(file).read_bytes() if found else folder.read(file).data
            if sha256(data) != digest:
                what = f"is not the schema of rules version {RULES}: rules.json has another digest for it"
                raise Fault(what)
            schemas[name.removesuffix(".schema.json")] = Schema(parse(data))
        except OSError as error:
            raise Fault(f"cannot be read: {error.strerror}", file=file) from None
        except Fault as fault:
            raise fault.at(file) from None
    return schemas, says
