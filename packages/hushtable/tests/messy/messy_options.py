"""Options of the command line: as a message asks for them, as they are typed, and in Python."""

import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Options that add up, and those that say how a file is laid out, which no model keeps.
LISTS = {"--missing": "missing", "--as": "kinds", "--drop": "drop", "--columns": "columns"}
LAYOUT = ("--encoding", "--delimiter", "--no-header", "--skip-lines", "--skip-footer", "--sheet")


class Options(dict[str, list[str]]):
    """Options of the command line, as they are typed: by name, the values."""

    @classmethod
    def parse(cls, words: Iterable[str]) -> "Options":
        """Take apart the words that a shell would pass on."""
        options = cls()
        words = [word for word in words if word not in ("or", "and")]
        for i, word in enumerate(words):
            if not re.match(r"--[a-z]", word):
                continue
            name, equals, value = word.partition("=")
            if not equals and name != "--no-header":
                value = words[i + 1] if i + 1 < len(words) else ""
            # Of the two answers to a question, the first; whoever knows better replaces it.
            first = value.split("/")[0] if name in ("--dates", "--decimal") else value
            options.add(name, next(csv.reader([value])) if name in LISTS else [first])
        return options

    @classmethod
    def said(cls, message: str, knows: Mapping[str, str]) -> "Options":
        """Take the options out of a message; where its reader knows better, that stands."""
        _, add, tail = message.rpartition("Add: ")
        assert add, f"the message does not end with options to add: {message}"
        options = cls.parse(shlex.split(tail))
        assert options, f"no options after 'Add: ' in: {message}"
        if "--drop" in options:
            options.pop("--keep-text", None)  # the other way out
        ours = knows.get("--as", "").partition("=")[0]
        if ours in options.get("--drop", []) and f"--as {ours}=" in message:
            # The message offers both ways: its reader needs the column.
            options["--as"] = []
            options["--drop"] = [name for name in options["--drop"] if name != ours]
            if not options["--drop"]:
                del options["--drop"]
        for name in set(options) & set(knows):
            known = cls.parse([name, knows[name]])[name]
            if name == "--as":
                theirs = {text.partition("=")[0] for text in known}
                known += [text for text in options[name] if text.partition("=")[0] not in theirs]
            options[name] = known
        return options

    def add(self, name: str, values: Sequence[str]) -> None:
        old = self.get(name, []) if name in LISTS else []
        self[name] = [*old, *(value for value in values if value not in old)]

    def joined(self, other: "Options") -> "Options":
        both = Options({name: list(values) for name, values in self.items()})
        for name, values in other.items():
            both.add(name, values)
        return both

    def words(self) -> list[str]:
        """Return the words of a command line."""
        words = []
        for name, values in self.items():
            if name == "--no-header":
                words.append(name)
                continue
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(values)
            words += [name, line.getvalue() if name in LISTS else values[0]]
        return words

    def keywords(self) -> dict[str, Any]:
        """Return the arguments that mean the same in Python."""
        keywords: dict[str, Any] = {}
        for name, values in self.items():
            if name == "--no-header":
                keywords["header"] = False
            elif name == "--as":
                keywords["kinds"] = dict(text.rsplit("=", 1) for text in values)
            elif name in LISTS:
                keywords[LISTS[name]] = values
            elif name in ("--skip-lines", "--skip-footer"):
                keywords[name.removeprefix("--").replace("-", "_")] = int(values[0])
            else:
                keywords[name.removeprefix("--").replace("-", "_")] = values[0]
        return keywords

    def __str__(self) -> str:
        return shlex.join(self.words())
