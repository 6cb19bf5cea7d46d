"""Rows out of SQLite, DuckDB and PostgreSQL; queries, URLs and what may be shown of them."""

import sqlite3
import subprocess
import sys
import traceback

import numpy as np
import pyarrow as pa
import pytest

from hushtable import HushTable
from hushtable.cli import main
from hushtable.data.readers import FileLayout, Unasked, as_reader
from hushtable.errors import DataError, DataTypeError, MissingExtraError, UsageError
from hushtable_connect.databases import drivers
from hushtable_connect.databases import reader as _database

duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

QUERY = "SELECT id, x, word FROM visits ORDER BY id"
N_ROWS = 4_000


def opened(url, query=QUERY):
    return as_reader(url, layout=FileLayout(query=query))


def table(url, query=QUERY):
    return pa.Table.from_batches(opened(url, query).read())


class Store:
    """A file with the table ``visits``."""

    def __init__(self, kind, folder):
        self.path = folder / f"a ward.{kind}"
        self.url = self.shown = f"{kind}:///{self.path}"
        self.connect = duckdb.connect if kind == "duckdb" else sqlite3.connect
        self.do(
            "CREATE TABLE visits AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 "
            f"FROM n WHERE id < {N_ROWS}) SELECT id, id / 8.0 AS x, 'w' || (id % 3) AS word FROM n"
            if kind != "duckdb"
            else f"CREATE TABLE visits AS SELECT i + 1 AS id, (i + 1) / 8 AS x, "
            f"'w' || ((i + 1) % 3) AS word FROM range({N_ROWS}) r(i)"
        )

    def do(self, *statements):
        connection = self.connect(str(self.path))
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()


class Tables:
    """A server of PostgreSQL with the table ``visits``."""

    def __init__(self, server):
        self.url, self.shown, self.do = server.url(), server.shown, server.do
        self.do(
            "DROP TABLE IF EXISTS visits",
            "CREATE TABLE visits AS SELECT i AS id, i / 8.0::float8 AS x, 'w' || i % 3 AS word "
            f"FROM generate_series(1, {N_ROWS}) i",
        )


@pytest.fixture(params=["sqlite", "duckdb"])
def file(request, tmp_path):
    return Store(request.param, tmp_path)


@pytest.fixture(params=["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.slow)])
def store(request, tmp_path):
    if request.param == "postgres":
        return Tables(request.getfixturevalue("postgres"))
    return Store(request.param, tmp_path)


@pytest.fixture
def sqlite(tmp_path):
    return Store("sqlite", tmp_path)


def test_rows_are_those_of_the_table(store):
    reader = opened(store.url)
    assert reader.source == store.shown
    assert reader.names == ("id", "x", "word")
    for _ in range(2):
        found = pa.Table.from_batches(reader.read())
        np.testing.assert_array_equal(found["id"], np.arange(1, N_ROWS + 1))
        np.testing.assert_array_equal(found["x"], np.arange(1, N_ROWS + 1) / 8)
        assert found["word"][:3].to_pylist() == ["w1", "w2", "w0"]
    assert next(reader.select(["word", "x"]).read()).schema.names == ["word", "x"]


@pytest.mark.parametrize("store", ["sqlite", "duckdb", "postgres"], indirect=True)
def test_a_detector_reads_them(store):
    query = "SELECT x, word FROM visits WHERE id <= 3000 ORDER BY id"
    reader, memory = opened(store.url, query), table(store.url, query)
    here, there = (HushTable(random_state=0, n_tables=8).fit(data) for data in (reader, memory))
    np.testing.assert_array_equal(here.score_samples(reader), there.score_samples(memory))


def test_nothing_is_written(file):
    before = file.path.read_bytes()
    for query in ("DELETE FROM visits", "WITH a AS (SELECT 1) DELETE FROM visits RETURNING id"):
        with pytest.raises(DataError, match=r"needs a query that reads|hushtable only reads"):
            list(opened(file.url, query).read())
    assert file.path.read_bytes() == before


def test_duckdb_writes_no_file_beside(tmp_path):
    store, other = Store("duckdb", tmp_path), tmp_path / "other.csv"
    with pytest.raises(DataError, match="begins with COPY: needs a query that reads"):
        opened(store.url, f"COPY visits TO '{other}'")
    assert not other.exists()


def test_others_may_write_while_a_reader_rests(sqlite):
    reader = opened(sqlite.url)
    list(reader.read())
    sqlite.do("PRAGMA busy_timeout = 0", "DELETE FROM visits WHERE id = 7")


@pytest.mark.parametrize(
    "change", ["UPDATE visits SET x = 0 WHERE id = 7", "DELETE FROM visits WHERE id = 7"]
)
def test_rows_that_change_between_passes(file, change):
    reader = opened(file.url)
    list(reader.read())
    file.do(change)
    with pytest.raises(DataError, match="the table changed while it was being read") as caught:
        list(reader.read())
    assert str(caught.value).startswith(f"{file.url}: ")


def test_columns_that_change_between_passes(store):
    reader = opened(store.url, "SELECT * FROM visits ORDER BY id")
    list(reader.read())
    store.do("ALTER TABLE visits RENAME COLUMN word TO term")
    with pytest.raises(DataError, match=r"table changed while .*('term'|its file was written)"):
        list(reader.read())


def test_a_query_without_rows(store):
    reader = opened(store.url, "SELECT x FROM visits WHERE id < 0")
    assert sum(map(len, reader.read())) == 0
    with pytest.raises(DataError, match="has no rows"):
        HushTable().fit(reader)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nope FROM visits", "nope.*: check the query"),
        ("SELECT * FROM nope", "nope"),
        ("SELECT id, id FROM visits", "'id' is listed twice"),
        ("SELECT id FROM visits; SELECT x FROM visits", "several statements: give a single one"),
        ("   ", "the query is empty"), ("-- SELECT", "the query is empty"),
        ("PRAGMA user_version = 7", "begins with PRAGMA: needs a query that reads"),
        ("/* SELECT */ drop table visits", "begins with DROP: needs a query that reads"),
        ("SELEC 1", "begins with SELEC: needs a query that reads"),
    ],
)  # fmt: skip
def test_queries_that_fail(store, query, words):
    with pytest.raises(DataError, match=words) as caught:
        list(opened(store.url, query).read())
    assert "\n" not in str(caught.value)


