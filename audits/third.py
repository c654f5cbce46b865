"""Step 5: what edition 3 adds to the protocol, and that a study of an earlier edition has none of it."""

from __future__ import annotations

from collections.abc import Iterator

from audits.fault import Found
from audits.references import FILE
from audits.seal import reserved
from audits.study import Study


def _members(study: Study) -> Iterator[str]:
    """Every member of edition 3 that the protocol has, as a JSON pointer; other authored files have none."""
    protocol = study.protocol
    if protocol["attempts"] != 1:
        yield "/attempts"
    if protocol["ceilings"]["on_ceiling"] != "INVALID":
        yield "/ceilings/on_ceiling"
    if "memory_mib" in protocol["ceilings"]:
        yield "/ceilings/memory_mib"


def check_earlier_edition(study: Study, found: Found) -> None:
    """A study of edition 1 or 2 has no member of edition 3."""
    for pointer in _members(study):
        found.fault("is of edition 3, and the protocol is of an earlier one", file=FILE, pointer=pointer)


def check_tried_again(study: Study, found: Found) -> None:
    """Sections 20 and 21: confirmation has one attempt, and a limit of memory is one of containers."""
    protocol = study.protocol
    confirms = any(stage["purpose"] == "confirmation" for stage in protocol["stages"])
    if confirms and protocol["attempts"] != 1:
        what = f"is {protocol['attempts']}, and a stage has the purpose `confirmation`: it has one attempt"
        found.fault(what, file=FILE, pointer="/attempts")
    if "memory_mib" in protocol["ceilings"] and protocol["runtime"] != "container":
        what = "is there only with the runtime `container`"
        found.fault(what, file=FILE, pointer="/ceilings/memory_mib")


def check_names(study: Study, found: Found) -> None:
    """Section 6: no id that names a folder or a file is one that some system reserves."""
    protocol = study.protocol
    names = [("/study", study.id)]
    names += [(f"/stages/{i}/id", stage["id"]) for i, stage in enumerate(protocol["stages"])]
    principals = protocol.get("signers", {}).get("principals", ())
    names += [(f"/signers/principals/{i}", name) for i, name in enumerate(principals)]
    for pointer, name in names:
        if reserved(name):
            what = f"{name} is a name that some system reserves: no folder or file can have it there"
            found.fault(what, file=FILE, pointer=pointer)
