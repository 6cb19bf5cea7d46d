"""The page of a table's rules: values that are impossible, and rows that are known."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable.data.columns import texts_column
from hushtable.data.schema import DATE, Feature, number_of
from hushtable.data.texts.reading import ColumnReading
from hushtable.language import N_
from hushtable_desk.judging import JudgedRows
from hushtable_desk.pages import desk_of, table_of, write

#: Entries of a rule on values, each with its label in English.
SETTINGS = {
    "impossible_below": N_("Impossible below"),
    "impossible_above": N_("Impossible above"),
    "impossible": N_("Impossible values, one a line"),
}
#: Columns that a new rule can be about.
_MOST = 500


def routes() -> list[BaseRoute]:
    """Return the routes of the page and its writes."""
    at = "/t/{key}/rules"
    return [Route(at, rules_page), Route(at, write(change), methods=["POST"])]


def rules_page(request: Request) -> Response:
    """Show all rules of the model's file, each with its values to change."""
    table = table_of(request)
    judging = table.judging
    features = {feature.name: feature for feature in judging.review.features}
    typed = {
        kind: [as_typed(rule, kind, features) for rule in judging.rules.get(kind, ())]
        for kind in ("column", "known")
    }
    return desk_of(request).page(
        request, "rules.html", table=table, here="rules", settings=SETTINGS,
        names=list(features)[:_MOST], columns=typed["column"], known=typed["known"],
        numeric=[name for name, column in features.items() if column.kind == "numeric"],
    )  # fmt: skip


def as_typed(rule: Mapping[str, Any], kind: str, features: Mapping[str, Feature]) -> dict[str, str]:
    """Return the entries of a rule as a person types them: a list has a value in each line."""

    def typed(name: str, value: Any) -> str:
        if isinstance(value, list):
            return "\n".join(typed(name, item) for item in value)
        feature = features.get(str(rule.get("name")) if kind == "column" else name)
        if feature is None or feature.written is None or not isinstance(value, int | float):
            return str(value).lower() if isinstance(value, bool) else str(value)
        return number_of(feature, float(value))

    return {name: typed(name, value) for name, value in rule.items()}


def change(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Add, change or remove a rule, and score all rows with the rules.

    ``kind`` and ``number`` are those of `hushtable.scores.rules.write_rule`; without a number, a
    rule is added. The rule's own entries begin with an equals sign; without any, it is removed.
    """
    judging = table_of(request).judging
    kind, number = str(body.get("kind", "")), str(body.get("number", ""))
    place = int(number) if number.isdecimal() else None
    features = {feature.name: feature for feature in judging.review.features}
    rules = judging.rules.get(kind, [])
    before = rules[place] if place is not None and place < len(rules) else {}
    entered = as_typed(before, kind, features)
    texts = {name[1:]: str(text).strip() for name, text in body.items() if name.startswith("=")}
    rule = dict[str, Any]()
    for name, text in texts.items():
        feature = features.get(texts.get("name", "") if kind == "column" else name)
        if entered.get(name) == text and isinstance(before[name], int | float):
            rule[name] = before[name]
        elif name == "impossible":
            rule[name] = [
                _entered(line, feature, judging) for line in text.split("\n") if line.strip()
            ]
        else:
            rule[name] = text if name == "name" else _entered(text, feature, judging)
    rule = {name: value for name, value in rule.items() if value not in ("", [])}
    judging.write_rule(kind, rule or None, place)
    return {"go": request.url.path}


def _entered(text: str, feature: Feature | None, judging: JudgedRows) -> float | str:
    """Return a value as it was typed: numbers and dates as their column is written, too."""
    if feature is None or feature.kind != "numeric":
        return text.strip()
    reading = judging.model.reading.columns.get(feature.name, ColumnReading("number", "."))
    value = float(reading.values(texts_column([text.strip()]))[0])
    if not math.isfinite(value):  # such as a date of a file without texts: the rules read it
        return text.strip()
    if feature.unit == DATE:
        return str(np.datetime64(round(value), "s")).removesuffix("T00:00:00")
    return int(value) if value == int(value) else value
