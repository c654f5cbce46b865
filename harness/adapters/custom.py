"""A user's own classes, loaded from the file that holds them and made anew for every request.

A configuration names one as `{"file": path, "class": name, "arguments": object}`, with the digest that the
file must have as `"sha256"` if it shall be bound. A path is absolute, or relative to the folder that the
configuration was opened in: a study's own. The standard library is all this needs: any
engine's adapter can use it.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.wire import BAD_REQUEST, JobError

REQUIRED: Mapping[str, type] = {"file": str, "class": str, "arguments": dict}
OPTIONAL: Mapping[str, type] = {"sha256": str}
LISTS = ("processors", "stopping", "stopping_criteria")
"""The features that name classes, whatever the engine calls them."""
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of other environments, whose packages must not stand in for this one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """One class of a user's, with what to call it with."""

    where: str
    """Its place in the configuration, for messages."""

    kind: type[Any]
    arguments: Mapping[str, Any]

    def fresh(self) -> Any:
        """A new instance. The arguments are copied: no instance may change those of the next.

        Raises `JobError` if the class cannot be made with them.
        """
        try:
            return self.kind(**copy.deepcopy(dict(self.arguments)))
        except Exception as error:
            raise JobError(
                BAD_REQUEST,
                f"{self.where}: {self.kind.__qualname__} cannot be made with these arguments: "
                f"{type(error).__name__}: {error}",
            ) from error


def located(features: Mapping[str, Any], cwd: str | None) -> Mapping[str, Any]:
    """`features` with the relative paths of own classes taken from `cwd`; without one they are refused."""
    if cwd is None:
        return features
    found = dict(features)
    for name in LISTS:
        if isinstance(found.get(name), list):
            found[name] = [_located(entry, Path(cwd)) for entry in found[name]]
    return found


def _located(entry: Any, folder: Path) -> Any:
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return entry
    return {**entry, "file": str(folder / entry["file"])}


def load_all(given: Any, where: str) -> tuple[Custom, ...]:
    """The classes that a list names, each made once to see that it can be; `JobError` says what is wrong."""
    if not isinstance(given, list):
        raise JobError(BAD_REQUEST, f"{where} is not a list")
    found = tuple(_load(entry, f"{where}[{at}]") for at, entry in enumerate(given))
    for custom in found:
        if not callable(custom.fresh()):
            raise JobError(BAD_REQUEST, f"{custom.where}: a {custom.kind.__qualname__} cannot be called")
    return found


def _load(entry: Any, where: str) -> Custom:
    if not isinstance(entry, dict):
        raise JobError(BAD_REQUEST, f"{where} is not an object of {', '.join(REQUIRED)}")
    for name in sorted(entry.keys() - REQUIRED.keys() - OPTIONAL.keys()):
        raise JobError(BAD_REQUEST, f"{where}.{name} is unknown")
    for name, kind in {**REQUIRED, **OPTIONAL}.items():
        if name in REQUIRED and name not in entry:
            raise JobError(BAD_REQUEST, f"{where}.{name} is missing")
        if name in entry and not isinstance(entry[name], kind):
            raise JobError(BAD_REQUEST, f"{where}.{name} has the wrong type")
    path = Path(entry["file"])
    if not path.is_absolute():
        raise JobError(BAD_REQUEST, f"{where}.file is not an absolute path: {path}")
    module = _module(path, entry.get("sha256"), where)
    found = getattr(module, entry["class"], None)
    if not isinstance(found, type):
        raise JobError(BAD_REQUEST, f"{where}: {path} has no class {entry['class']!r} at its top level")
    return Custom(where=where, kind=found, arguments=entry["arguments"])


def _module(path: Path, sha256: str | None, where: str) -> ModuleType:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise JobError(BAD_REQUEST, f"{where}.file cannot be read: {error}") from error
    digest = hashlib.sha256(source).hexdigest()
    if sha256 is not None and sha256 != digest:
        raise JobError(
            BAD_REQUEST, f"{where}.file is not the one meant: its digest is {digest}, not {sha256}"
        )
    try:
        return _execute(path, source, digest)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        raise JobError(
            BAD_REQUEST,
            f"{where}: {path} cannot be loaded in the engine's environment: {type(error).__name__}: {error}",
        ) from error


def _execute(path: Path, source: bytes, digest: str) -> ModuleType:
    """The module of that source. Imports of its neighbours work as they do in a test suite."""
    packages: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        packages.insert(0, folder.name)
        folder = folder.parent
    if folder.name not in INSTALLED and str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that nothing there stands in for a part of the engine
    if packages:
        # A part of an installed package, the engine's own perhaps, is the one that the engine has.
        known = _installed(".".join(packages if path.stem == "__init__" else [*packages, path.stem]))
        if known is None:
            packages = []
        elif known.__file__ is not None and Path(known.__file__).resolve() == path.resolve():
            return known
    name = ".".join([*packages, f"{path.stem}_{digest[:12]}"])
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ImportError("it is not a file of Python source")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # The bytes that were digested, not the file once more.
        exec(compile(source, str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _installed(name: str) -> ModuleType | None:
    """The module of that dotted name; None if another package has the name of one of its packages."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise
