"""Masked campaigns over vantage6's mock client: three sites, losses, refusals, four databases."""

import base64
import inspect
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "vantage6.algorithm.tools", reason="vantage6's tools are not installed: make test-vantage6"
)

import v6_hushtable
from consortium import NAMES, SCHEMA, Consortium, Server, read
from hushtable_federation.online.tally import Tally
from vantage6.algorithm.tools.mock_client import MockAlgorithmClient
from vantage6.common.globals import ENV_VAR_EQUALS_REPLACEMENT

from hushtable import Feature, HushTable, Plan, Schema, Sketch, files
from hushtable.errors import FileError, HushTableError, UsageError
from hushtable_federation import vantage6
from hushtable_federation.book.book import Book
from hushtable_federation.online import carriers
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refused
from postgres_server import programs, running

PACKAGE = Path(v6_hushtable.__file__).parents[1]


@pytest.fixture
def consortium(tmp_path, monkeypatch):
    monkeypatch.setattr(carriers, "_LOOK", 0.01)
    monkeypatch.setattr(carriers, "_PAUSE", 0.2)
    return Consortium(tmp_path)


def beginning(consortium, round_):
    """Return the first request of a round, as a task carries it."""
    requests = Tally(round_, consortium.keys["lead"]).requests("keys")
    return vantage6._text(requests["east"])


def asked(consortium, request, environment=None):
    """Ask one node, as anyone in the collaboration can; return what it says."""
    environment = environment or consortium.environment("east")
    server = Server([environment])
    task = server.task.create(
        {"method": "partial", "kwargs": {"request": request}}, organizations=[0]
    )
    return vantage6._content(server.result.from_task(task["id"])[0])


def word(consortium, round_, answer):
    """Return the word of a refusal."""
    message = Message.read(answer, consortium.keys["east"].card)
    with pytest.raises(Refused) as refused:
        message.check(round_, "keys")
    return refused.value.word


# --- a campaign ---------------------------------------------------------------------------------


def test_a_campaign(consortium):
    """Marginals, tables, ranks: exact sums, a total of 1 in every book, no one asked twice."""
    marginals = Plan.marginals(SCHEMA, epsilon=0.9, delta=1e-6, expected_rows=300)
    consortium.open(marginals, epsilon=0.9)
    consortium.configure(ranks=1.0)
    server = Server(consortium.nodes)
    run = consortium.run(server)
    assert run["done"], run
    assert [one["about"] for one in run["rounds"]] == ["marginals", "scores", "ranks"]
    for one in run["rounds"]:
        assert (one["lost"], one["refused"]) == ({}, {})
        consortium.check(one["round_id"], read(consortium.folder, one["result"]))
    for name in NAMES:
        epsilon, answers = consortium.spent(name)
        assert epsilon == pytest.approx(1.0, abs=1e-3)
        assert epsilon <= 1.0
        assert answers == 3
    model = read(consortium.folder, run["rounds"][1]["result"])
    scores = HushTable.from_counts(model).score_samples(consortium.rows["east"])
    assert np.isfinite(scores).all()
    travelled, spent = len(server.travelled), [consortium.spent(name) for name in NAMES]
    again = consortium.run(server)
    assert [one["result"] for one in again["rounds"]] == [one["result"] for one in run["rounds"]]
    assert len(server.travelled) == travelled + 1  # that task itself
    assert [consortium.spent(name) for name in NAMES] == spent


def test_ranks_without_a_budget_are_refused_first(consortium):
    consortium.open()
    consortium.configure(ranks=1.0)
    with pytest.raises(UsageError, match=r"--epsilon 0\.9"):
        consortium.run()
    assert [consortium.spent(name)[1] for name in NAMES] == [0, 0, 0]


@pytest.mark.parametrize("fate", ["crashed", "away"])
def test_a_run_that_got_lost_is_asked_for_again(consortium, fate):
    round_, fates = consortium.open(least=3), iter([""] * 5 + [fate] + [""] * 3 + [fate])
    lose = lambda one, method: next(fates, "") if method == "partial" else ""  # noqa: E731
    run = consortium.run(Server(consortium.nodes, lose))
    assert run["done"], run
    consortium.check(round_.round_id, read(consortium.folder, run["rounds"][0]["result"]))


def test_a_node_that_stays_away_is_out_and_the_rest_goes_on(consortium):
    round_ = consortium.open(least=2)
    consortium.configure(timeout=2.0)
    run = consortium.run(Server(consortium.nodes, lambda one, method: "away" if one == 2 else ""))
    assert run["done"], run
    assert run["rounds"][0]["lost"] == {"south": "keys: silent"}
    result = read(consortium.folder, run["rounds"][0]["result"])
    consortium.check(round_.round_id, result, ["east", "north"])


def test_too_few_are_enough_when_the_task_is_started_again(consortium):
    round_ = consortium.open(least=3)
    consortium.configure(timeout=1.0)
    run = consortium.run(Server(consortium.nodes, lambda one, method: "away" if one == 2 else ""))
    assert not run["done"]
    assert "2 sites are left in step 'keys', and 3 are needed" in run["error"]
    assert consortium.run()["done"]
    path = next(consortium.at("lead", "lead.rounds").glob("*.result.hush"))
    consortium.check(round_.round_id, read(consortium.folder, vantage6._text(path.read_bytes())))


# --- what a node refuses, and shows ---------------------------------------------------------------


def test_a_refused_site_is_refused_in_one_word(consortium):
    """By its policy, by a wrong column, without a book: and nothing of the reason travels."""
    rows, policy = (consortium.at("south", f"{what}") for what in ("rows.csv", "south.policy.toml"))
    book = consortium.at("south", "south.book")
    broken = {
        "unavailable": lambda: rows.write_text(rows.read_text().replace("a,", "Ann,", 1)),
        "policy": lambda: policy.write_text(policy.read_text().replace("= true", "= false")),
        "silent": lambda: book.rename(f"{book}.away"),
    }
    for said, spoil in broken.items():
        spoil()
        consortium.open(title=said)
        consortium.configure(timeout=2.0)
        server = Server(consortium.nodes)
        run = consortium.run(server)
        assert run["done"], run
        assert run["rounds"][0]["lost"] == {"south": f"keys: {said}"}
        assert run["rounds"][0]["refused"] == ({"south": "policy"} if said == "policy" else {})
        assert "Ann" not in json.dumps([run, server.results])
        assert not any(
            b"Ann" in vantage6._content(one) for one in server.travelled if isinstance(one, str)
        )
    assert "needed, ['a', 'b']" in consortium.at("south", "south.log").read_text()
    assert "south.book" in consortium.at("south", "vantage6.log").read_text()


def test_a_node_is_asked_for_more_than_its_policy_allows(consortium):
    """Another column, a wider range, a larger epsilon; then what no one signed."""
    wide = {"a": 5, "b": 50}
    others = {
        "column": Schema([Feature.numeric("c", low=0, high=1)]),
        "range": Schema([Feature.numeric(name, low=-5, high=wide[name]) for name in wide]),
    }
    for title, schema in others.items():
        round_ = consortium.open(Plan.draw(schema, n_tables=5, random_state=0), title=title)
        answer = asked(consortium, beginning(consortium, round_))
        assert word(consortium, round_, answer) == "policy"
    round_ = consortium.open(epsilon=5.1)
    assert word(consortium, round_, asked(consortium, beginning(consortium, round_))) == "policy"
    round_ = consortium.open()
    signed = beginning(consortium, round_)
    for request in ("", "no base64!", signed[:-8], [signed], {"policy": "other.toml"}, 7, None):
        assert word(consortium, round_, asked(consortium, request)) == "request"
    assert [consortium.spent(name)[1] for name in NAMES] == [0, 0, 0]


def test_what_a_caller_chooses_at_a_node_changes_nothing(consortium):
    """vantage6 lets a task choose databases, with queries and preprocessing of its own."""
    round_ = consortium.open()
    doubled = "SELECT a, b FROM patients UNION ALL SELECT a, b FROM patients"
    chosen = {
        "USER_REQUESTED_DATABASE_LABELS": "other,../../etc",
        "PATIENTS_QUERY": doubled,
        "PATIENTS_DB_PARAM_QUERY": doubled,
        "PATIENTS_SHEET_NAME": "other",
        "PATIENTS_PREPROCESSING": '[{"function": "assign_column", "parameters": {}}]',
    }
    sqlite(consortium, "east")
    said = consortium.at("east", "site.toml")
    said.write_text(said.read_text() + 'query = "SELECT a, b FROM patients"\nindependent = true\n')
    environment = consortium.environment("east", "sql", "rows.sqlite") | chosen
    assert asked(consortium, beginning(consortium, round_), environment)
    assert counted(consortium, round_) == truly(consortium, round_)


def test_only_two_names_can_be_called():
    """A caller names any attribute of the package, and vantage6 calls it."""
    callable_ = {name for name in dir(v6_hushtable) if callable(getattr(v6_hushtable, name))}
    assert {name for name in callable_ if not name.startswith("__")} == {"central", "partial"}
    assert inspect.signature(v6_hushtable.partial).parameters.keys() == {"request"}
    assert v6_hushtable.central.wrapped_in_algorithm_client_decorator


def test_the_store_knows_these_functions():
    """What is submitted to an algorithm store is as its form wants it, and true."""
    said = json.loads((PACKAGE / "algorithm.json").read_text())
    assert {"name", "image", "partitioning", "vantage6_version", "code_url", "functions"} <= {*said}
    assert said["partitioning"] == "horizontal"
    functions = {one["name"]: one for one in said["functions"]}
    assert {name: one["type"] for name, one in functions.items()} == {
        "central": "central", "partial": "federated",
    }  # fmt: skip
    takes = {"central": [], "partial": ["request"]}
    for name, one in functions.items():
        assert [argument["name"] for argument in one["arguments"]] == takes[name]
        assert {argument["type"] for argument in one["arguments"]} <= {"string"}


# --- the container --------------------------------------------------------------------------------


def contained(consortium, request, environment):
    """Run an image's command, as a node starts it; return its output, and what it said."""
    at = consortium.folder
    (at / "input").write_text(json.dumps({"method": "partial", "kwargs": {"request": request}}))
    coded = {
        name: base64.b32encode(value.encode()).decode().replace("=", ENV_VAR_EQUALS_REPLACEMENT)
        for name, value in (
            environment | {"INPUT_FILE": str(at / "input"), "OUTPUT_FILE": str(at / "output")}
        ).items()
    }
    path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
    command = "from vantage6.algorithm.tools.wrap import wrap_algorithm; wrap_algorithm()"
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, timeout=120, check=True,
        env=os.environ | coded | {"PKG_NAME": "v6_hushtable", "PYTHONPATH": path},
    )  # fmt: skip
    return json.loads((at / "output").read_text()), done.stdout + done.stderr


@pytest.mark.slow
def test_a_container_prints_the_same_whatever_the_rows(consortium):
    """A node may pass on all that is printed: of good rows, wrong ones, and none of a folder."""
    round_, path = consortium.open(), consortium.at("east", "rows.csv")
    environment, request = consortium.environment("east"), beginning(consortium, round_)
    good, first = contained(consortium, request, environment)
    assert Message.read(
        vantage6._content(good), consortium.keys["east"].card
    ).check(round_, "keys")  # fmt: skip
    path.write_text(path.read_text().replace("a,", "Ann,", 1))
    consortium.at("east", "east.log").mkdir()  # the reason cannot be written where it belongs
    round_ = consortium.open(title="broken")
    bad, second = contained(consortium, beginning(consortium, round_), environment)
    assert word(consortium, round_, vantage6._content(bad)) == "unavailable"
    consortium.at("east", "east.policy.toml").unlink()
    nothing, third = contained(consortium, request, environment)
    assert nothing == ""
    assert first == second == third
    assert "Ann" not in first


# --- databases ------------------------------------------------------------------------------------


def counted(consortium, round_, name="east"):
    """Return what a site counted, as its book keeps it between the steps."""
    with Book.open(consortium.at(name, f"{name}.book")) as book:
        return book.step(round_.round_id, "rows")[1]


def truly(consortium, round_, name="east"):
    return Sketch.from_data(round_.plan, consortium.rows[name]).counts.astype("<i8").tobytes()


def sqlite(consortium, name):
    with sqlite3.connect(consortium.at(name, "rows.sqlite")) as connection:
        consortium.rows[name].to_sql("patients", connection, index=False)


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")  # vantage6's own reader
@pytest.mark.parametrize("kind", ["csv", "parquet", "sql"])
def test_a_database(consortium, kind):
    round_, rows = consortium.open(), consortium.rows["east"]
    if kind == "sql":
        sqlite(consortium, "east")
        said = consortium.at("east", "site.toml")
        said.write_text(said.read_text() + 'query = "cohort.sql"\nindependent = true\n')
        consortium.at("east", "cohort.sql").write_text("SELECT b, a FROM patients")
    elif kind == "parquet":
        rows.to_parquet(consortium.at("east", "rows.parquet"))
    uri = {"csv": "rows.csv", "parquet": "rows.parquet", "sql": "rows.sqlite"}[kind]
    # What vantage6 itself reads there is the same frame.
    dataset = {"database": str(consortium.at("east", uri)), "db_type": kind}
    dataset["query"] = "SELECT a, b FROM patients"
    seen = MockAlgorithmClient([[dataset]], "v6_hushtable").datasets_per_org[0][0]
    np.testing.assert_allclose(seen.to_numpy(), rows.to_numpy(), rtol=1e-12)
    assert asked(
        consortium, beginning(consortium, round_), consortium.environment("east", kind, uri)
    )
    assert counted(consortium, round_) == truly(consortium, round_)


COHORT = """
SELECT person_id,
       max(value_as_number) FILTER (WHERE measurement_concept_id = 3004249) AS a,
       max(value_as_number) FILTER (WHERE measurement_concept_id = 3012888) AS b
FROM cdm.measurement GROUP BY person_id
"""


@pytest.mark.skipif(programs() is None, reason="PostgreSQL's server is not installed")
def test_omop(consortium):
    """One row a person from a CDM in PostgreSQL, by a query that the site keeps."""
    round_, rows = consortium.open(), consortium.rows["east"]
    said = consortium.at("east", "site.toml")
    said.write_text(said.read_text() + 'query = "cohort.sql"\nindependent = true\n')
    consortium.at("east", "cohort.sql").write_text(COHORT)
    values = ", ".join(
        f"({i}, {concept}, {value!r})"
        for i, pair in enumerate(rows.to_numpy().tolist())
        for concept, value in zip((3004249, 3012888), pair, strict=True)
    )
    with running(programs()) as server:
        server.do(
            "CREATE SCHEMA cdm",
            "CREATE TABLE cdm.measurement (person_id int, measurement_concept_id int, "
            "value_as_number double precision)",
            f"INSERT INTO cdm.measurement VALUES {values}",
        )
        uri = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
        environment = consortium.environment(
            "east", "omop", uri, USER="trusted", PASSWORD="a:b@c/d", DBMS="postgresql"
        )
        assert asked(consortium, beginning(consortium, round_), environment)
    assert counted(consortium, round_) == truly(consortium, round_)


@pytest.mark.parametrize(
    ("kind", "uri", "words"),
    [
        ("omop", "jdbc:sqlserver://there", "jdbc:postgresql"),
        ("sparql", "http://there", "'sparql'"),
        ("sql", "sqlite:////nowhere", "query"),
    ],
)
def test_a_database_of_another_kind_stays_silent(consortium, kind, uri, words):
    round_ = consortium.open()
    environment = consortium.environment("east", kind, uri)
    answer = asked(consortium, beginning(consortium, round_), environment)
    log = consortium.at("east", "east.log" if answer else "vantage6.log").read_text()
    assert words in log
    assert (word(consortium, round_, answer) == "unavailable") if answer else kind != "sql"


def test_two_tasks_at_a_time_are_refused(consortium):
    consortium.open()
    with files.locked(consortium.at("lead", "coordinator.toml")), pytest.raises(FileError):
        consortium.run()
    assert consortium.run()["done"]


def test_a_folder_without_its_file_says_what_to_do(consortium):
    consortium.at("lead", "coordinator.toml").unlink(missing_ok=True)
    with pytest.raises(HushTableError, match="type folder with the label hushtable"):
        consortium.run()
