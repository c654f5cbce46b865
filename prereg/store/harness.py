"""The harness of this installation as bytes: what a seal copies, and its digest."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from prereg.codec.schema import schema_folder
from prereg.errors import UsageError
from prereg.store.files import read_once
from prereg.store.layout import distribution_root, harness_root


def harness_files(root: Path | None = None) -> dict[str, bytes]:
    """Every .py file of the harness outside `builds/`, by its path below `harness/`."""
    root = harness_root() if root is None else root
    return {name: read_once(root / name) for name in _names(root, ".py") if not name.startswith("builds/")}


def harness_digest(files: Mapping[str, bytes] | None = None) -> str:
    """The digest of the harness code, as `events.json` names it.

    SHA-256 over one `<path>\\0<sha256>\\n` for each .py file of the harness outside `builds/`, sorted by
    path; paths are relative to the harness folder. Without `files` it is that of this installation.
    """
    files = harness_files() if files is None else files
    lines = (f"{name}\0{sha256(files[name]).hexdigest()}\n" for name in sorted(files))
    return sha256("".join(lines).encode()).hexdigest()


def sealed_code(builds: Iterable[str]) -> dict[str, bytes]:
    """What seal writes below `code/`: harness, the named builds, schemas, and prereg.model where it is used.

    Raises UsageError for a build that the harness does not have.
    """
    root = harness_root()
    own = harness_files(root)
    files = {f"harness/{name}": data for name, data in own.items()}
    for build in sorted(set(builds)):
        folder = root / "builds" / build
        if not folder.is_dir():
            raise UsageError(
                f"there is no engine build {build!r}",
                where="protocol.json#/configurations",
                next_step="prereg build",
            )
        for name in _names(folder, ""):
            files[f"harness/builds/{build}/{name}"] = read_once(folder / name)
    for path in sorted(schema_folder().glob("*.schema.json")):
        files[f"schemas/v1/{path.name}"] = read_once(path)
    if any(_imports_prereg(data) for data in own.values()):
        package = distribution_root() / "prereg"
        files["prereg/__init__.py"] = read_once(package / "__init__.py")
        for name in _names(package / "model", ".py"):
            files[f"prereg/model/{name}"] = read_once(package / "model" / name)
    return files


def sealed_harness(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """From a study's files, those that `harness_digest` covers."""
    prefix = "code/harness/"
    return {
        name.removeprefix(prefix): data
        for name, data in files.items()
        if name.startswith(prefix) and name.endswith(".py") and not name.startswith(f"{prefix}builds/")
    }


def _names(folder: Path, suffix: str) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if "__pycache__" in name.parts or path.suffix == ".pyc" or path.is_dir():
            continue
        if path.name.endswith(suffix):
            found.append(name.as_posix())
    return sorted(found)


def _imports_prereg(data: bytes) -> bool:
    for node in ast.walk(ast.parse(data)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
        if any(name.split(".")[0] == "prereg" for name in names):
            return True
    return False
