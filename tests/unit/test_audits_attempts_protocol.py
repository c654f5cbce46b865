"""Step 5, sections 20 and 21: protocols of edition 3; and the limit of memory that a collection names."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys, put
from audits_plan import Plan
from audits_seals import IMAGES
from audits_slow import Json
from audits_third import build, collected, end, rest, start, third


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def _protocol(edit: Callable[[Json], Any], edition: int | None = 3, **options: Any) -> Plan:
    """A sealed study whose protocol is other."""

    def apply(name: str, value: Any) -> Any:
        if name == "manifest" and value["schema"] and options.get("images"):
            return value | {"images": IMAGES}
        if name == "protocol.json":
            value = copying.deepcopy(value)
            value["edition"] = edition
            if edition is None:
                del value["edition"]
            edit(value)
        if name == "seeds.json" and "role" in options:
            value = {**value, "blocks": [block | {"role": options["role"]} for block in value["blocks"]]}
        return value

    return third(apply, upto="sealed", attempts=1)


def _both(value: Json) -> None:
    value["attempts"] = 2
    value["stages"][0]["purpose"] = "confirmation"


def _limited(value: Json) -> None:
    value["runtime"] = "container"
    value["ceilings"]["memory_mib"] = 512


PROTOCOLS: dict[str, tuple[Plan, str | None]] = {
    "as it is": (_protocol(lambda v: None), None),
    "edition 2, as it is": (_protocol(lambda v: None, 2), None),
    "nine attempts": (_protocol(put("attempts", to=9)), None),
    "ten attempts": (_protocol(put("attempts", to=10)), "protocol.json#/attempts"),
    "no attempt": (_protocol(put("attempts", to=0)), "protocol.json#/attempts"),
    "confirmation": (_protocol(put("stages", 0, "purpose", to="confirmation"), role="confirmation"), None),
    "confirmation of blocks that are not": (
        _protocol(put("stages", 0, "purpose", to="confirmation")), "seeds.json#/blocks/0/role: is discovery",
    ),
    "confirmation tried again": (_protocol(_both), "protocol.json#/attempts: is 2, and a stage has the"),
    "memory without containers": (
        _protocol(put("ceilings", "memory_mib", to=512)), "protocol.json#/ceilings/memory_mib: is there only",
    ),
    "memory with containers": (_protocol(_limited, images=True), None),
    "attempts in edition 2": (
        _protocol(put("attempts", to=2), 2), "protocol.json#/attempts: is of edition 3, and the protocol is",
    ),
    "an open ceiling in edition 2": (
        _protocol(put("ceilings", "on_ceiling", to="INCONCLUSIVE"), 2),
        "protocol.json#/ceilings/on_ceiling: is of edition 3",
    ),
    "a limit of memory in edition 2": (
        _protocol(_limited, 2, images=True), "protocol.json#/ceilings/memory_mib: is of edition 3",
    ),
    "attempts in edition 1": (
        _protocol(put("attempts", to=2), None), "protocol.json#/attempts: is of edition 3",
    ),
    "edition 4": (_protocol(lambda v: None, 4), "protocol.json#/edition"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocols(tmp_path: Path, keys: Path, name: str) -> None:
    plan, says = PROTOCOLS[name]
    found = failed(look(build(tmp_path, keys, plan).folder))
    assert (5 in found) == (says is not None), found
    assert says is None or says in found[5]


def _container(name: str, value: Any, memory: int | None) -> Any:
    if name == "manifest":
        return value | {"images": IMAGES}
    if name == "collection-started body":
        said: Json = {"engine": "docker", "version": "1", "images": {"b-1": IMAGES["b-1"]["id"]}}
        return value | {"container": said | ({} if memory is None else {"memory_mib": memory})}
    return value


@pytest.mark.parametrize(
    ("sealed", "told", "well"),
    [(512, 512, True), (None, None, True), (512, 513, False), (512, None, False), (None, 512, False)],
)
def test_the_limit_of_memory(
    tmp_path: Path, keys: Path, sealed: int | None, told: int | None, well: bool
) -> None:
    def edit(name: str, value: Any) -> Any:
        if name == "protocol.json" and sealed is not None:
            value = value | {"ceilings": value["ceilings"] | {"memory_mib": sealed}}
        return _container(name, value, told)

    plan = collected(edit, protocol={"runtime": "container"})
    found = failed(look(build(tmp_path, keys, plan, start(), *rest(), end()).folder))
    assert list(found) == ([] if well else [7]), found
    assert well or "line 2#/body/container/memory_mib: is" in found[7]
