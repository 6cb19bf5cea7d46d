"""Every option of every command, with values that are none: refused clearly, or done."""

import pytest

from cli_helpers import do, hold
from hushtable.cli.app import app

ODD = ("", "-1", "0", "nan", "inf", "1e400", "1e-12", "9" * 25, "\0", "a" * 5_000, "é", "[", "../x")
#: Of so many options, the everyday run tries one, with one value: each value meets eight.
EACH = 3

#: A call of each command that is right, to which an option is added.
RIGHT = {
    "fit": "fit {site}/rows.csv -o {out}/x.hush",
    "score": "score {site}/rows.csv --model {site}/model.hush -o {out}/x.csv",
    "learn": "learn {site}/model.hush {site}/verdicts.csv --rows {site}/rows.csv -o {out}/x.hush",
    "watch": "watch {site}/more.csv --model {site}/model.hush --settle 0 -o {out}/x",
    "drift": "drift {site}/model.hush {site}/more.csv",
    "sketch": "sketch {site}/rows.csv --plan {site}/plan.hush -o {out}/x.hush",
    "release": "release {site}/a.sketch.hush --epsilon 1 -o {out}/x.hush",
    "merge": "merge {site}/a.sketch.hush {site}/b.sketch.hush -o {out}/x.hush",
    "export": "export {site}/model.hush -o {out}/x.sql",
    "inspect": "inspect {site}/plan.hush",
    "report": "report {site}/model.hush {site}/rows.csv -o {out}/x.html",
    "plan draft": "plan draft {site}/rows.csv -o {out}/x.toml",
    "plan draw": "plan draw {site}/schema.toml -o {out}/x.hush",
    "plan check": "plan check {site}/plan.hush {site}/rows.csv",
    "plan marginals": "plan marginals {site}/schema.toml -o {out}/x.hush",
    "plan gate": "plan gate {site}/a.sketch.hush -o {out}/x.hush",
    "plan ranks": "plan ranks {site}/model.hush -o {out}/x.hush",
    "round keygen": "round keygen {name} --folder {out}",
    "round open": "round open {site}/plan.hush {round}/a.card {round}/b.card --key {round}/a.key "
    "--epsilon 1 -o {out}/x.hush",
    "round sync": "round sync {round}/round.box {site}/rows.csv --key {round}/a.key --yes",
    "round show": "round show {round}/round.hush --key {round}/a.key",
    "round approve": "round approve {round}/round.hush --key {round}/lead.key -o {out}/x.json",
    "round verify": "round verify {round}/result.hush --round {round}/round.hush",
    "round status": "round status {round}/round.box",
    "round compare": "round compare {round}/result.hush --book {round}/a.book",
    "round ranges": "round ranges {round}/columns.hush -o {out}/x.csv",
    "round model": "round model {round}/result.hush --book {round}/a.book -o {out}/x.hush",
    "round book": "round book {round}/a.book",
}


def commands(group, path=()):
    for name in group.list_commands(None):
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command.load()


COMMANDS = dict(commands(app()))
OPTIONS = [
    (name, option.opts[0])
    for name, command in COMMANDS.items()
    if name in RIGHT
    for option in command.params
    if option.param_type_name == "option" and not option.is_flag
]


@pytest.fixture(scope="module")
def round_(tmp_path_factory, site):
    """Folder with a round of two sites, from keys to its result."""
    here = tmp_path_factory.mktemp("round")
    for name in ("a", "b"):
        do("round", "keygen", name, "--cap", 9, "--persons", "1", "--folder", here)
    do("round", "keygen", "lead", "--folder", here)
    do("round", "open", site / "plan.hush", here / "a.card", here / "b.card",
       "--key", here / "lead.key", "--epsilon", 1, "-o", here / "round.hush")  # fmt: skip
    do("release", site / "marginals.sketch.hush", "--epsilon", 1, "-o", here / "columns.hush")
    hold(here, "round.hush", "a", "b", rows=site / "rows.csv").rename(here / "result.hush")
    return here


def right(command, **places):
    return [word.format(**places) for word in RIGHT[command].split()]


@pytest.mark.parametrize("name", RIGHT)
def test_the_calls_are_right(run, site, round_, tmp_path, name):
    result = run(*right(name, site=site, out=tmp_path, round=round_, name="n"))
    assert result.code == 0, result.err


def odd_values():
    """Yield each option with all values, for the slow run, and some with one value every day.

    Options of a type share a reader, so that most values meet most readers every day.
    """
    for at, (name, option) in enumerate(OPTIONS):
        if at % EACH == 0:
            yield pytest.param(
                name, option, [ODD[at // EACH % len(ODD)]], id=f"{name} {option} one"
            )
        yield pytest.param(name, option, ODD, id=f"{name} {option}", marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "option", "values"), list(odd_values()))
def test_odd_values(run, site, round_, tmp_path, monkeypatch, name, option, values):
    monkeypatch.chdir(tmp_path)
    for i, value in enumerate(values):
        out = tmp_path / str(i)
        out.mkdir()
        words = right(name, site=site, out=out, round=round_, name=f"n{i}")
        result = run(*words, f"{option}={value}")
        said = f"{option}={value[:30]!r}: {result.err}"
        assert result.code in (0, 1, 2, 3), said
        assert "Traceback" not in result.err, said
        assert "which is a bug" not in result.err, said
        assert (result.code in (0, 3)) == ("hushtable: error:" not in result.err), said
