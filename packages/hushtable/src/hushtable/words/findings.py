"""Sentences on what was found in a table: one table, from the kind of a finding to its words."""

from collections.abc import Sequence
from typing import Any

from hushtable.language import N_, _, ngettext, numeral
from hushtable.words.doubts import joined, n_rows
from hushtable.words.options import typed_options

#: Number of letters of a text in a sentence.
_QUOTED = 40
#: Number of rows below which nothing counts as usual.
_FEW_ROWS = 20
_SENTENCES = {
    "constant": N_("%(name)s: every row holds %(text)s."),
    "constant_values": N_("%(name)s: each of %(n)s rows with a value holds %(text)s."),
    "doubt": N_("%(name)s: %(doubt)s This affects %(rows)s."),
    "copies": N_("%(names)s are copies: each tells what the others hold."),
    "label": N_("%(name)s looks like a label of outliers: leave it out of the model (%(drop)s)."),
}  # fmt: skip


def quoted(text: str) -> str:
    """Return a text in quotation marks, with escapes for invisible characters."""
    text = text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + '"'


def finding_words(kind: str, *, columns: list[str], rows: int, **facts: Any) -> str:
    """Return a finding as a sentence."""
    if kind == "equal_rows":
        return ngettext(
            "%(n)s row is equal to an earlier row in all columns.",
            "%(n)s rows are equal to an earlier row in all columns.",
            rows,
        )
    if kind == "equal_but":
        return ngettext(
            "%(n)s row is equal to an earlier row in all columns but %(names)s.",
            "%(n)s rows are equal to an earlier row in all columns but %(names)s.",
            rows, names=joined(columns),
        )  # fmt: skip
    if kind == "equal_ids":
        return ngettext(
            "%(name)s: %(n)s row has the identifier of an earlier row.",
            "%(name)s: %(n)s rows have the identifier of an earlier row.",
            rows, name=columns[0],
        )  # fmt: skip
    if kind == "totals":
        label = quoted(facts["label"]) if facts["label"] else _("a missing value")
        return ngettext(
            "%(name)s: the row of %(label)s is the total of the others in %(names)s.",
            "%(name)s: rows of %(label)s are totals of the others in %(names)s.",
            rows, name=columns[0], label=label, names=joined(facts["names"]),
        )  # fmt: skip
    return _(
        _SENTENCES[kind],
        name=columns[0] if columns else "",
        names=joined(columns),
        n=numeral(rows),
        rows=n_rows(rows),
        text=quoted(facts.get("text", "")),
        doubt=ended(facts.get("doubt", "")),
        drop=typed_options([facts["drop"]] if "drop" in facts else []),
    )


def ended(words: str) -> str:
    """Return a sentence with its full stop."""
    return words if words.endswith(("?", ".")) else f"{words}."


def shape_words(n_rows: int, columns: Sequence[Any]) -> list[str]:
    """Return sentences on a table that shows too little of what is usual."""
    words = []
    if n_rows < _FEW_ROWS:
        words.append(
            ngettext(
                "%(n)s row is too few to determine what is unusual",
                "%(n)s rows are too few to determine what is unusual",
                n_rows,
            )
        )
    elif n_rows < len(columns):
        words.append(
            _(
                "%(n)s rows are few for %(columns)s columns: what is unusual in so many may be "
                "chance",
                n=numeral(n_rows),
                columns=numeral(len(columns)),
            )
        )
    if columns and n_rows > 1 and all(one.kind in ("constant", "empty") for one in columns):
        words.append(_("no column varies, so no row can be unusual"))
    return words
