"""No command prints what a terminal would obey, whatever file it comes from."""

import io
import sys

from hushtable.cli.errors import escaped, escaping, plain_stream


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
