"""Check the words of pages, docstrings, comments, messages, and templates, and their links.

The project writes as the Google developer documentation style guide asks. `BANNED` lists the
constructions that reviewers stumbled over, each with what to write instead. Code, formulas, and
addresses are left out. The name of a class occurs once in all packages.
"""

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNSEEN = re.compile(
    r"^(`{3,})[^\n]*\n.*?^\1$|<!--.*?-->|^\$\$.*?^\$\$|^:{3,}.*?$|^:[\w-]+:.*?$|^\(\w+\)=$",
    re.MULTILINE | re.DOTALL,
)
BANNED = {
    r"\bdear(er|est)?\b": "expensive",
    r"\b(told( apart)?|untold|unsaid)\b": "stated, reported, known; distinguished",
    r"\bwho(so)?ever\b": "anyone who",
    r"\b(is|are|was|were|be|been|being) (said|shown)\b": "the active voice: the page states",
    r"\bof which\b": "a new sentence, or 'including'",
    r"\bas shown\b": "as in",
    r"\b(oddest|oddit(y|ies)|odd (rows?|ones?|values?|patients?))\b": "unusual",
    r"\bas any other\b": "like any other",
    r"\bnot all that\b": "not everything that",
    r"\b(no|some|every|any)body\b": "no one, someone, everyone, anyone",
    r"\b(is|are|was|were|be|been) asked (for|of)\b": "requested",
    r"\bheld against\b": "compared with",
    r"\b(says|say|said) so\b": "reports it",
    r"\bat hand\b": "available",
    r"\banew\b": "again",
    r"\b(there(of|in|by|upon)|where(of|in|by|upon)|herein|albeit|hence|shall)\b": "plain words",
    r"\bneed not\b": "does not have to",
    r"\bstands? (beside|in|on|at|there|here)\b": "is",
    r"\bin order to\b": "to",
    r"\bplease\b": "nothing",
    r"\be\.g\.|\bi\.e\.": "for example, that is",
    r"\"\"\"What\b": "a docstring that does not begin with What",
    # A clause without a subject, at the start of a sentence that is not a question.
    r"(^|(?<=[.:;!?] ))(?-i:Who [a-z])[^.?!]*\.": "anyone who",
}


def plain(text: str) -> str:
    """Remove code and the markup that a reader does not see; lines keep their places."""
    text = UNSEEN.sub(lambda found: "\n" * found[0].count("\n"), text)
    text = re.sub(r"\{\w+\}`([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`[^`\n]+`|\$[^$\n]+\$|\{\{.*?\}\}|\{%.*?%\}", " code ", text)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def banned(name: str, text: str, first: int = 1) -> Iterator[str]:
    """Yield the banned constructions of a text, each with its place."""
    # A construction can continue on the next line.
    joined = re.sub(r"\n[ #>]*", lambda found: " " * len(found[0]), text)
    for construction, instead in BANNED.items():
        for found in re.finditer(construction, joined, re.IGNORECASE):
            line = first + text.count("\n", 0, found.start())
            yield f"{name}:{line}: {found[0][:40]!r}: write {instead}"


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings and comments of a Python source, each with its first line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT) and " " in token.string:
            yield token.start[0], re.sub(r"``?[^`\n]+``?", "code", token.string)


def dead_links(page: Path) -> Iterator[str]:
    """Yield links to files that do not exist, or that lack the heading or label.

    Sphinx checks the links of the pages of the site; these pages are read elsewhere.
    """
    for file, place in re.findall(r"\]\(([^)\s:#]+)(?:#([^)\s]+))?\)", page.read_text("utf-8")):
        target = page.parent / file
        text = target.read_text("utf-8") if target.suffix == ".md" and target.exists() else ""
        heading = re.sub(r"[^\w\s]", "", text.lower())
        if not target.exists() or place.replace("-", " ") not in heading:
            yield f"{page.name}: no such file or place: {file}#{place}"


def faults(root: Path) -> Iterator[str]:
    """Yield all faults of a repository."""
    built, classes = {"_build", "generated", "gallery"}, defaultdict(list)
    pages = [page for page in root.glob("docs/**/*.md") if not built & {*page.parts}]
    # Not the code of conduct, whose words are others', nor the changelog of earlier versions.
    first = [*root.glob("README.md"), *root.glob("CONTRIBUTING.md"), *root.glob("SECURITY.md")]
    for path in (*first, *pages, *root.glob("packages/*/src/**/*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in (".md", ".html", ".toml"):
            yield from banned(name, plain(path.read_text("utf-8")))
        elif path.suffix == ".py":
            source = path.read_text("utf-8")
            for line, text in spoken(source):
                yield from banned(name, text, line)
            for module in re.findall(r"import_module\(\"(hushtable[\w.]*)\"", source):
                yield f"{name}: imports {module} by name, which hides it from the contracts"
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ClassDef):
                    classes[node.name].append(name)
    for page in first:
        yield from dead_links(page)
    for name, places in classes.items():
        if len(places) > 1:
            yield f"class {name} is in {' and '.join(places)}: rename one"


if __name__ == "__main__":
    sys.exit("\n".join(faults(ROOT)) or 0)
