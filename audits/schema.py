"""A validator for exactly the JSON Schema keywords that ``schemas/v1`` uses; any other is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from audits.fault import Fault
from audits.jsonc import canonical, escape_pointer

_ANNOTATIONS = {"$schema", "$id", "title", "$defs"}
_APPLIED = {
    "$ref", "additionalProperties", "anyOf", "const", "enum", "exclusiveMaximum", "exclusiveMinimum", "items",
    "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "oneOf", "pattern", "properties",
    "propertyNames", "required", "type", "uniqueItems",
}  # fmt: skip
_MAPS = {"properties", "$defs"}
_LISTS = {"anyOf", "oneOf"}
_SINGLE = {"items", "propertyNames", "additionalProperties"}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip

Wrong = tuple[str, str]
"""A JSON pointer and what is wrong there."""


class SchemaFault(Fault):
    """A schema this validator does not know how to apply in full."""


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    # In ECMAScript `$` is the end of the text; in Python it would let a final newline through.
    if text.endswith("$") and not text.endswith("\\$"):
        text = text[:-1] + r"\Z"
    if "$" in text:
        raise SchemaFault(f"pattern {text!r} has a $ before its end")
    return re.compile(text)


def check_schema(schema: Any, pointer: str = "") -> None:
    """Refuse a schema with a keyword that validation would ignore."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise SchemaFault("a schema is an object or a boolean", pointer=pointer)
    for key, value in schema.items():
        here = f"{pointer}/{escape_pointer(key)}"
        if key not in _ANNOTATIONS and key not in _APPLIED:
            raise SchemaFault(f"unknown schema keyword {key!r}", pointer=here)
        if key == "$ref" and len(schema) > 1:
            raise SchemaFault("$ref with other keywords beside it", pointer=here)
        if key == "$ref" and not str(value).startswith("#/$defs/"):
            raise SchemaFault(f"$ref to {value!r}", pointer=here)
        if key in _MAPS:
            for name, inner in value.items():
                check_schema(inner, f"{here}/{escape_pointer(name)}")
        elif key in _LISTS:
            for i, inner in enumerate(value):
                check_schema(inner, f"{here}/{i}")
        elif key in _SINGLE:
            check_schema(value, here)
        elif key == "pattern":
            _pattern(value)


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])


def _same(a: Any, b: Any) -> bool:
    return canonical(a) == canonical(b)


class Schema:
    """One checked schema."""

    def __init__(self, root: Any) -> None:
        """Refuses a schema that uses anything unknown."""
        check_schema(root)
        self._root = root

    def first_wrong(self, value: Any) -> Wrong | None:
        """The first thing wrong with a value, or None."""
        return next(self._wrong(value, self._root, ""), None)

    def check(self, value: Any, file: str = "") -> None:
        """Raise a ``Fault`` that names file and pointer if the value does not satisfy the schema."""
        wrong = self.first_wrong(value)
        if wrong is not None:
            raise Fault(wrong[1], file=file, pointer=wrong[0] or "/")

    def _wrong(self, value: Any, schema: Any, at: str) -> Iterator[Wrong]:
        if isinstance(schema, bool):
            if not schema:
                yield at, "not allowed here"
            return
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            if name not in self._root.get("$defs", {}):
                raise SchemaFault(f"$ref to {name!r}, which is not defined")
            yield from self._wrong(value, self._root["$defs"][name], at)
            return
        names = schema.get("type")
        if names is not None:
            allowed = [names] if isinstance(names, str) else names
            if not any(_is(value, name) for name in allowed):
                yield at, f"must be {' or '.join(allowed)}"
                return
        if "const" in schema and not _same(value, schema["const"]):
            yield at, f"must be {canonical(schema['const']).decode()}"
        if "enum" in schema and not any(_same(value, item) for item in schema["enum"]):
            yield at, f"must be one of {canonical(schema['enum']).decode()}"
        if isinstance(value, str):
            yield from self._wrong_string(value, schema, at)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield from self._wrong_number(value, schema, at)
        elif isinstance(value, list):
            yield from self._wrong_list(value, schema, at)
        elif isinstance(value, dict):
            yield from self._wrong_object(value, schema, at)
        yield from self._wrong_choice(value, schema, at)

    def _wrong_choice(self, value: Any, schema: dict[str, Any], at: str) -> Iterator[Wrong]:
        for key in ("anyOf", "oneOf"):
            if key not in schema:
                continue
            firsts = [next(self._wrong(value, inner, at), None) for inner in schema[key]]
            good = firsts.count(None)
            if good == 0:
                failing = [first for first in firsts if first is not None]
                yield max(failing, key=lambda w: (w[0].count("/"), not w[1].startswith("must be")))
            elif key == "oneOf" and good > 1:
                yield at, f"matches {good} forms where exactly one is allowed"

    @staticmethod
    def _wrong_string(value: str, schema: dict[str, Any], at: str) -> Iterator[Wrong]:
        if len(value) < schema.get("minLength", 0):
            yield at, "too short"
        if len(value) > schema.get("maxLength", len(value)):
            yield at, f"longer than {schema['maxLength']} characters"
        if "pattern" in schema and not _pattern(schema["pattern"]).search(value):
            yield at, f"does not match {schema['pattern']}"

    @staticmethod
    def _wrong_number(value: int | float, schema: dict[str, Any], at: str) -> Iterator[Wrong]:
        if "minimum" in schema and value < schema["minimum"]:
            yield at, f"less than {schema['minimum']}"
        if "maximum" in schema and value > schema["maximum"]:
            yield at, f"more than {schema['maximum']}"
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            yield at, f"not more than {schema['exclusiveMinimum']}"
        if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
            yield at, f"not less than {schema['exclusiveMaximum']}"

    def _wrong_list(self, value: list[Any], schema: dict[str, Any], at: str) -> Iterator[Wrong]:
        if len(value) < schema.get("minItems", 0):
            yield at, f"fewer than {schema['minItems']} items"
        if len(value) > schema.get("maxItems", len(value)):
            yield at, f"more than {schema['maxItems']} items"
        if schema.get("uniqueItems") and len({canonical(item) for item in value}) != len(value):
            yield at, "items are not unique"
        if "items" in schema:
            for i, item in enumerate(value):
                yield from self._wrong(item, schema["items"], f"{at}/{i}")

    def _wrong_object(self, value: dict[str, Any], schema: dict[str, Any], at: str) -> Iterator[Wrong]:
        for key in schema.get("required", ()):
            if key not in value:
                yield at, f"misses {key!r}"
        properties = schema.get("properties", {})
        for key, item in value.items():
            here = f"{at}/{escape_pointer(key)}"
            if "propertyNames" in schema:
                for _, what in self._wrong(key, schema["propertyNames"], ""):
                    yield here, f"its name {what}"
            if key in properties:
                yield from self._wrong(item, properties[key], here)
            elif schema.get("additionalProperties") is False:
                yield here, "unknown property"
            elif "additionalProperties" in schema:
                yield from self._wrong(item, schema["additionalProperties"], here)
