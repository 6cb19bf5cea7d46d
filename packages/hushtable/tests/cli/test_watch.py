"""The command watch: what is new, once; whole runs or none; codes that a scheduler understands."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import hushtable
from cli_helpers import contents, do, write_rows
from hushtable import Sketch, drift
from hushtable.cli import watch as watching
from hushtable.cli.watch import WatchPlace
from hushtable.errors import FileError
from places import DOCS

PAGE = DOCS / "how-to/watch.md"


@pytest.fixture
def folder(tmp_path):
    """Return a folder of two files of rows."""
    (tmp_path / "in").mkdir()
    for name, n_rows in (("a", 120), ("b", 60)):
        write_rows(tmp_path / "in" / f"{name}.csv", n_rows, seed=n_rows)
    return tmp_path / "in"


@pytest.fixture
def watch(run, site, folder):
    """Run the command, with a model of other rows and no patience."""

    def watch(*options, data=folder, model=site / "model.hush", settle=0, out="out"):
        out = folder.parent / out
        return run("watch", data, "--model", model, "--settle", settle, "-o", out, *options)

    return watch


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def log(out):
    return [json.loads(line) for line in (out / "watch.jsonl").read_text().splitlines()]


def names(facts, of="files"):
    return [Path(one["file"]).name for one in facts[of]]


# --- what is new ------------------------------------------------------------------------------


def test_new_files_are_scored_counted_and_compared_as_the_library_does(watch, site, folder, out):
    result = watch("--json", "--top", 7, "--keep", "ward")
    assert (result.code, result.err) == (0, "")
    model, facts = hushtable.load(site / "model.hush"), result.json
    first = model.sketch_.first_pass()
    assert log(out) == [facts]
    scores = {path: model.score_samples(path) for path in sorted(folder.iterdir())}
    for one, (path, found) in zip(facts["files"], scores.items(), strict=True):
        after = drift(first, Sketch.from_data(first.plan, path))
        assert one["file"] == str(path)
        assert (one["rows"], one["outliers"]) == (len(found), (found < model.offset_).sum())
        assert one["share"] == one["outliers"] / one["rows"]
        assert (one["drift"], one["level"]) == (after.overall, after.level)
    every = np.concatenate(list(scores.values()))
    assert (facts["rows"], facts["outliers"]) == (180, (every < model.offset_).sum())
    both = [Sketch.from_data(first.plan, path) for path in scores]
    assert facts["drift"] == drift(first, both[0] + both[1]).overall
    top = csv.read_csv(out / facts["top"])
    np.testing.assert_allclose(top["score"], np.sort(every)[:7])
    lowest = sorted((s, str(p), i) for p, found in scores.items() for i, s in enumerate(found))[:7]
    assert list(zip(top["file"].to_pylist(), top["row"].to_pylist(), strict=True)) == [
        (file, row) for _, file, row in lowest
    ]
    assert set(top["ward"].to_pylist()) <= {"north", "south"}


def test_the_next_call_scores_what_came_since(watch, folder, out):
    assert watch().code == 0
    assert "no new row" in watch().out
    write_rows(folder / "c.csv", 50, seed=3)
    write_rows(folder / "a.csv", 130, seed=4)  # others than before
    os.utime(folder / "b.csv")  # touched, and the same
    facts = watch("--json").json
    assert (names(facts), facts["rows"], facts["run"]) == (["a.csv", "c.csv"], 180, 3)
    assert facts["same"] == []
    assert [one["rows"] for one in log(out)] == [180, 0, 180]
    tops = sorted(path.name for path in out.glob("top-*"))
    assert tops == ["top-000001.csv", "top-000003.csv"]
    assert "Run 3 at" in (out / "summary.txt").read_text()


def test_a_file_that_was_moved_or_copied_is_not_scored_again(watch, folder):
    shutil.copy(folder / "a.csv", folder / "z.csv")
    first = watch("--json").json
    assert (names(first), names(first, "same")) == (["a.csv", "b.csv"], ["z.csv"])
    (folder / "b.csv").rename(folder / "done.csv")
    result = watch()
    assert "done.csv holds the same bytes as" in result.out.replace("\n", " ")
    assert "no new row" in result.out
    assert watch("--json").json["same"] == []  # said once


def test_a_file_that_was_just_written_to_waits(watch, folder):
    os.utime(folder / "a.csv", (0, 0))
    facts = watch("--json", settle=100).json
    assert (names(facts), names(facts, "left")) == (["a.csv"], ["b.csv"])
    os.utime(folder / "b.csv", (0, 0))
    assert names(watch("--json", settle=100).json) == ["b.csv"]


@pytest.mark.parametrize("ends", ["whole", "in a row"])
def test_a_file_that_grows_while_it_is_read_waits(watch, folder, monkeypatch, ends):
    batches = watching.Search.batches

    def growing(self, reader, file="", **options):
        yield from batches(self, reader, file, **options)
        if file.endswith("a.csv"):
            with open(file, "a") as stream:
                stream.write("50,30000.00,north\n" if ends == "whole" else "50,300")

    monkeypatch.setattr(watching.Search, "batches", growing)
    facts = watch("--json").json
    assert (names(facts), names(facts, "left"), facts["rows"]) == (["b.csv"], ["a.csv"], 60)
    monkeypatch.undo()
    if ends == "in a row":
        with open(folder / "a.csv", "a") as stream:
            stream.write("00.00,north\n")
    facts = watch("--json").json
    assert (names(facts), facts["rows"]) == (["a.csv"], 121)


def test_a_pattern_or_folder_may_name_no_file_yet(watch, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for data in (folder / "none-*.csv", tmp_path / "empty"):
        result = watch(data=data, out=f"out-{data.name[0]}")
        assert (result.code, "no new row" in result.out) == (0, True)
    assert names(watch("--json", data=folder / "a*.csv").json) == ["a.csv"]


# --- what fails -------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_done(watch, folder, out):
    (folder / "a.csv").write_text("age,income,ward\n40,100,north\n41,oops,south\n")
    (folder / "c.csv").write_text("age,ward\n40,north\n")
    result = watch("--json")
    assert result.code == 1
    assert result.err.startswith("hushtable: error: 2 files could not be read: ")
    facts = result.json
    assert (names(facts), names(facts, "failed")) == (["b.csv"], ["a.csv", "c.csv"])
    errors = [one["error"] for one in facts["failed"]]
    assert "'oops' in line 3" in errors[0]
    assert "income" in errors[1]
    assert set(csv.read_csv(out / facts["top"])["row"].to_pylist()) <= set(range(60))
    again = watch("--fail-above", "0")
    assert again.code == 1
    assert "Failed: " in again.out
    write_rows(folder / "a.csv", 40, seed=8)
    (folder / "c.csv").unlink()
    assert (names(watch("--json").json), watch().code) == (["a.csv"], 0)


def test_what_cannot_be_watched_is_refused(refused, site, folder, tmp_path):
    watch, model = ("watch", folder), ("--model", site / "model.hush")
    within = folder / "out"
    refused(*watch, *model, "-o", within, code=2, says="is where rows are read from")
    refused("watch", folder / "*.csv", *model, "-o", folder, code=2, says="is where rows are")
    out = ("-o", tmp_path / "out")
    refused("watch", "s3://bucket/rows", *model, *out, code=2, says="copy other sources here first")
    refused("watch", "-", *model, *out, code=2, says="copy other sources here first")
    refused("watch", tmp_path / "nowhere", *model, *out, says="no such file or folder")
    refused("watch", tmp_path / "nowhere" / "*.csv", *model, *out, says="no such file or folder")
    refused(*watch, *model, "-o", folder / "a.csv", says="it is a file")
    refused(*watch, *model, *out, "--id", "age", code=2, says="uses this column as a feature")
    refused(
        *watch, *model, *out, "--read", "query=SELECT 1", code=2, says="--read query=... needs --id"
    )
    for words in ("2", "many", "-1%", "nan", "drift,"):
        refused(*watch, *model, *out, "--fail-above", words, code=2, says="needs a share such as")
    refused(*watch, "--model", site / "plan.hush", *out, says="holds a plan")
    assert not (tmp_path / "out").exists()


def test_a_folder_keeps_the_place_of_one_watch(watch, refused, site, folder, out):
    assert watch().code == 0
    options = ("--model", site / "model.hush", "-o", out)
    refused("watch", folder / "*.csv", *options, code=2, says="give a different folder")
    (out / "watch.db").write_bytes(b"not a database, but a file of some length" * 100)
    refused("watch", folder, *options, says="or is damaged: remove it")


def test_two_at_once_are_refused(watch, folder, out):
    assert watch().code == 0
    write_rows(folder / "c.csv", 50, seed=3)
    place = WatchPlace(out, str(folder))
    with place.running():
        before = contents(out)
        result = watch()
        assert (result.code, contents(out)) == (1, before)
        assert "another process is working on it" in result.err
    assert names(watch("--json").json) == ["c.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("at", ["WatchRun.add", "write_top", "write_bytes", "WatchPlace.note_run"])
def test_an_interrupted_run_leaves_nothing(watch, folder, out, monkeypatch, at):
    assert watch().code == 0
    before = contents(out)
    write_rows(folder / "c.csv", 50, seed=3)
    write_rows(folder / "d.csv", 50, seed=4)
    home = "hushtable.cli.watch"
    done = []
    whole = {"WatchRun.add": watching.WatchRun.add, "WatchPlace.note_run": WatchPlace.note_run}.get(
        at
    )

    def stopped(*arguments, **options):
        found = None if whole is None else whole(*arguments, **options)
        done.append(at)
        if at != "WatchRun.add" or len(done) == 2:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(f"{home}.{at}", stopped)
    result = watch()
    assert (result.code, result.err) == (130, "Interrupted: nothing was written.\n")
    after = contents(out)
    assert {name: after[name] for name in before if name != "watch.db"} == {
        name: before[name] for name in before if name != "watch.db"
    }
    assert set(after) == set(before)
    monkeypatch.undo()
    facts = watch("--json").json
    assert (facts["run"], names(facts)) == (2, ["c.csv", "d.csv"])


def test_a_full_disk_leaves_nothing(watch, folder, out, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        result = watch()
    assert result.code == 1
    assert "No space left" in result.err
    assert set(contents(out)) <= {"watch.db"}
    assert names(watch("--json").json) == ["a.csv", "b.csv"]


def test_the_log_of_a_run_that_was_killed_is_cut(watch, folder, out):
    assert watch().code == 0
    line = (out / "watch.jsonl").read_bytes()
    with (out / "watch.jsonl").open("ab") as file:
        file.write(line + line[:50])
    assert watch().code == 0
    assert [one["run"] for one in log(out)] == [1, 2]
    (out / "watch.db").unlink()  # everything is scored again, and the log goes on
    assert watch().code == 0
    assert [one["rows"] for one in log(out)] == [180, 0, 180]
    assert [one["run"] for one in log(out)] == [1, 2, 3]
    assert sorted(path.name for path in out.glob("top-*")) == ["top-000001.csv", "top-000003.csv"]


def test_a_run_that_cannot_be_noted_takes_its_list_back(watch, out, monkeypatch):
    write = watching.write_bytes

    def full(path, content, **options):
        if path.name == "watch.db" and (out / "watch.jsonl").exists():
            raise FileError("the disk is full")
        write(path, content, **options)

    with monkeypatch.context() as patch:
        patch.setattr(watching, "write_bytes", full)
        assert watch().code == 1
    assert not list(out.glob("top-*"))
    assert watch("--json").json["run"] == 1
    assert len(log(out)) == 1


@pytest.mark.slow
def test_a_killed_run_is_done_again(watch, site, folder, out):
    program = textwrap.dedent(
        """
        import os, sys
        from hushtable.cli import main
        from hushtable.cli.watch import WatchPlace

        note_run = WatchPlace.note_run
        WatchPlace.note_run = lambda *a: (note_run(*a), os.kill(os.getpid(), 9))
        main(sys.argv[1:])
        """
    )
    command = ["watch", folder, "--model", site / "model.hush", "--settle", "0", "-o", out]
    killed = subprocess.run([sys.executable, "-c", program, *map(str, command)], check=False)
    assert killed.returncode == -signal.SIGKILL
    facts = watch("--json").json
    assert (facts["run"], facts["rows"]) == (1, 180)
    assert log(out) == [facts]


def test_nothing_of_rows_is_in_the_place_and_all_is_private(watch, folder, out):
    rows = [line.split(",") for line in (folder / "a.csv").read_text().splitlines()]
    named = "\n".join(
        ",".join([("id" if k == 0 else f"NHS-{k:06}"), *row]) for k, row in enumerate(rows)
    )
    (folder / "a.csv").write_text(named + "\n")
    (folder / "b.csv").unlink()
    assert watch("--id", "id").code == 0
    place = (out / "watch.db").read_bytes()
    assert b"NHS-" not in place
    assert b"199999" not in place
    assert b"NHS-000008" in (out / "top-000001.csv").read_bytes()
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}


# --- codes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "code", "above"),
    [
        ("50%", 0, []), ("0.5", 0, []), ("1%", 3, ["share"]), ("0.01", 3, ["share"]),
        ("drift", 0, []), ("drift,1%", 3, ["share"]),
    ],
)  # fmt: skip
def test_a_share_above_the_limit_has_a_code_of_its_own(
    watch, site, folder, monkeypatch, limit, code, above
):
    scores = hushtable.load(site / "model.hush").score_samples(str(folder))
    opened = watching.open_model(site / "model.hush", None)
    opened = opened._replace(threshold=np.quantile(scores, 0.2))
    monkeypatch.setattr(watching, "open_model", lambda *_: opened)
    result = watch("--fail-above", limit, "--json")
    assert result.json["share"] == 0.2
    assert (result.code, result.json["above"]) == (code, above)
    assert watch("--fail-above", limit).code == 0  # nothing new, nothing above


def test_drift_above_chance_has_that_code(watch, folder):
    text = (folder / "a.csv").read_text().replace("north", "south")
    (folder / "a.csv").write_text(text)
    result = watch("--fail-above", "drift", "--json")
    assert (result.code, result.json["above"]) == (3, ["drift"])
    assert result.json["files"][0]["beyond_chance"][0] == "ward"


def test_a_released_model_needs_a_threshold(watch, refused, site, folder, tmp_path):
    pytest.importorskip("opendp")
    noisier, made = tmp_path / "noisier.hush", tmp_path / "noised.hush"
    do("release", site / "a.sketch.hush", "--epsilon", 0.1, "-o", noisier)
    do("release", site / "a.sketch.hush", "--epsilon", 1, "-o", made)
    # With the noise of 1, there may be a threshold; with that of 0.1, there may be no drift.
    options = ("--model", noisier, "-o", tmp_path / "new")
    refused("watch", folder, *options, "--fail-above", "2%", code=2, says="give --fail-above drift")
    facts = watch("--json", model=noisier).json
    assert (facts["outliers"], facts["share"]) == (None, None)
    assert watch("--json", model=made, out="c").json["drift"] is not None


def test_ids_of_several_types_stand_beside_each_other(watch, folder, out):
    table = csv.read_csv(folder / "a.csv")
    pq.write_table(table.append_column("id", [list(range(len(table)))]), folder / "a.parquet")
    (folder / "a.csv").unlink()
    lines = (folder / "b.csv").read_text().splitlines()
    named = [f"{line},{'id' if k == 0 else f'B{k}'}" for k, line in enumerate(lines)]
    (folder / "b.csv").write_text("\n".join(named))
    assert watch("--id", "id", "--top", 150).code == 0
    ids = csv.read_csv(out / "top-000001.csv")["id"].to_pylist()
    assert {"7", "B8"} <= set(ids)


# --- a query ----------------------------------------------------------------------------------


@pytest.fixture
def visits(tmp_path):
    """Return the URL of a database with 100 visits, and what runs a statement there."""
    path = tmp_path / "ward.db"

    def tell(statement, *values):
        with sqlite3.connect(path) as db:
            db.executemany(statement, *values) if values else db.execute(statement)
        db.close()

    table = csv.read_csv(write_rows(tmp_path / "visits.csv", 100))
    rows = [(f"V{k}", *row.values()) for k, row in enumerate(table.to_pylist())]
    tell("CREATE TABLE visits (id TEXT, age REAL, income REAL, ward TEXT)")
    tell("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    return f"sqlite:///{path}?password=hunter2", tell


def test_of_a_query_rows_with_new_ids_are_scored(watch, visits, out, site):
    url, tell = visits
    query = ("--read", "query=SELECT * FROM visits ORDER BY id", "--id", "id", "--json")
    first = watch(*query, data=url)
    assert (first.code, first.json["rows"]) == (0, 100)
    assert watch(*query, data=url).json["rows"] == 0
    tell("INSERT INTO visits VALUES ('A1', 119, 150000, 'north'), ('Z1', 40, 25000, 'south')")
    facts = watch(*query, data=url).json
    assert (facts["rows"], facts["top"]) == (2, "top-000003.csv")
    assert csv.read_csv(out / facts["top"])["id"].to_pylist() == ["A1", "Z1"]
    tell("DELETE FROM visits")  # it is about to be filled again
    assert watch(*query, data=url).json["rows"] == 0
    tell("INSERT INTO visits VALUES ('A1', 119, 150000, 'north'), ('Z2', 41, 25000, 'south')")
    assert watch(*query, data=url).json["rows"] == 1
    for name, held in contents(out).items():
        assert b"hunter2" not in held, name
        assert b"SELECT" not in held, name
    assert b"V17" not in (out / "watch.db").read_bytes()


def test_a_query_that_fails_keeps_the_place(watch, visits, out, tmp_path):
    url, tell = visits
    query = ("--read", "query=SELECT * FROM visits", "--id", "id")
    assert watch(*query, data=url).code == 0
    before = contents(out)
    tell("INSERT INTO visits VALUES (NULL, 119, 150000, 'north')")
    result = watch(*query, data=url)
    assert (result.code, contents(out)) == (1, before)
    assert "a row has no 'id': --id identifies rows" in result.err
    tell("ALTER TABLE visits DROP COLUMN income")
    result = watch(*query, data=url)
    assert (result.code, contents(out)) == (1, before)
    assert "income" in result.err
    (tmp_path / "ward.db").unlink()
    result = watch(*query, data=url)
    assert (result.code, contents(out)) == (1, before)
    assert "no such file" in result.err
    assert "hunter2" not in result.err


# --- the page ---------------------------------------------------------------------------------


@pytest.fixture
def deployed(tmp_path, site):
    """Return how the page's lines read here: its folders are below a temporary one."""
    (tmp_path / "srv" / "watch" / "exports").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    starter = tmp_path / "bin" / "hushtable"
    starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hushtable.cli "$@"\n')
    starter.chmod(0o755)
    home = tmp_path / "srv" / "watch"
    lines = (site / "rows.csv").read_text().splitlines()
    named = [f"{'Patient ID' if k == 0 else f'P{k}'},{line}" for k, line in enumerate(lines)]
    (home / "exports" / "monday.csv").write_text("\n".join(named) + "\n")
    os.utime(home / "exports" / "monday.csv", (1e9, 1e9))
    shutil.copy(site / "model.hush", home)

    def here(text):
        return text.replace("/srv/watch", str(home)).replace(
            "/opt/watch/bin", str(tmp_path / "bin")
        )

    return here, home


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="cron is of Unix")
def test_the_line_for_cron_runs(deployed):
    here, home = deployed
    tab = re.search(r"```none\n(.*?)```", PAGE.read_text(), re.S)[1].splitlines()
    settings = dict(line.split("=", 1) for line in tab if re.match(r"[A-Z]+=", line))
    schedule, command = re.fullmatch(r"((?:\S+ ){5})(.*)", tab[-1]).groups()
    assert re.fullmatch(r"(?:[\d*/,-]+ ){5}", schedule)
    assert "%" not in command  # which cron takes for the end of a line
    environment = os.environ | {"PATH": here(settings["PATH"])}
    ran = subprocess.run(
        ["/bin/sh", "-c", here(command)], capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0, "cat ends the line"
    facts = log(home / "watched")[0]
    assert (facts["rows"], facts["failed"]) == (400, [])
    assert ran.stdout == (home / "last-run.txt").read_text()
    assert "Above --fail-above: the share of outliers." in ran.stdout
    again = subprocess.run(
        ["/bin/sh", "-c", here(command)], capture_output=True, text=True, env=environment
    )
    assert (again.returncode, again.stdout) == (0, "")  # quiet: no mail


def test_the_unit_to_adapt_has_what_the_page_changes():
    unit = (
        PAGE.parents[1].joinpath("example-federation/hushtable-round@.service").read_text("utf-8")
    )
    asked = re.search(r"With systemd, adapt (.*?)\n\n", PAGE.read_text("utf-8"), re.S)[1]
    assert re.findall(r"`(\w+)=", asked) == [
        "WorkingDirectory", "ReadWritePaths", "ExecStart", "PrivateNetwork", "OnFailure",
    ]  # fmt: skip
    for name in ("WorkingDirectory", "ReadWritePaths", "ExecStart"):
        assert f"\n{name}=" in unit
    assert "PrivateNetwork" not in unit
