"""Edition 3 has all of edition 2: amendments, cosigners, timestamps, containers; amendments keep it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_seals import SIGNERS, Sealed, Step, amend, build, cosign, enter, second, stamp, well
from audits_tools import make_key

ROOTS = {"roots": "roots.pem"}
NOTE = enter("deviation", about=[], text="x")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_keys(tmp_path_factory.mktemp("audit-keys"))
    make_key(folder, "third")
    return folder


def _sealed(**protocol: Any) -> Plan:
    return second(upto="sealed", edition=3, **protocol)


def test_what_edition_2_has_is_in_edition_3(tmp_path: Path, keys: Path) -> None:
    plan = _sealed(timestamp=ROOTS, signers=SIGNERS, runtime="container")
    well(build(tmp_path, keys, plan, amend(), cosign(), stamp(), NOTE))


def _into(edition: int) -> Step:
    def change(b: Sealed) -> None:
        value = json.loads((b.folder / "protocol.json").read_bytes())
        b.write("protocol.json", json.dumps(value | {"edition": edition}).encode())

    return amend(change)


STARTED = enter(
    "collection-started", "col", attempt=1, environments={"b-1": "e" * 64}, workers=1, network="cut",
    network_reason=None,
)  # fmt: skip
REFUSED: dict[str, tuple[Plan, tuple[Step, ...], int, str]] = {
    "from 2 to 3": (
        second(upto="sealed"), (_into(3),), 9, "is of another edition, 3, than the one before, 2",
    ),
    "from 3 to 2": (_sealed(), (_into(2),), 9, "is of another edition, 2, than the one before, 3"),
    "no timestamp": (_sealed(timestamp=ROOTS), (STARTED,), 6, "the protocol asks for a timestamp"),
    "too few have signed": (_sealed(signers=SIGNERS), (STARTED,), 4, "the seal is not complete there: 1 of"),
    "a cosigner nobody asked for": (_sealed(), (cosign(),), 4, "seal/cosign/bob@example.org.sig"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_edition_2_refuses_is_refused_in_edition_3(tmp_path: Path, keys: Path, name: str) -> None:
    plan, steps, number, says = REFUSED[name]
    found = failed(look(build(tmp_path, keys, plan, *steps).folder))
    assert number in found, found
    assert says in found[number]