def test_a_query_is_needed(store):
    with pytest.raises(UsageError, match="a database needs a query: --read"):
        as_reader(store.url)


def test_a_query_in_a_file(file, tmp_path):
    path = tmp_path / "the rows.sql"
    path.write_text(
        "\ufeff-- ward\nSELECT id, ';' AS \"a;b\" FROM visits LIMIT 1;\n-- end\n", "utf-8"
    )
    assert table(file.url, f"{path}\n").to_pylist() == [{"id": 1, "a;b": ";"}]
    path.write_bytes(b"SELECT '\xe4' AS x")
    with pytest.raises(DataError, match=r"the rows\.sql: the query is not UTF-8"):
        opened(file.url, str(path))
    with pytest.raises(DataError, match=r"none\.sql: No such file.*: check the path of the query"):
        opened(file.url, str(tmp_path / "none.sql"))


def test_percent_signs_and_colons_are_the_query_s_own(store):
    found = table(
        store.url, "SELECT '10 % :x' AS x, '%s' AS y FROM visits WHERE word LIKE 'w%' LIMIT 1"
    )
    assert found.to_pylist() == [{"x": "10 % :x", "y": "%s"}]


# --- types ----------------------------------------------------------------------------------------


def test_types_of_duckdb(tmp_path):
    store = Store("duckdb", tmp_path)
    found = table(
        store.url,
        "SELECT 1.50::DECIMAL(8,2) AS d, 5::HUGEINT AS h, 'a'::ENUM('a', 'b') AS e, true AS b, "
        "'a2b5c1d0-0000-4000-8000-00000000000f'::UUID AS u, DATE '2026-01-02' AS t, "
        "TIMESTAMP '2026-01-02 03:04:05' AS s, NULL AS n",
    )
    assert found["d"].type == found["h"].type == pa.float64()
    assert found.select(["d", "h", "e", "b", "u"]).to_pylist() == [
        {"d": 1.5, "h": 5.0, "e": "a", "b": True, "u": "a2b5c1d0-0000-4000-8000-00000000000f"}
    ]


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("'{}'::JSON", "JSON"), ("[1, 2]", r"INTEGER\[\]"), ("{'a': 1}", "STRUCT"),
        ("'a'::BLOB", "BLOB"), ("INTERVAL 1 DAY", "INTERVAL"),
    ],
)  # fmt: skip
def test_other_types_of_duckdb_are_refused_by_name(tmp_path, expression, word):
    reader = opened(Store("duckdb", tmp_path).url, f"SELECT 1 AS a, {expression} AS odd")
    with pytest.raises(DataTypeError, match=rf"'odd' \({word}.*: leave it out \(--drop odd\)"):
        list(reader.read())
    assert len(next(reader.select(["a"]).read())) == 1


def values(*texts):
    rows = " UNION ALL ".join(f"SELECT {i} AS i, {text} AS v" for i, text in enumerate(texts))
    return f"SELECT v FROM ({rows}) ORDER BY i"


