"""The page of a table's rules: values that are impossible, and rows that are known."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hushtable.language import N_
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
    content = judging.rules
    return desk_of(request).page(
        request, "rules.html", table=table, here="rules", settings=SETTINGS,
        columns=[as_typed(rule) for rule in content.get("column", ())],
        known=[as_typed(rule) for rule in content.get("known", ())],
        names=[feature.name for feature in judging.review.features[:_MOST]],
    )  # fmt: skip


def as_typed(rule: Mapping[str, Any]) -> dict[str, str]:
    """Return the entries of a rule as a person types them: a list has a value in each line."""
    return {
        name: "\n".join(map(_typed, value)) if isinstance(value, list) else _typed(value)
        for name, value in rule.items()
    }


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def change(request: Request, said: dict[str, Any]) -> dict[str, Any]:
    """Add, change or remove a rule, and score all rows with the rules.

    ``kind`` and ``number`` are those of `hushtable.scores.rules.write_rule`; without a number, a
    rule is added. The rule's own entries begin with an equals sign; without any, it is removed.
    """
    table = table_of(request)
    kind, number = str(said.get("kind", "")), str(said.get("number", ""))
    place = int(number) if number.isdecimal() else None
    rules = table.judging.rules.get(kind, [])
    before = rules[place] if place is not None and place < len(rules) else {}
    numeric = {one.name for one in table.judging.review.features if one.kind == "numeric"}
    texts = {name[1:]: str(text).strip() for name, text in said.items() if name.startswith("=")}
    rule = dict[str, Any]()
    for name, text in texts.items():
        is_number = isinstance(before.get(name), int | float) or name in numeric
        if kind == "column":
            is_number = name != "name" and texts.get("name") in numeric
        if name == "impossible":
            rule[name] = [_entered(line, is_number) for line in text.splitlines() if line.strip()]
        else:
            rule[name] = _entered(text, is_number)
    rule = {name: value for name, value in rule.items() if value not in ("", [])}
    table.judging.write_rule(kind, rule or None, place)
    return {"go": f"/t/{table.key}/rules"}


def _entered(text: str, is_number: bool) -> float | str:
    """Return a value as it was typed, also with a decimal comma."""
    text = text.strip()
    plain = text.replace(",", ".")
    try:
        if is_number:
            return int(plain) if plain.lstrip("-").isdecimal() else float(plain)
    except ValueError:  # such as a date, or what the rules refuse in words
        pass
    return text
