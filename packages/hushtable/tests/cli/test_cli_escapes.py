"""No command prints what a terminal would obey, whatever file it comes from."""

import io
import sys
import unicodedata

from hushtable.cli.errors import escaped, escaping, plain_stream
from hushtable.data import Schema

#: Erase the screen, hide, ring, go back, the one-character form of ESC [, turn the direction.
ODD = ("\x1b[2J\x1b[8m", "\x07\x08", "\x9b2J", "\u202eevil\u202c", "\x7f", "\r")
AGE, WARD, TITLE = f"age{ODD[0]}", f"ward{ODD[3]}", f"March{''.join(ODD)}"
NORTH, SOUTH = f"north{ODD[2]}", f"south{ODD[1]}"
ID = f"id{ODD[4]}"


def obeyed(text):
    """Return the characters of a text that a terminal obeys, those of its lines aside."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t"}


def test_a_draft_on_standard_output_is_read_back(odd, run, tmp_path):
    (tmp_path / "draft.toml").write_text(run("plan", "draft", odd / "east.csv").out)
    names = [
        line for line in (tmp_path / "draft.toml").read_text().splitlines() if "name =" in line
    ]
    assert not obeyed("".join(names))
    (tmp_path / "odd.toml").write_text("\n".join(
        f"[[feature]]\n{name}\nkind = 'numeric'\nlow = 0\nhigh = 1" for name in names
    ))  # fmt: skip
    assert {AGE, WARD} <= {*Schema.from_toml(tmp_path / "odd.toml").names}


def test_each_character_that_a_terminal_obeys():
    marks = "\u202a\u202e\u2066\u2069\u200f\u2028\ud800\ufeff"
    for odd in (*map(chr, range(32)), *map(chr, range(127, 160)), *marks):
        assert escaped(odd, kept="").isascii(), repr(odd)
        assert escaped(odd, kept="").isprintable(), repr(odd)


def test_letters_of_all_languages_are_printed_as_they_are():
    for text in ("Größe", "体温", "العمر", "m²", "10\xa0000", "°C", "\t1\n", "🌡"):
        assert escaped(text) == text


def test_the_stream_is_the_one_that_there_was(monkeypatch):
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stdout", plain)
    with escaping():
        assert plain_stream() is plain
        print("a\x1b[2J", end="")
        assert not sys.stdout.isatty()
    assert plain.getvalue() == "a\\x1b[2J"
    assert sys.stdout is plain