def test_a_column_keeps_its_type_or_is_refused(sqlite):
    many = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 40000) "
    late = many + "SELECT CASE WHEN id > 30000 THEN {} ELSE {} END AS v FROM n ORDER BY id"
    words = r"type int64 before row 16384, and of type string from there on, such as 'ERR'.*NULLIF"
    with pytest.raises(DataError, match=f"'v' held values of {words}"):
        table(sqlite.url, late.format("'ERR'", "id"))
    with pytest.raises(DataError, match=r"such as 0\.5"):
        table(sqlite.url, late.format("0.5", "id"))
    assert table(sqlite.url, late.format("id", "0.5"))["v"].type == pa.float64()
    assert table(sqlite.url, late.format("id", "'a'"))["v"][-1].as_py() == "40000"
    assert table(sqlite.url, late.format("NULL", "id"))["v"].null_count == 10_000
    reader = opened(sqlite.url, late.format("id", "NULL"))
    passes = [{str(batch.schema.field("v").type) for batch in reader.read()} for _ in range(2)]
    assert passes == [{"null", "int64"}, {"int64"}]


def test_bytes_are_refused(sqlite):
    with pytest.raises(
        DataTypeError, match=r"'v' holds a value of type bytes in row 1: leave it out"
    ):
        table(sqlite.url, values("1", "x'00'"))


# --- URLs and passwords ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("postgresql://u:hush@h:5433/d?sslpassword=hush", "postgresql://h:5433/d"),
        ("postgresql+x://u:hu%40sh@h/d", "postgresql+x://h/d"),
        ("postgresql:///d?host=/tmp&password=hush", "postgresql:///d"),
        ("sqlite:///a@b.db", "sqlite:///a@b.db"),
    ],
)
def test_of_a_url_the_password_is_not_shown(url, source):
    assert _database.Address(url).source == source


def everything_said(error):
    """Return all that is printed of an error, and all that hangs on to it."""
    said = "".join(traceback.format_exception(error))
    while error is not None:
        said += repr(error) + str(error)
        error = error.__cause__ or error.__context__
    return said


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:Hu@sh99@127.0.0.1:1/d", "postgresql://u:Hu/sh99@127.0.0.1:1/d",
        "postgresql://u:Hu?sh99@127.0.0.1:1/d", "postgresql://u:Hu#sh99@127.0.0.1:1/d",
        "postgresql://u:Hu%zzsh99@127.0.0.1:1/d", "postgresql://u:Hush99@127.0.0.1:99999/d",
        "postgresql://127.0.0.1:1/d?password=Hush99", "postgresql://127.0.0.1:1/d?passwrd=Hush99",
        "postgresql://127.0.0.1:1/d?password=Hu@sh99", "postgresql://u:Hush99@127.0.0.1:1/d",
        "mysql+nodriver://u:Hush99@127.0.0.1:1/d", "nosuch://u:Hush99@127.0.0.1/d",
        "sqlite+pysqlite://u:Hush99@127.0.0.1/d",
        "mysql://127.0.0.1/d?odbc_connect=PWD%3DHush99%3BUID%3Du",
    ],
)  # fmt: skip
def test_no_error_holds_a_password(url):
    with pytest.raises(DataError) as caught:
        opened(url, "SELECT 1 AS x")
    said = everything_said(caught.value)
    # pytest and this test know the URL; no frame's source does.
    assert "sh99" not in said
    assert "Hu@" not in said


def test_what_a_driver_quotes_of_a_password_is_blotted_out(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "from the environment")
    address = _database.Address("postgresql+x://u:Hu%40sh@h/d?key=a%3Db")

    def fails():
        raise RuntimeError("IO: [libpq] bad Hu%40sh, Hu@sh,\n a=b, a%3Db and from the environment")

    with pytest.raises(DataError, match=r"d: bad \*\*\*, \*\*\*, \*\*\*, \*\*\* and \*\*\*: check"):
        address.guard(fails)


@pytest.mark.parametrize("url", ["mysql://u:Hush99@h/d", "oracle+x://h/d", "nosuch://h/d"])
def test_other_databases_are_refused_with_a_way(url):
    with pytest.raises(DataError, match=r"://h/d: needs postgresql.*as CSV or Parquet.*read_sql"):
        opened(url, "SELECT 1")


