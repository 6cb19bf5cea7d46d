"""No command of any package prints what a terminal would obey, whatever file it comes from."""

import csv
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from cli_helpers import trust
from hushtable.data import Schema

#: Erase the screen, hide, ring, go back, the one-character form of ESC [, turn the direction.
ODD = ("\x1b[2J\x1b[8m", "\x07\x08", "\x9b2J", "\u202eevil\u202c", "\x7f", "\r")
AGE, WARD, TITLE = f"age{ODD[0]}", f"ward{ODD[3]}", f"March{''.join(ODD)}"
NORTH, SOUTH = f"north{ODD[2]}", f"south{ODD[1]}"
ID = f"id{ODD[4]}"


def obeyed(text):
    """Return the characters of a text that a terminal obeys, those of its lines aside."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t"}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Rows, schema, and two sites with keys, where every name that others may choose is odd."""
    here = tmp_path_factory.mktemp("odd")
    schema = [
        {"name": AGE, "kind": "numeric", "low": 0, "high": 120},
        {"name": WARD, "kind": "categorical", "categories": [NORTH, SOUTH]},
    ]
    tables = (
        "\n".join(f"{key} = {json.dumps(value)}" for key, value in one.items()) for one in schema
    )
    text = "\n".join(f"[[feature]]\n{table}\n" for table in tables).replace("\x7f", "\\u007f")
    (here / "schema.toml").write_text(text, encoding="utf-8")
    rng = np.random.default_rng(0)
    for name in ("east", "west"):
        with (here / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow([ID, AGE, WARD])
            for k in range(300):
                ward = "unknown\x1b[0m" if k == 3 else (NORTH, SOUTH)[int(rng.random() < 0.4)]
                out.writerow([f"P{k}{ODD[k % 5]}", f"{rng.integers(20, 80)}", ward])
    return here


def commands(odd):
    """Return command lines, each of files that those before it wrote; all print for people."""
    data, model = odd / "east.csv", odd / "m.hush"
    fit = ("fit", data, "--drop", ID, "--seed", 0)
    top = ("score", data, "--model", model, "--id", ID, "--top", 5)
    asks = ("round", "open", odd / "p.hush", odd / "east.card", odd / "west.card")
    known = trust(odd, "lead", "east", "west")
    sync = ("round", "sync", odd / "box", "-o", odd, "--key")
    lead = (*sync, odd / "lead.key")
    sites = [site for one in ("east", "west") for site in (
        ("round", "show", odd / "r.hush", "--key", odd / f"{one}.key"),
        (*sync, odd / f"{one}.key", odd / f"{one}.csv", "--yes", *known),
        ("round", "book", odd / f"{one}.book"),
    )]  # fmt: skip
    return [
        ("plan", "draft", data),
        ("plan", "draft", data, "-o", odd / "draft.toml"),
        ("plan", "check", odd / "schema.toml", data),
        (*fit, "-o", model),
        ("inspect", model),
        ("score", data, "--model", model, "--explain", "-o", odd / "s.csv"),
        *((*top, "-o", odd / f"t.{end}") for end in ("csv", "xlsx", "html", "parquet")),
        ("report", model, data, "-o", odd / "report.html", "--values"),
        ("report", model, data, "-o", odd / "report.html"),
        ("plan", "draw", odd / "schema.toml", "--seed", 1, "--tables", 5, "-o", odd / "p.hush"),
        ("plan", "marginals", odd / "schema.toml", "-o", odd / "q.hush"),
        ("inspect", odd / "p.hush"),
        ("sketch", data, "--plan", odd / "p.hush", "-o", odd / "a.sketch.hush"),
        ("sketch", odd / "west.csv", "--plan", odd / "p.hush", "-o", odd / "b.sketch.hush"),
        ("merge", odd / "a.sketch.hush", odd / "b.sketch.hush", "-o", odd / "ab.sketch.hush"),
        ("drift", odd / "a.sketch.hush", odd / "b.sketch.hush"),
        ("release", odd / "a.sketch.hush", "--epsilon", 1, "-o", odd / "a.release"),
        ("inspect", odd / "a.release"),
        ("export", model, "-o", odd / "m.json"),
        ("learn", model, odd / "verdicts.csv", "--rows", data, "--id", ID, "-o", odd / "l.hush"),
        ("learn", model, odd / "wrong.csv", "--rows", data, "--id", ID, "-o", odd / "l.hush"),
        ("watch", odd / "in", "--model", model, "-o", odd / "out"),
        *(("round", "keygen", odd / one, *rest) for one, *rest in (
            ("lead",), ("east", "--cap", 9, "--persons", 1),
            ("west", "--cap", 9, "--persons", 1),
        )),
        (*asks, "--key", odd / "lead.key", "--epsilon", 1, "--title", TITLE, "-o", odd / "r.hush"),
        ("inspect", odd / "r.hush"),
        ("round", "show", odd / "r.hush"),
        (*lead, "--post", odd / "r.hush"),
        ("round", "status", odd / "box"),
        *sites,
        lead,
        *sites,
        lead,
        *sites,
        lead,
        ("round", "status", odd / "box"),
        (*sync, odd / "east.key"),
        ("round", "verify", odd / "*.result.hush", "--book", odd / "east.book"),
    ]  # fmt: skip


@pytest.mark.slow
def test_no_command_prints_what_a_terminal_obeys(odd, run, monkeypatch):
    monkeypatch.chdir(odd)
    (odd / "box").mkdir()
    (odd / "in").mkdir()
    (odd / "in" / "new.csv").write_text((odd / "west.csv").read_text())
    for name, value in (("verdicts", f"P7{ODD[2]}"), ("wrong", "P0\x1b[1m")):
        (odd / f"{name}.csv").write_text(f"{ID},verdict\n{value},outlier\n")
    failed = {}
    for line in commands(Path()):
        done = run(*(next(Path().glob(str(w))) if "*" in str(w) else w for w in line))
        assert not obeyed(done.out + done.err), (line, obeyed(done.out + done.err))
        if done.code:
            failed[str(line[2])] = done.err
    assert failed.keys() == {"wrong.csv"}, failed


def test_a_draft_on_standard_output_is_read_back(odd, run, tmp_path):
    (tmp_path / "draft.toml").write_text(run("plan", "draft", odd / "east.csv").out)
    lines = (tmp_path / "draft.toml").read_text().splitlines()
    # Columns that are left out are comments, to be restored as they are.
    names = [line.lstrip("# ") for line in lines if "name =" in line]
    assert not obeyed("".join(names))
    (tmp_path / "odd.toml").write_text("\n".join(
        f"[[feature]]\n{name}\nkind = 'numeric'\nlow = 0\nhigh = 1" for name in names
    ))  # fmt: skip
    assert {AGE, WARD} <= {*Schema.from_toml(tmp_path / "odd.toml").names}
