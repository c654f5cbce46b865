"""A study of edition 3 at every state of its life: what was tried again, came twice, or ran out of time.

`third` is told by tests/unit/third_fixture.py, and analysed and audited by prereg's own verbs. `contained` is
sealed for containers with a limit of memory, and its collection is told.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import study_fixture
import third_fixture
from study_fixture import ENVIRONMENTS, signing_key

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study
from prereg.model.image import Image
from prereg.seal.build import seal_study
from prereg.store.layout import StudyPaths

Save = Callable[[str], None]
IMAGE = Image(image="sha256:" + "a" * 64, platform="sha256:" + "a" * 64, id="sha256:" + "b" * 64)
MEMORY = 512
"""The limit of memory of `contained`, in MiB."""


def third_life(place: Path, save: Save) -> None:
    """Make `third` at `place`, and call `save` with the name of each state that it comes to."""
    paths: StudyPaths = third_fixture.make_third_study(place)
    study_fixture.seal(paths)
    save("sealed")
    third_fixture.collect_third(paths)
    save("collected")
    analyse_study(paths, key=signing_key(paths), principal="ada@example.org")
    save("analysed")
    run = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
    save("audited")


def contained_life(place: Path, save: Save) -> None:
    """Make `contained` at `place`; its one state is `collected`."""

    def limited(protocol: dict[str, Any]) -> None:
        protocol["runtime"] = "container"
        protocol["ceilings"]["memory_mib"] = MEMORY

    def tell(teller: third_fixture.Teller) -> None:
        container = {"engine": "podman", "version": "4.3.1", "images": {"plain": IMAGE.id}}
        closed = {"network": "cut", "network_reason": None}
        teller.start(**closed, container={**container, "memory_mib": MEMORY})
        teller.begin("drawn.same.off", 0)
        teller.fail("drawn.same.off", 1, "engine")
        teller.end(complete=False)

    paths = third_fixture.make_third_study(place, limited)
    seal_study(
        paths,
        key=signing_key(paths),
        principal="ada@example.org",
        environments=ENVIRONMENTS,
        images={"plain": IMAGE},
        now=study_fixture.SEALED_AT,
    )
    third_fixture.collect_third(paths, tell)
    save("collected")
