"""What is PostgreSQL's own: types, states, sessions, passwords; `test_databases` has the rest."""

import contextlib
import gc
import itertools
import threading
import uuid

import pyarrow as pa
import pytest

from hushtable.data.readers import FileLayout, as_reader
from hushtable.errors import DataError, DataTypeError
from postgres_server import PASSWORD, QUOTED

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shell")]  # messages name options

QUERY = "SELECT id, x, word FROM rows ORDER BY id"


def opened(url, query):
    return as_reader(url, layout=FileLayout(query=query, independent=True))


def table(url, query):
    return pa.Table.from_batches(opened(url, query).read())


@pytest.fixture
def rows(postgres):
    postgres.do(
        "DROP TABLE IF EXISTS rows",
        "CREATE SEQUENCE IF NOT EXISTS numbers",
        "CREATE TABLE rows AS SELECT i AS id, i / 8.0::float8 AS x, 'w' || i % 3 AS word "
        "FROM generate_series(1, 50000) i",
    )
    return postgres


TYPES = {
    "NULL::int4": (pa.int32(), None),
    "7::int2": (pa.int16(), 7),
    "1.5::float4": (pa.float32(), 1.5),
    "1234.56::numeric": (pa.float64(), 1234.56),
    "'1.5'::numeric(8,2)": (pa.float64(), 1.5),
    "1e30::numeric": (pa.float64(), 1e30),
    "true": (pa.bool_(), True),
    "'ä'::text": (pa.string(), "ä"),
    "'a'::mood": (pa.string(), "a"),
    "NULL::uuid": (pa.string(), None),
    "'a2b5c1d0-0000-4000-8000-00000000000f'::uuid": (
        pa.string(), "a2b5c1d0-0000-4000-8000-00000000000f",
    ),
    "timestamp '2026-01-02 03:04:05'": (pa.timestamp("us"), None),
    "timestamptz '2026-01-02 03:04:05+02'": (pa.timestamp("us", "UTC"), None),
    "date '2026-01-02'": (pa.date32(), None),
    "time '12:00'": (pa.time64("us"), None),
}  # fmt: skip


def test_types(postgres):
    postgres.do("DROP TYPE IF EXISTS mood", "CREATE TYPE mood AS ENUM ('a', 'b')")
    listed = ", ".join(f"{one} AS c{i}" for i, one in enumerate(TYPES))
    nulls = ", ".join(f"NULLIF({one}, {one})" for one in TYPES)
    found = table(postgres.url(), f"SELECT {listed} UNION ALL SELECT {nulls} ORDER BY c1")
    for i, (expression, (kind, value)) in enumerate(TYPES.items()):
        assert found.schema.field(i).type == kind, expression
        assert found[i][1].as_py() is None, expression
        if value is not None:
            assert found[i][0].as_py() == value, expression
    as_text = [str(found[i][0]) for i in range(len(TYPES) - 4, len(TYPES) - 1)]
    assert as_text == ["2026-01-02 03:04:05", "2026-01-02 01:04:05+00:00", "2026-01-02"]


def test_uuids_of_many_rows(postgres):
    query = "SELECT gen_random_uuid() AS u, i % 7 = 0 AS none FROM generate_series(1, 100) i"
    found = table(
        postgres.url(), f"SELECT CASE WHEN none THEN NULL ELSE u END AS u FROM ({query}) q"
    )
    texts = found["u"].to_pylist()
    assert texts.count(None) == 14
    assert all(str(uuid.UUID(text)) == text for text in texts if text is not None)


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("'{}'::json", "json"), ("'{}'::jsonb", "jsonb"), ("ARRAY[1, 2]", "_int4"),
        ("'12.34'::money", "money"), (r"'\x00'::bytea", "bytea"), ("'1.2.3.4'::inet", "inet"),
        ("point(1, 2)", "point"), ("interval '1 day'", "interval"),
    ],
)  # fmt: skip
def test_other_types_are_refused_by_name_unless_left_out(postgres, expression, word):
    reader = opened(postgres.url(), f"SELECT 1 AS a, {expression} AS odd")
    with pytest.raises(DataTypeError, match=rf"'odd' \({word}\): leave it out \(--drop odd\)"):
        next(reader.read())
    assert len(next(reader.select(["a"]).read())) == 1


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("timestamp 'infinity'", "infinite"), ("timestamptz '-infinity'", "infinite"),
        ("date 'infinity'", "infinite"), ("timestamp '20000-01-01'", "years 1 to 9999"),
    ],
)  # fmt: skip
def test_times_outside_the_calendar_are_refused(postgres, expression, words):
    with pytest.raises(DataError, match=f"column 'x'.*{words}"):
        table(postgres.url(), f"SELECT {expression} AS x")


def test_passes_see_one_state_whatever_others_write(rows):
    reader = opened(rows.url(), QUERY)
    before = sum(map(len, reader.read()))
    rows.do("DELETE FROM rows WHERE id < 1000")
    assert sum(map(len, reader.read())) == before == 50_000
    assert sum(map(len, opened(rows.url(), QUERY).read())) == 49_001


def test_nobody_waits_for_a_reader_that_rests(rows):
    reader = opened(rows.url(), QUERY)
    list(reader.read())
    rows.do("SET lock_timeout = '5s'", "ALTER TABLE rows ADD COLUMN further int")


