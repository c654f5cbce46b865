"""What edition 3 asks of the protocol: attempts, ceilings that leave a verdict open, memory (20, 21)."""

from __future__ import annotations

from collections.abc import Iterator

from prereg.errors import UsageError
from prereg.model.names import is_device
from prereg.model.study import Protocol


def third_edition_problems(protocol: Protocol) -> Iterator[UsageError]:
    """Members of edition 3 in a study of an earlier one, and those that this study may not have."""
    at = "protocol.json#"
    ceilings = protocol.ceilings
    if not protocol.since(3):
        found = [f"{at}/attempts"] if protocol.attempts != 1 else []
        if ceilings.on_ceiling != "INVALID":
            found.append(f"{at}/ceilings/on_ceiling")
        if ceilings.memory_mib is not None:
            found.append(f"{at}/ceilings/memory_mib")
        for where in found:
            yield UsageError(
                f"belongs to edition 3, and the protocol is of edition {protocol.edition or 1}",
                where=where,
                next_step='"edition": 3 in protocol.json',
            )
        return
    confirming = [stage.id for stage in protocol.stages if stage.purpose == "confirmation"]
    if protocol.attempts != 1 and confirming:
        yield UsageError(
            f"is {protocol.attempts}, but stage {confirming[0]!r} confirms: that is tried once",
            where=f"{at}/attempts",
            next_step='"attempts": 1 in protocol.json',
        )
    yield from _reserved(protocol)
    if ceilings.memory_mib is not None and protocol.runtime != "container":
        yield UsageError(
            "limits the memory of containers, and no worker runs in one",
            where=f"{at}/ceilings/memory_mib",
            next_step='"runtime": "container" in protocol.json, or no memory_mib',
        )


def _reserved(protocol: Protocol) -> Iterator[UsageError]:
    """Ids that name a folder or a file which some system cannot make (section 6)."""
    names = [("protocol.json#/study", protocol.study)]
    names += [(f"protocol.json#/stages/{i}/id", stage.id) for i, stage in enumerate(protocol.stages)]
    signers = () if protocol.signers is None else protocol.signers.principals
    names += [(f"protocol.json#/signers/principals/{i}", name) for i, name in enumerate(signers)]
    for where, name in names:
        if is_device(name):
            yield UsageError(
                f"is {name!r}, which some systems reserve for a device",
                where=where,
                next_step="give it another name",
            )
