"""A reader who does what a page says: runs commands and Python, and looks at what they print."""

import contextlib
import doctest
import glob
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hushtable.cli import main
from places import ROOT

SAME = doctest.OutputChecker().check_output
#: ``...`` on a page stands for anything; spaces and ends of lines may differ.
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """Code on a page: its language as the page names it, or none; its first line's number."""

    page: Path
    language: str
    text: str
    line: int

    def __str__(self):
        return f"{self.page.name}:{self.line}"

    @property
    def first(self):
        """The first line that is no comment."""
        return next(line for line in self.text.splitlines() if not line.startswith("# "))


def blocks(page, section=""):
    """Yield the fenced code of a page, or below one of its headings ``##``, without directives."""
    text = page.read_text(encoding="utf-8")
    fences = [*re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    start, end = 0, len(text)
    if section:
        headings = [
            one
            for one in re.finditer(r"^## (.*)$", text, re.MULTILINE)
            if not any(fence.start() < one.start() < fence.end() for fence in fences)
        ]
        (at,) = [i for i, one in enumerate(headings) if one[1] == section]
        start, end = headings[at].end(), next((one.start() for one in headings[at + 1 :]), end)
    for found in fences:
        language = found[1].strip()
        if start <= found.start() < end and not language.startswith("{"):
            yield Block(page, language, found[2], text.count("\n", 0, found.start()) + 2)


@dataclass
class Reader:
    """Follows a page in a folder.

    ``# NAME`` among commands changes into the folder of that name, if there is one. A block whose
    first line is ``# FILE`` is written to that file. A block of language ``text`` is what the
    block before it has to print. A command with ``# refused`` behind it has to fail; what it says
    of the reason counts as printed.

    Attributes
    ----------
    page : Path
        What to read.
    here : Path
        Folder to do it in.
    before : dict of str to callable
        What someone else does before a command that begins like this.
    names : callable
        Called in the folder; returns what Python on the page takes for granted.
    but_not : set of str
        First lines of blocks to leave out.
    section : str
        The heading ``##`` of the only part to read; by default, all is read.
    did : list of str
        Commands so far.
    """

    page: Path
    here: Path
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    names: Callable[[], dict] = dict
    but_not: frozenset[str] = frozenset()
    section: str = ""
    did: list[str] = field(default_factory=list)

    def follow(self):
        """Do all that the page says; return self."""
        with contextlib.chdir(self.here):
            names, printed = self.names(), ""
        left_out = False
        for block in blocks(self.page, self.section):
            if block.language in ("python", "sh"):
                left_out = block.first in self.but_not
            if left_out and block.language in ("python", "sh", "text"):
                continue  # nor is there anything that it printed
            file = re.match(r"# ([\w./-]+\.\w+)\n", block.text)
            out = io.StringIO()
            with contextlib.chdir(self.here), contextlib.redirect_stdout(out):
                if block.language == "python":
                    # In place of a file, so that an error says where on the page it is.
                    code = "\n" * (block.line - 1) + block.text
                    exec(compile(code, str(block.page), "exec"), names)
                elif block.language == "js":
                    print(javascript(block.text), end="")
                elif block.language == "sh":
                    self._commands(block)
                elif file:
                    Path(file[1]).write_text(block.text.removeprefix(file[0]))
                elif block.language == "text":
                    assert SAME(block.text, printed, LOOSELY), (
                        f"{block} shows\n{block.text}\nand this is printed:\n{printed}"
                    )
            printed = out.getvalue() or printed
        return self

    def _commands(self, block):
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.startswith("# "):
                folder = self.here / line.removeprefix("# ")
                if folder.is_dir():
                    os.chdir(folder)
                continue
            for start, happens in self.before.items():
                if line.startswith(start):
                    happens()
            self._command(line, block)
            self.did.append(line)

    def _command(self, line, block):
        program, *arguments = words(line)
        program = program.removeprefix(".venv/bin/")
        if arguments[:1] == ["bench"]:
            check_options(arguments)
        elif program == "hushtable":
            asks = arguments[:2] == ["round", "sync"] and "--yes" not in arguments
            if asks and not sys.stdin.isatty():
                arguments.append("--yes")  # it asks, and the reader agrees
            refused = line.endswith("# refused")
            said = sys.stdout if refused else sys.stderr
            with contextlib.redirect_stderr(said):
                assert main(arguments) == int(refused), f"{block}: {line}"
        elif program == "cp":
            *sources, target = arguments
            for source in sources:
                shutil.copy(source, target)
        elif program == "mkdir":
            for folder in arguments:
                os.makedirs(folder, mode=0o755)
        elif program == "install":
            install(arguments)
        elif program == "pip":
            check_extras(arguments)
        elif program == "make":
            make(arguments)
        elif program == "python":
            assert (ROOT / arguments[0]).is_file(), f"{block}: no such script: {line}"
        else:
            raise AssertionError(f"{block}: no one here knows how to run {line}")


def install(arguments):
    """Make folders with their modes; users and groups of a server are not here."""
    for option in ("-o", "-g"):
        while option in arguments:
            at = arguments.index(option)
            del arguments[at : at + 2]
    subprocess.run(["install", *arguments], check=True)


def javascript(text):
    """Return what a module prints that lies beside ours."""
    shutil.copy(ROOT / "packages/hushtable-connect/examples/hushtable.mjs", ".")
    command = ["node", "--input-type=module", "-e", text]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def words(line):
    """Split a command as the shell does; names with stars stand for files, unless quoted."""
    found = []
    for word in shlex.split(line, comments=True, posix=False):
        if word[0] in "'\"":
            found.append(word[1:-1])
        else:
            found += sorted(glob.glob(word)) if "*" in word else [word]
    return found


def check_extras(arguments):
    """Hold the extras that pip is to install against those that there are."""
    project = tomllib.loads((ROOT / "packages/hushtable/pyproject.toml").read_text())["project"]
    assert arguments[0] == "install"
    for name in re.findall(r"\[([\w,]+)\]", " ".join(arguments)):
        assert set(name.split(",")) <= set(project["optional-dependencies"]), arguments


def check_options(arguments):
    """Look for the options of a command that would take too long."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*arguments[:2], "--help"]) == 0, arguments
    options = [word for word in arguments if word.startswith("-")]
    assert not [word for word in options if word not in out.getvalue()], arguments


def make(targets):
    """Run the command of the package that a target runs; of others, look for the target."""
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", makefile, re.MULTILINE)
        assert recipe, f"no target {target} in the Makefile"
        command = re.search(r"\$\(BIN\)/hushtable (.*)", recipe[1])
        if command and target != "desk":  # which ends when a person wants it to
            assert main(shlex.split(command[1])) == 0
