"""Measure how easy the pages are to read, and refuse what is too hard or too long.

    python .ci/check_words.py          what is too hard or too long, exit code 1
    python .ci/check_words.py --all    also the figures of every page

Reading ease is Flesch's: 206.835 - 1.015 words a sentence - 84.6 syllables a word. 100 is easy,
below 50 is for students. README and the concept pages need 50, and no sentence of over 35 words.
No page has over 1,500 words, tables included, code not. Only those of Benchmarks may have more.
Sentences are those of paragraphs and list items; code, tables, headings and formulas are not read
aloud. Code in a line of text counts as one word of two syllables.

Syllables are groups of vowels, by rules of a few lines. textstat would bring NLTK and fetch a
dictionary from the network; pyphen knows where words may be broken, finds too few syllables, and so
calls pages up to six points easier. Over a page, these rules are within two points of CMU's
dictionary.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
EASE, LONGEST, WORDS = 50, 35, 1500
CODE = "Coding"  # what stands for code in a line: one word of two syllables
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
END = re.compile(r"[.!?]['\")\]*]*\s+(?=['\"(\[*]*[A-Z0-9])")


@dataclass(frozen=True)
class Reading:
    """How a page reads: its words with tables, its reading ease, its longest sentence."""

    words: int
    ease: float
    longest: str

    @property
    def most(self) -> int:
        """Words of the longest sentence."""
        return len(WORD.findall(self.longest))


def syllables(word: str) -> int:
    """Count the groups of vowels, without those that are silent."""
    word = re.sub(r"'\w+$", "", word.lower())
    word = re.sub(r"(?<=[^aeiouyl])e$|(?<=[aeiouy]l)e$", "", word)  # made, while; but table
    word = re.sub(r"(?<=[^aeiouytd])ed$", "", word)  # counted keeps it, signed does not
    word = re.sub(r"(?<=[^aeiouylscxzgh])es$|(?<=[aeiouy]l)es$", "", word)  # sites; but cases
    two = r"i[ao](?!u)|(?<=[^q])u[aeo](?=[a-z])|eo(?=[^u])|y[ao]|ii"  # riot, dual, neon
    apart = 0 if re.search(r"[cstg]i[ao]", word) else len(re.findall(two, word))
    return max(1, len(re.findall(r"[aeiouy]+", word)) + apart)


def plain(text: str) -> str:
    """Take the markup away that a reader does not see, and code in lines of its own."""
    text = FENCE.sub("\n", text.replace("\r", ""))
    text = re.sub(r"<!--.*?-->|^\$\$.*?^\$\$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(:{3,}.*|:[\w-]+:.*|\(\w+\)=)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|!\[[^\]]*\]", "", text)
    text = re.sub(r"\{\w+\}`([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`[^`]+`|\$[^$\n]+\$", CODE, text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of paragraphs and list items."""
    kept = "\n".join(
        "" if line.lstrip()[:1] in ("|", "#") else line for line in plain(text).split("\n")
    )
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>]|\d+\.)\s)", kept):
        for sentence in END.split(" ".join(block.split()) + " "):
            if WORD.search(sentence):
                yield sentence.strip()


def reading(text: str) -> Reading:
    """Measure a page."""
    found = [(sentence, WORD.findall(sentence)) for sentence in sentences(text)]
    spoken = [word for _, words in found for word in words]
    longest = max(found, key=lambda one: len(one[1]), default=("", []))[0]
    per_sentence = len(spoken) / max(len(found), 1)
    per_word = sum(map(syllables, spoken)) / max(len(spoken), 1)
    ease = 206.835 - 1.015 * per_sentence - 84.6 * per_word
    return Reading(len(WORD.findall(plain(text))), ease, longest)


def section(index: str, caption: str) -> set[str]:
    """Return the pages that the index lists under a caption."""
    found = re.search(rf":caption: {caption}\n(.*?)^```", index, re.MULTILINE | re.DOTALL)
    lines = found[1].split("\n") if found else []
    return {re.sub(r".*<(.*)>$", r"\1", line.strip()) for line in lines if line.strip()}


def faults(name: str, page: Reading) -> list[str]:
    """Return what makes a first page too hard to read."""
    wrong = []
    if page.ease < EASE:
        wrong.append(f"reading ease {page.ease:.0f}; needs {EASE}: shorter words and sentences")
    if page.most > LONGEST:
        wrong.append(f"a sentence of {page.most} words; needs {LONGEST} at most: {page.longest}")
    return [f"{name}: {one}" for one in wrong]


def main(root: Path = ROOT, arguments: list[str] | None = None) -> int:
    """Measure all pages; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure how easy the pages are to read.")
    parser.add_argument("--all", action="store_true", help="print the figures of every page")
    options = parser.parse_args(arguments)
    docs = root / "docs"
    concepts = sorted((docs / "concepts").glob("*.md"))
    paths = [root / "README.md", *concepts, *sorted(docs.glob("*.md"))]
    pages = {str(path.relative_to(root)): reading(path.read_text("utf-8")) for path in paths}
    first = [str(path.relative_to(root)) for path in (root / "README.md", *concepts)]
    index = (docs / "index.md").read_text("utf-8")
    may_be_long = {f"docs/{name}.md" for name in section(index, "Benchmarks")}
    if options.all:
        for name, page in pages.items():
            print(f"{name:28} {page.words:6,} words, ease {page.ease:3.0f}, longest {page.most}")
    wrong = [fault for name in first for fault in faults(name, pages[name])]
    wrong += [
        f"{name}: {page.words:,} words; needs {WORDS:,} at most: split it by what a reader needs"
        for name, page in pages.items()
        if page.words > WORDS and name not in may_be_long
    ]
    for fault in wrong:
        print(fault, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
