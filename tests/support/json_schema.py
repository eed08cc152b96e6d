"""Checks JSON against a schema, with the keywords that tensorplan's schemas use.

It is stricter than JSON Schema: a field that the schema does not describe is an error,
and so is an unknown keyword.
"""

import re
from collections.abc import Mapping
from typing import Any

_TYPES = {"object": dict, "array": list, "string": str, "integer": int}
_NOTES = {"$schema", "title", "description", "required"}


def check(value: Any, schema: Mapping[str, Any], place: str = "$") -> None:
    """Raises an `AssertionError` with the path of a value that violates `schema`."""
    for keyword, rule in schema.items():
        if keyword not in _NOTES:
            assert _CHECKS[keyword](value, rule), (
                f"{place}: {value!r}: {keyword} {rule}"
            )
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        missing = set(schema.get("required", ())) - value.keys()
        assert not missing, f"{place}: {missing} missing"
        for name, each in value.items():
            rule = known.get(name, others)
            assert rule, f"{place}: {name} is not described"
            check(each, rule, f"{place}.{name}")
    if isinstance(value, list):
        for number, each in enumerate(value):
            check(each, schema["items"], f"{place}[{number}]")


_CHECKS = {
    "const": lambda value, rule: value == rule,
    "enum": lambda value, rule: value in rule,
    "type": lambda value, rule: type(value) is _TYPES[rule],
    "minimum": lambda value, rule: value >= rule,
    "pattern": lambda value, rule: re.search(rule, value),
    "minItems": lambda value, rule: len(value) >= rule,
    "maxItems": lambda value, rule: len(value) <= rule,
    "properties": lambda value, rule: isinstance(value, dict),
    "additionalProperties": lambda value, rule: isinstance(value, dict),
    "items": lambda value, rule: isinstance(value, list),
}
