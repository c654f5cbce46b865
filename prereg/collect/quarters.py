"""Where the workers of a study live: environments on this machine, or containers of images."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prereg.collect.container import STUDY
from prereg.collect.container_engine import find_engine
from prereg.collect.containers import ContainedWorker, Containers
from prereg.collect.image import built_image, image_of
from prereg.collect.network import CONTAINED, Isolation, isolation
from prereg.collect.runtime import built, environment_of, interpreter, load_build
from prereg.collect.staging import BYTE_CODE, Stage, staged
from prereg.collect.worker import SETUP_SECONDS, Launch, Worker
from prereg.model.study import Protocol
from prereg.store.files import read_with_mode
from prereg.store.folder import walk
from prereg.store.harness import sealed_code
from prereg.store.layout import StudyPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarters:
    """What a worker is started from."""

    code: Path
    """The staged folder that holds `harness/`."""
    study: Path
    """The staged study folder: where a study's own command runs."""
    scratch: Path
    environments: Mapping[str, Path]
    """Environment folder of each build; none where workers run in containers."""
    isolation: Isolation
    containers: Containers | None = None
    """How workers run in containers; None where they run in the builds' environments."""

    @property
    def folder(self) -> str:
        """The staged study as a worker sees it."""
        return str(self.study) if self.containers is None else STUDY

    def worker(self, build: str, name: str) -> Worker:
        """Start a worker of a build; `name` is that of its scratch folder.

        Raises OSError or EngineFailed if none starts, WrongState for a container that is not closed.
        """
        if self.containers is not None:
            return ContainedWorker(self.containers.launch(build))
        return Worker(
            Launch(
                python=interpreter(self.environments[build]),
                code=self.code,
                scratch=self.scratch / name,
                isolation=self.isolation,
                byte_code=self.scratch / BYTE_CODE,
            )
        )


def quarters_of(protocol: Protocol, builds: Iterable[str], stage: Stage) -> Quarters:
    """Quarters for a study that is not sealed yet, in what its builds were made into on this machine.

    Raises WrongState for a build that has no environment, or no image, as the protocol's runtime needs it.
    """
    names = sorted(set(builds))
    contained = protocol.runtime == "container"
    containers = None
    if contained:
        containers = Containers(
            engine=find_engine(),
            images={name: image_of(load_build(name)).digests for name in names},
            study=stage.study,
            memory_mib=protocol.ceilings.memory_mib,
            seconds=int(protocol.ceilings.study_seconds + 2 * SETUP_SECONDS),
        )
    return Quarters(
        code=stage.code,
        study=stage.study,
        scratch=stage.scratch,
        environments={} if contained else {name: environment_of(name) for name in names},
        isolation=CONTAINED if contained else isolation(),
        containers=containers,
    )


@contextlib.contextmanager
def staged_draft(paths: StudyPaths | None, builds: Iterable[str]) -> Iterator[Stage]:
    """The files of a draft as they lie there, with the code that a seal would add; or that code alone."""
    files: dict[str, bytes] = {}
    executable = set()
    if paths is not None:
        for name in walk(paths).sealable():
            files[name], mode = read_with_mode(paths.root / name)
            if mode == "100755":
                executable.add(name)
    files |= {f"code/{name}": data for name, data in sealed_code(builds).items()}
    with staged(files, frozenset(executable)) as stage:
        yield stage


def unmade(protocol: Protocol) -> list[str]:
    """The builds of a study that have no environment, or no image, on this machine."""
    names = sorted({c.build for c in protocol.configurations})
    if protocol.runtime == "container":
        return [name for name in names if built_image(load_build(name)) is None]
    return [name for name in names if built(load_build(name)) is None]
