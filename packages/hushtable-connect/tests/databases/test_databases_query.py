"""The entry query of --read, from rows in a database to scores in a file."""

import json

import numpy as np
import pytest
from test_databases import Store

from hushtable.cli import main
from hushtable.data.readers import FileLayout, as_reader

ROWS = "SELECT x, word FROM visits ORDER BY id"


@pytest.fixture
def model(tmp_path):
    store = Store("sqlite", tmp_path)
    made = tmp_path / "m.hush"
    assert main(["fit", store.url, "--read", f"query={ROWS}", "-o", str(made)]) == 0
    return store, made


def test_scores_of_a_query_in_a_file(model, tmp_path, capsys):
    store, made = model
    (tmp_path / "rows.sql").write_text(ROWS)
    capsys.readouterr()
    scores = tmp_path / "scores.csv"
    query = ["--read", f"query={tmp_path}/rows.sql"]
    assert (
        main(["score", store.url, *query, "--model", str(made), "-o", str(scores), "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["rows"] == 4_000
    assert len(np.loadtxt(scores, delimiter=",", skiprows=1, usecols=(0, 1))) == 4_000
    for path in (made, scores):
        assert b"SELECT" not in path.read_bytes()
        assert b"visits" not in path.read_bytes()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT x, word FROM visits WHERE id < 0", "has no rows"),
        ("SELECT nope FROM visits", "nope"), ("DELETE FROM visits", "needs a query that reads"),
        ("SELECT x, word, x'00' AS raw FROM visits", "--drop raw"),
    ],
)  # fmt: skip
def test_what_fails_writes_nothing(model, tmp_path, capsys, query, words):
    store, made = model
    scores = tmp_path / "scores.csv"
    asked = [
        "score",
        store.url,
        "--read",
        f"query={query}",
        "--model",
        str(made),
        "-o",
        str(scores),
    ]
    if "raw" in query:
        asked = ["fit", store.url, "--read", f"query={query}", "-o", str(scores)]
    assert main(asked) == 1
    assert words in capsys.readouterr().err
    assert not scores.exists()


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle(postgres, tmp_path, capsys, monkeypatch):
    """Ends in exit code 1, and with no file, however far the pass had come."""
    from hushtable_connect.databases import drivers

    batches = drivers.Postgres.batches

    def dying(self):
        passing = batches(self)
        yield next(passing)
        postgres.ask(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'active' "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        yield from passing

    monkeypatch.setattr(drivers.Postgres, "batches", dying)
    query = "SELECT i * 1.0 AS x, i % 7 AS y FROM generate_series(1, 2000000) i"
    made = tmp_path / "m.hush"
    assert main(["fit", postgres.url(), "--read", f"query={query}", "-o", str(made)]) == 1
    assert "the connection was lost, and nothing was kept: run it again" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_query_may_end_with_a_text(tmp_path):
    store = Store("sqlite", tmp_path)
    asked = FileLayout(query="SELECT 'a' || word AS w FROM visits WHERE id = 7 AND 'x;y' = 'x;y'")
    assert sum(len(batch) for batch in as_reader(store.url, layout=asked).read()) == 1