@pytest.mark.parametrize(
    ("url", "module", "library"),
    [
        ("postgresql://h/d", "adbc_driver_postgresql.dbapi", "adbc-driver-postgresql"),
        ("duckdb:///x.duckdb", "duckdb", "DuckDB"),
    ],
)
def test_a_driver_that_is_not_installed(monkeypatch, url, module, library):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs {library}.*hushtable\[databases\]"):
        opened(url, "SELECT 1")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("TIMESTAMP 'infinity'", "infinite.* in row 1: make it NULL"),
        ("DATE '20000-01-01'", "years 1 to 9999 in row 1: make it NULL"),
        ("TIMESTAMPTZ '-infinity'", "infinite.* in row 1"),
    ],
)
def test_times_outside_the_calendar_are_refused_or_missing(tmp_path, expression, words):
    """Where no person can be asked, one such row decided whether the site answers."""
    store, usual = Store("duckdb", tmp_path), f"{expression.split()[0]} '2020-01-01'"
    query = f"SELECT i, CASE i WHEN 1 THEN {expression} ELSE {usual} END AS x FROM range(3) r(i)"
    with pytest.raises(DataError, match=f"column 'x'.*{words}"):
        table(store.url, query)
    unasked = Unasked(["i", "x"])
    [rows] = as_reader(store.url, layout=FileLayout(query=query, unasked=unasked)).read()
    assert rows["x"].is_valid().to_pylist() == [True, False, True]
    assert unasked.words[0].endswith(": 1, the first in row 1.")


def test_nanoseconds_do_not_reach_the_last_year(tmp_path):
    query = "SELECT TIMESTAMP_NS '2020-01-01 00:00:00.000000001' AS x, 1 AS y"
    assert table(Store("duckdb", tmp_path).url, query)["x"].null_count == 0


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_files_that_are_no_databases(tmp_path, kind):
    with pytest.raises(DataError, match="no such file: check the path"):
        opened(f"{kind}:///{tmp_path}/none")
    (tmp_path / "junk").write_text("no database " * 500)
    with pytest.raises(DataError, match=r"junk: .*: check the path"):
        opened(f"{kind}:///{tmp_path}/junk")
    with pytest.raises(DataError, match="needs the path of a file"):
        opened(f"{kind}://")


def test_a_file_that_the_process_has_open(tmp_path):
    store = Store("duckdb", tmp_path)
    with duckdb.connect(str(store.path)), pytest.raises(DataError, match="close what else has"):
        opened(store.url)


def test_no_driver_loads_before_it_is_used():
    late = "{'sqlite3', 'duckdb', 'adbc_driver_manager'}"
    code = f"import sys, hushtable.data.readers; print([m for m in {late} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a model and its plan's schema."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "rows.csv").write_text("x\n" + "\n".join(str(x % 9) for x in range(50)) + "\n")
    (folder / "s.toml").write_text('[[feature]]\nname = "x"\nkind = "numeric"\nlow = 0\nhigh = 9\n')
    assert main(["fit", f"{folder}/rows.csv", "-o", f"{folder}/m.hush"]) == 0
    assert main(["plan", "draw", f"{folder}/s.toml", "-o", f"{folder}/p.hush"]) == 0
    return folder


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "fit {} -o m.hush", "fit {} -o m.hush --json", "plan draft {} -o s.toml",
        "sketch {} --plan {made}/p.hush -o s.hush", "score {} --model {made}/m.hush -o scores.csv",
        "score {} --model {made}/m.hush -o folder/", "plan check {made}/s.toml {}",
        "report {made}/m.hush {} -o r.html",
    ],
)  # fmt: skip
def test_a_password_is_never_printed(tmp_path, monkeypatch, capsys, made, command, debug):
    monkeypatch.chdir(tmp_path)
    if debug:
        monkeypatch.setenv("HUSHTABLE_DEBUG", "1")
    url = "postgresql://u:Hush99@127.0.0.1:1/d?sslpassword=Hush99"
    assert main(command.format(url, made=made).split()) in (1, 2)
    said = capsys.readouterr()
    assert "127.0.0.1:1/d" in said.err
    assert "Hush99" not in said.out + said.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


ROWS = "SELECT x, word FROM visits ORDER BY id"


@pytest.fixture
def model(tmp_path):
    store = Store("sqlite", tmp_path)
    made = tmp_path / "m.hush"
    assert main(["fit", store.url, "--read", f"query={ROWS}", "-o", str(made)]) == 0
    return store, made


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
    read = [store.url, "--read", f"query={query}", "-o", str(scores)]
    command = ["fit"] if "raw" in query else ["score", "--model", str(made)]
    assert main([*command, *read]) == 1
    assert words in capsys.readouterr().err
    assert not scores.exists()


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle(postgres, tmp_path, capsys, monkeypatch):
    """Ends in exit code 1, and with no file, however far the pass had come."""
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
