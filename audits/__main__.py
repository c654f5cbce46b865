"""Start: ``python -I audits STUDY``. Refuses the code under audit before anything else is imported."""

from __future__ import annotations

import sys

FORBIDDEN = ("prereg", "harness")
"""Top-level packages whose code an independent audit must not run."""


class Refusal:
    """A meta path finder that refuses to import the code under audit."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse a forbidden package and everything in it; leave all else to the other finders."""
        if name.partition(".")[0] in FORBIDDEN:
            raise ImportError(f"the independent auditor must not import {name!r}: it shares no code with it")


def refuse_imports() -> None:
    """Install the refusal in front of every other finder, once."""
    if Refusal not in sys.meta_path:
        sys.meta_path.insert(0, Refusal)


def _package() -> None:
    """Make the folder this file is in importable as ``audits``, and nothing beside it."""
    import importlib.util
    from pathlib import Path

    folder = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != folder]
    spec = importlib.util.spec_from_file_location(
        "audits", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:  # pragma: no cover
        raise ImportError(f"cannot load the auditor from {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["audits"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    refuse_imports()
    if not __package__:
        _package()
    from audits.cli import main

    sys.exit(main(sys.argv[1:]))