def test_passes_beside_each_other_and_given_up(rows):
    reader = opened(rows.url(), QUERY)
    next(reader.read())  # given up at once
    for one, other in itertools.zip_longest(reader.read(), reader.read()):
        assert one.equals(other)
    counts = []
    threads = [
        threading.Thread(target=lambda: counts.append(sum(map(len, reader.read()))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [50_000] * 3


@pytest.mark.parametrize("query", [QUERY, "SELECT 1 / (id - 7) AS x FROM rows"])
def test_a_reader_leaves_no_session_behind(rows, query):
    sessions = (
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
        "AND pid <> pg_backend_pid()"
    )
    gc.collect()
    gc.disable()
    try:
        reader = opened(rows.url(), query)
        with contextlib.suppress(DataError):
            next(reader.read())
        assert rows.ask(sessions) >= 1
        del reader
        # The server notes the end of a session a moment after the client.
        assert any(rows.ask(sessions) == 0 for _ in range(50))
    finally:
        gc.enable()


def test_rows_that_a_truncation_takes_from_under_a_pass(rows):
    reader = opened(rows.url(), QUERY)
    list(reader.read())
    rows.do("TRUNCATE rows")  # the one change that no state of the tables outlives
    changed = r"changed while it was being read \(50,000 rows at first, now 0\)"
    with pytest.raises(DataError, match=changed):
        list(reader.read())


def test_a_connection_that_dies_in_the_middle(rows):
    reader = opened(rows.url(), "SELECT r.*, g FROM rows r, generate_series(1, 40) g")
    passing = reader.read()
    next(passing)
    rows.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'active' "
             "AND backend_type = 'client backend' AND pid <> pg_backend_pid()")  # fmt: skip
    with pytest.raises(DataError, match="connection was lost, and nothing was kept: run it again"):
        list(passing)


def test_a_state_that_is_held_no_longer(rows):
    reader = opened(rows.url(), QUERY)
    rows.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
             "WHERE state = 'idle in transaction'")  # fmt: skip
    with pytest.raises(DataError, match="state of the tables has ended: run it again"):
        list(reader.read())


@pytest.mark.parametrize(
    "query",
    [
        "WITH gone AS (DELETE FROM rows RETURNING id) SELECT * FROM gone",
        "SELECT setval('numbers', 7) AS x", "SELECT 1 AS x FROM rows FOR UPDATE",
    ],
)  # fmt: skip
def test_a_query_that_writes(rows, query):
    with pytest.raises(DataError, match=r"read-only transaction.*hushtable only reads"):
        table(rows.url(), query)
    assert rows.ask("SELECT count(*) FROM rows") == 50_000


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nope FROM rows", 'column "nope" does not exist: check the query'),
        ("SELECT * FROM nope", 'relation "nope" does not exist'),
        ("SELECT FROM rows", "no columns"),
        ("SELECT 1/(id - 40000) AS x FROM rows ORDER BY id", "division by zero"),
    ],
)
def test_queries_that_fail(rows, query, words):
    with pytest.raises(DataError, match=words) as caught:
        table(rows.url(), query)
    assert "SQLSTATE" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_remarks_and_semicolons(rows):
    query = "-- first\nSELECT id, '; --' AS x /* ; */ FROM rows LIMIT 1; -- last"
    assert table(rows.url(), query).to_pylist() == [{"id": 1, "x": "; --"}]


def test_passwords_from_the_url_and_from_where_libpq_looks(postgres, monkeypatch, tmp_path):
    with_password = postgres.url(f"reader:{QUOTED}")
    assert table(with_password, "SELECT 1 AS x").num_rows == 1
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert table(postgres.url("reader"), "SELECT 1 AS x").num_rows == 1
    monkeypatch.delenv("PGPASSWORD")
    kept = tmp_path / "pgpass"
    kept.write_text(f"127.0.0.1:{postgres.port}:postgres:reader:{PASSWORD}\n")
    kept.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(kept))
    assert table(postgres.url("reader"), "SELECT 1 AS x").num_rows == 1
    services = tmp_path / "services"
    services.write_text(
        f"[ward]\nhost=127.0.0.1\nport={postgres.port}\nuser=reader\ndbname=postgres\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    assert table("postgresql://?service=ward", "SELECT 1 AS x").num_rows == 1


def test_a_password_that_is_refused_or_lacking(postgres, monkeypatch):
    with pytest.raises(DataError, match=r"password authentication failed.*PGPASSWORD") as caught:
        opened(postgres.url("reader:Wr0ng%21"), "SELECT 1 AS x")
    assert "Wr0ng" not in str(caught.value)
    with pytest.raises(DataError, match=r"no password supplied.*PGPASSWORD"):
        opened(postgres.url("reader"), "SELECT 1 AS x")
    monkeypatch.setenv("PGPASSWORD", "Wr0ng!")
    with pytest.raises(DataError, match=r"password authentication failed.*PGPASSWORD"):
        opened(postgres.url("reader"), "SELECT 1 AS x")


def test_a_database_that_is_not_there(postgres):
    with pytest.raises(DataError, match='database "none" does not exist: check'):
        opened(postgres.url(database="none"), "SELECT 1 AS x")
