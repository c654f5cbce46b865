"""Section 6: in edition 3 no study, stage or signer has an id that some system reserves for itself."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys, put
from audits_plan import MAIN, Plan
from audits_third import build, third

ANN = "ann@example.org"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def _protocol(*edits: Callable[[Any], None], edition: int = 3, study: str = "tiny") -> Plan:
    """A sealed study whose protocol is other, and whose seeds follow the name of its stage."""

    def apply(name: str, value: Any) -> Any:
        value = copying.deepcopy(value)
        if name == "protocol.json":
            value["edition"] = edition
            for edit in edits:
                edit(value)
        if name == "seeds.json":
            protocol: Any = {"stages": [{"id": MAIN}], "configurations": [{}], "signers": {}}
            for edit in edits:
                edit(protocol)
            for block in value["blocks"]:
                block["unit"] = block["unit"].replace(f"{MAIN}.", f"{protocol['stages'][0]['id']}.", 1)
        return value

    return third(apply, upto="sealed", attempts=1, study=study)


def _stage(name: str, **more: Any) -> Plan:
    return _protocol(put("stages", 0, "id", to=name), **more)


def _signers(*names: str, **more: Any) -> Plan:
    return _protocol(put("signers", to={"need": 1, "principals": [ANN, *names]}), **more)


STAGE, STUDY, SIGNER = "/stages/0/id", "/study", "/signers/principals/"
# A plan, and the pointer of what step 5 refuses, if it refuses anything.
NAMES: dict[str, tuple[Plan, str | None]] = {
    "a study": (_protocol(study="nul"), STUDY),
    "a study, of a number": (_protocol(study="com0"), STUDY),
    "a study that looks like it": (_protocol(study="con-1"), None),
    "a stage": (_stage("aux"), STAGE),
    "a stage, of a number": (_stage("lpt9"), STAGE),
    "a stage that looks like it": (_stage("com10"), None),
    "a signer": (_signers("prn"), SIGNER + "1"),
    "a signer in capitals": (_signers("bob", "CoN"), SIGNER + "2"),
    "a signer with a dot": (_signers("Lpt1.bob@example.org"), SIGNER + "1"),
    "a signer of no dot before": (_signers("con@example.org"), None),
    "a signer of a dot before": (_signers("bob.con"), None),
    "a study of edition 2": (_protocol(study="nul", edition=2), None),
    "a stage of edition 2": (_stage("aux", edition=2), None),
    "a signer of edition 2": (_signers("con", edition=2), None),
}


@pytest.mark.parametrize("name", NAMES)
def test_ids_that_some_system_reserves(tmp_path: Path, keys: Path, name: str) -> None:
    plan, pointer = NAMES[name]
    found = failed(look(build(tmp_path, keys, plan).folder))
    assert list(found) == ([] if pointer is None else [5]), found
    assert pointer is None or f"protocol.json#{pointer}: " in found[5]
    assert pointer is None or "is a name that some system reserves" in found[5]


def test_a_configuration_names_no_folder_of_its_own(tmp_path: Path, keys: Path) -> None:
    plan = third(upto="sealed", configurations=("control", "con"), predictions=[])
    assert failed(look(build(tmp_path, keys, plan).folder)) == {}
