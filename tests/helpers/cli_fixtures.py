"""A small site: rows, and one of each file that the commands make of them."""

import json
from dataclasses import dataclass

import pytest

from cli_helpers import SCHEMA, contents, do, write_rows
from hushtable import Plan, Schema
from hushtable.cli import main


@dataclass(frozen=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(capsys):
    """Run a command in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Folder with rows and with what every command makes of them; not to be written to."""
    here = tmp_path_factory.mktemp("site")
    rows = write_rows(here / "rows.csv", 400)
    more = write_rows(here / "more.csv", 300, seed=1)
    (here / "schema.toml").write_text(SCHEMA)
    schema, plan, marginals = here / "schema.toml", here / "plan.hush", here / "marginals.hush"
    (here / "verdicts.csv").write_text("row,verdict\n7,outlier\n8,fine\n")
    do("fit", rows, "--seed", 1, "-o", here / "model.hush")
    do("plan", "draw", schema, "--seed", 1, "-o", plan)
    do("plan", "draw", schema, "--seed", 2, "-o", here / "other-plan.hush")
    Plan.marginals(Schema.from_toml(schema)).save(marginals)
    do("sketch", rows, "--plan", plan, "-o", here / "a.sketch.hush")
    do("sketch", more, "--plan", plan, "-o", here / "b.sketch.hush")
    do("sketch", rows, "--plan", here / "other-plan.hush", "-o", here / "other.sketch.hush")
    do("sketch", rows, "--plan", marginals, "-o", here / "marginals.sketch.hush")
    return here


@pytest.fixture
def refused(run, tmp_path):
    """Run a command that must fail, as text and as JSON, and must change no file.

    Returns what it said on stderr.
    """

    def refused(*arguments, code=1, says=()):
        before = contents(tmp_path)
        text = run(*arguments)
        machine = run(*arguments, "--json")
        after = contents(tmp_path)
        assert {name for name in before | after if before.get(name) != after.get(name)} == set()
        assert (text.code, machine.code) == (code, code), text.err
        assert text.out == ""
        assert text.err.startswith("hushtable: error: ")
        assert "Traceback" not in text.err
        assert text.err == machine.err
        assert set(machine.json) == {"error", "kind"}
        assert text.err == f"hushtable: error: {machine.json['error']}\n"
        for words in [says] if isinstance(says, str) else says:
            assert words in text.err
        return text.err

    return refused


@pytest.fixture
def old(tmp_path):
    """An output file that is there already, and must survive every failure."""
    path = tmp_path / "old.hush"
    path.write_bytes(b"precious")
    return path
