"""Start: ``python -I audits STUDY``. Refuses the code under audit before anything else is imported."""

from __future__ import annotations

import errno
import sys

FORBIDDEN = ("prereg", "harness")
"""Top-level packages whose code an independent audit must not run."""
_TEXTS = ("cannot allocate memory", "failed to map segment", "out of memory", "malloc failure", "error -4 ")
"""What the loader, OpenSSL and zlib say where memory ended and they give no number; in lower case."""
_SPEAKERS = (("zlib", "error"), ("cryptography.exceptions", "InternalError"))
"""The errors, which are no ``MemoryError``, that may say so."""


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
    """Make the folder this file is in importable as ``audits``, and nothing beside it.

    The code that runs is the source that the report's digest is of: no bytecode is read or written.
    """
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path
    from types import CodeType

    folder = Path(__file__).resolve().parent

    class FromSource(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            path = self.get_filename(fullname)
            code: CodeType = self.source_to_code(self.get_data(path), path)
            return code

    class Own:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            package, _, module = name.partition(".")
            file = folder / f"{module or '__init__'}.py"
            if package != "audits" or not file.is_file():
                return None
            inside = None if module else [str(folder)]
            loader = FromSource(name, str(file))
            return spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)

    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != folder]
    sys.meta_path.insert(1, Own)
    spec = Own.find_spec("audits")
    if spec is None or spec.loader is None:  # pragma: no cover
        raise ImportError(f"cannot load the auditor from {folder}")
    sys.modules["audits"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["audits"])


def _forget_bytecode() -> None:
    """Python caches this very file before its first line runs; leave the folder as it was."""
    from contextlib import suppress
    from pathlib import Path

    cached = globals().get("__cached__")
    if cached:
        with suppress(OSError):
            Path(cached).unlink(missing_ok=True)
            Path(cached).parent.rmdir()


def is_shortage(error: BaseException) -> bool:
    """Whether an error, or one it came of, says that memory is not enough: that says nothing of the evidence.

    It is defined here because any other module may be what found no room when it was loaded.
    """
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        if _says_shortage(one):
            return True
        seen.add(id(one))
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return False


def _says_shortage(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    if (
        isinstance(error, (ImportError, OSError))
        or (type(error).__module__, type(error).__name__) in _SPEAKERS
    ):
        return any(text in str(error).lower() for text in _TEXTS)
    return isinstance(error, MemoryError)


def _start() -> int:
    """Load the auditor and run it; returns the exit code, that of an incomplete audit where memory ends."""
    try:
        if not __package__:
            _package()
            _forget_bytecode()
        from audits.cli import main

        return main(sys.argv[1:])
    except Exception as error:
        if not is_shortage(error):
            raise
        why = str(error) if isinstance(error, ImportError) else "the memory is not enough"
    try:
        sys.stderr.write(f"audits: {why}: nothing was decided\n")
        sys.stderr.flush()
    except (AttributeError, OSError, MemoryError):
        sys.stderr = sys.__stdin__  # what is left in it would make the exit code 120
    return 3


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    refuse_imports()
    sys.exit(_start())
