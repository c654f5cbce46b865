"""Validation against the closed schemas of `schemas/v1`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prereg.codec.canonical import Json, loads
from prereg.errors import UsageError, VerificationFailed


class SchemaViolation(VerificationFailed):
    """A value that its schema does not allow."""


class AuthoredFileInvalid(UsageError):
    """A file that a person wrote is not of its form."""


def schema_folder() -> Path:
    """Where the schemas are: beside the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    beside = package.parent / "schemas" / "v1"
    return beside if beside.is_dir() else package / "_data" / "schemas" / "v1"


@functools.cache
def _validator(name: str) -> Any:
    import jsonschema  # heavy, and not needed for --help

    path = schema_folder() / f"{name}.schema.json"
    schema: Any = loads(path.read_bytes(), where=path.name)
    schema = _inlined(schema, schema.get("$defs", {}))
    extend: Any = jsonschema.validators.extend
    plain = jsonschema.Draft202012Validator
    one_of = functools.partial(_one_of, plain.VALIDATORS["oneOf"])
    return extend(plain, {"pattern": _pattern, "oneOf": one_of})(schema)


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema with its own definitions in the place of references to them; none of ours refers to itself.

    Looking a reference up takes longer than what is behind it.
    """
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if set(schema) == {"$ref"}:
        return _inlined(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    return {key: _inlined(value, definitions) for key, value in schema.items()}


def _one_of(slowly: Any, validator: Any, alternatives: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """`oneOf` without a try of what cannot match: an event family has a hundred thousand events of a dozen
    kinds. Whatever is not plainly right the library looks at itself, and says why."""
    likely = [each for each in alternatives if _may_match(each, instance)]
    if sum(next(validator.descend(instance, each), None) is None for each in likely) != 1:
        yield from slowly(validator, alternatives, instance, schema)


def _may_match(alternative: Any, instance: Any) -> bool:
    """False only where a required key is missing, or a key does not have its one text."""
    if not isinstance(instance, dict):
        return True
    texts = ((key, rule.get("const")) for key, rule in alternative.get("properties", {}).items())
    return all(key in instance for key in alternative.get("required", ())) and all(
        instance[key] == text for key, text in texts if isinstance(text, str) and key in instance
    )


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
    """`$` in a schema means the end (ECMA 262); Python's also matches before a last newline."""
    import jsonschema

    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def pointer(parts: Any) -> str:
    """A JSON pointer (RFC 6901) from path parts."""
    return "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in parts)


def validate(value: Json, name: str, *, where: str, authored: bool = False) -> None:
    """Check `value` against schema `name`.

    Raises AuthoredFileInvalid for a file that a person wrote (`authored`), else SchemaViolation; both name
    the place as `where#/json/pointer`.
    """
    error = _deepest(_validator(name).iter_errors(value))
    if error is None:
        return
    place = f"{where}#{pointer(error.absolute_path)}"
    message = error.message if len(error.message) < 300 else error.message[:300] + "…"
    kind = AuthoredFileInvalid if authored else SchemaViolation
    raise kind(message, where=place, next_step=f"compare with schemas/v1/{name}.schema.json")


def _deepest(errors: Any) -> Any:
    """The most telling error: inside a oneOf, the alternative whose `kind` or `type` matched."""
    import jsonschema

    best = jsonschema.exceptions.best_match(errors)
    while best is not None and best.context:
        matched = [
            e
            for e in best.context
            if not any(f.schema_path[0] == e.schema_path[0] and f.validator == "const" for f in best.context)
        ]
        best = jsonschema.exceptions.best_match(matched or best.context)
    return best
