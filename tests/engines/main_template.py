"""The configurations of the template `main`, opened in a worker of their build's environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from harness.session import Session
from prereg.collect.runtime import environment_of, interpreter

_PROTOCOL = json.loads((files("prereg.draft") / "templates" / "main" / "protocol.json").read_bytes())
CONFIGURATIONS: dict[str, dict[str, Any]] = {each["id"]: each for each in _PROTOCOL["configurations"]}
BUILDS = tuple(dict.fromkeys(each["build"] for each in CONFIGURATIONS.values()))

OFF = {"id": "off", "role": "reference", "speculation": False}
ON = {"id": "on", "role": "test", "speculation": True}


def of_build(build: str) -> list[str]:
    """The configurations of a build."""
    return [name for name, each in CONFIGURATIONS.items() if each["build"] == build]


@contextmanager
def worker(build: str, prelude: str = "") -> Iterator[Session]:
    """A worker in a build's environment; `prelude` is run in it before it serves."""
    with Session(str(interpreter(environment_of(build))), prelude=prelude) as session:
        yield session


def start(session: Session, name: str, **changes: Any) -> None:
    """Open one of the configurations, with these of its fields replaced."""
    configuration = CONFIGURATIONS[name] | changes
    model, prompt = _PROTOCOL["models"][configuration["model"]], _PROTOCOL["prompts"][configuration["prompt"]]
    session.ask("open", configuration=configuration, model=model, prompt=prompt, cwd=None)
