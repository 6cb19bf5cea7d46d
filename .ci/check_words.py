"""Check the words of pages, docstrings, messages, and templates.

    python .ci/check_words.py          print broken rules; exit code 1 if there are any
    python .ci/check_words.py --all    also print the number of words of every page

The project writes as the Google developer documentation style guide asks. `BANNED` lists the
constructions that reviewers stumbled over, each with what to write instead. They are refused in the
pages, in every string, docstring, and comment of the packages, and in their HTML templates. Code,
formulas, and addresses are left out.
"""

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)

#: A construction that is not standard technical English: what to write instead.
BANNED = {
    r"dear(?:er|est)?": "expensive",
    r"told(?: apart)?": "stated, reported, known; distinguished",
    r"untold|unsaid": "not stated",
    r"who(?:so)?ever": "anyone who",
    r"(?:is|are|was|were|be|been|being) said": "the active voice: the page states",
    r"of which": "a new sentence, or 'including'",
    r"(?:is|are|was|were|be|been|being) shown": "the active voice: the page shows; appears",
    r"as shown": "as in",
    r"oddest|oddit(?:y|ies)|odd (?:rows?|ones?|values?|patients?)": "unusual",
    r"as any other": "like any other",
    r"not all that": "not everything that",
    r"nobody|somebody|everybody|anybody": "no one, someone, everyone, anyone",
    r"(?:is|are|was|were|be|been) asked (?:for|of)": "requested",
    r"held against": "compared with",
    r"says so|say so|said so": "reports it",
    r"at hand": "available",
    r"anew": "again",
    r"there(?:of|in|by|upon)|where(?:of|in|by|upon)|herein|albeit|hence|shall": "plain words",
    r"need not": "does not have to",
    r"stands? (?:beside|in|on|at|there|here)": "is",
    r"in order to": "to",
    r"please": "nothing",
    r"e\.g\.|i\.e\.": "for example, that is",
}
FOUND = re.compile("|".join(rf"\b(?:{one})(?!\w)" for one in BANNED), re.IGNORECASE)
#: A clause without a subject, at the start of a sentence that is not a question.
WHO = re.compile(r"(?:^|(?<=[.:;!?] ))Who [a-z][^.?!]*\.")


def plain(text: str) -> str:
    """Remove code and the markup that a reader does not see; lines keep their places."""
    text = FENCE.sub(lambda found: "\n" * found[0].count("\n"), text.replace("\r", ""))
    text = re.sub(
        r"<!--.*?-->|^\$\$.*?^\$\$|^:{3,}.*?$|^:[\w-]+:.*?$|^\(\w+\)=$",
        lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL,
    )  # fmt: skip
    text = re.sub(r"\{\w+\}`([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`[^`\n]+`|\$[^$\n]+\$|\{\{.*?\}\}", "code", text)
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def banned(text: str) -> Iterator[tuple[int, str]]:
    """Yield the banned constructions of a text, each with its line."""
    # A construction can continue on the next line.
    joined = re.sub(r"\n[ #>]*", lambda found: " " * len(found[0]), text)
    for found in [*FOUND.finditer(re.sub(r"\s", " ", joined)), *WHO.finditer(joined)]:
        line = text.count("\n", 0, found.start()) + 1
        needed = next(
            (say for one, say in BANNED.items() if re.fullmatch(one, found[0], re.IGNORECASE)),
            "anyone who",
        )
        yield line, f"{found[0][:40]!r}: write {needed}"


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings and comments of a Python source, each with its first line."""
    kinds = (tokenize.STRING, tokenize.COMMENT)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds and " " in token.string:
            yield token.start[0], re.sub(r"``?[^`\n]+``?", "code", token.string)


def pages(root: Path) -> dict[str, str]:
    """Return the pages that people read, by name."""
    built = {"_build", "generated", "gallery"}
    docs = sorted(p for p in (root / "docs").rglob("*.md") if not built & {*p.parts})
    first = [root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return {
        str(path.relative_to(root)): path.read_text("utf-8")
        for path in (*first, *docs)
        if path.exists()
    }


def faults(root: Path, texts: dict[str, str]) -> Iterator[str]:
    """Yield all faults."""
    for name, text in texts.items():
        for line, wrong in banned(plain(text)):
            yield f"{name}:{line}: {wrong}"
    for path in sorted(root.glob("packages/*/src/**/*")):
        name = path.relative_to(root)
        if path.suffix == ".py":
            for start, text in spoken(path.read_text("utf-8")):
                yield from (f"{name}:{start + line - 1}: {wrong}" for line, wrong in banned(text))
        elif path.suffix in (".html", ".toml"):
            text = re.sub(r"\{%.*?%\}", "", path.read_text("utf-8"))
            yield from (f"{name}:{line}: {wrong}" for line, wrong in banned(text))


def main(root: Path = ROOT, arguments: list[str] | None = None) -> int:
    """Check everything; return the exit code."""
    parser = argparse.ArgumentParser(description="Check the words of pages and sources.")
    parser.add_argument(
        "--all", action="store_true", help="print the number of words of every page"
    )
    options = parser.parse_args(arguments)
    texts = pages(root)
    if options.all:
        for name, text in texts.items():
            words = len(WORD.findall(plain(text)))
            print(f"{name:40} {words:6,} words, {len(text.split()):6,} with code")
    wrong = list(faults(root, texts))
    for fault in wrong:
        print(fault, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
