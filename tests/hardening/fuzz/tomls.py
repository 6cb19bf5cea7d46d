"""Trees as TOML text, whatever is in them."""

import json
import math
from typing import Any


def as_toml(tree: dict[str, Any]) -> str:
    """Return TOML of a tree: a list of tables as such, all else in line."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for table in value:
                lines.append(f"[[{_key(key)}]]")
                lines += [f"{_key(k)} = {_value(v)}" for k, v in table.items()]
        else:
            lines.insert(0, f"{_key(key)} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return json.dumps(key.replace("@again", ""), ensure_ascii=False)


def _value(value: Any) -> str:
    match value:
        case None:
            return '""'
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf"
        case "@deep":
            return "[" * 20_000 + "]" * 20_000
        case "@digits":
            return "9" * 3_000
        case "@huge":
            return "1e999"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
        case str():
            return json.dumps(value, ensure_ascii=False)
    return repr(value)
