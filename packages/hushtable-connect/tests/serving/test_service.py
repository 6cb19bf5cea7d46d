"""The example service: the library's answers, its words for bad rows, and many at once."""

import asyncio
import json
from importlib.util import find_spec

import numpy as np
import pytest

import places

if find_spec("fastapi") is None:  # not imported yet: it takes half a second
    pytest.skip("FastAPI is not installed", allow_module_level=True)
pytest.importorskip("httpx", reason="httpx is not installed")

import httpx

from hushtable import HushTable
from hushtable_connect.serving import Served

EXAMPLE = places.CONNECT / "examples" / "service.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = [
        {"age": int(age), "pulse": float(pulse), "ward": ward, "dead": dead}
        for age, pulse, ward, dead in zip(
            rng.integers(18, 90, 400), rng.normal(70, 9, 400).round(),
            rng.choice(["north", "south"], 400), ["true", "false", "?", "?"] * 100, strict=True,
        )
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("service") / "model.hush"
    HushTable(n_tables=20, random_state=0).fit(rows).save(path)
    return path, rows


@pytest.fixture(scope="module")
def app(model):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHTABLE_MODEL", str(model[0]))
        return places.script(EXAMPLE).app


def ask(app, *requests):
    """Send requests, all at once; return status and JSON of each."""

    async def all_of_them():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://site") as client:
            return await asyncio.gather(*(client.post("/score", **one) for one in requests))

    return [(answer.status_code, answer.json()) for answer in asyncio.run(all_of_them())]


def test_a_hundred_requests_at_once_get_the_library_s_answers(app, model):
    path, rows = model
    served = Served.load(path)
    requests = [rows[k : k + 3] for k in range(100)]
    found = ask(app, *({"json": request} for request in requests))
    assert found == [(200, served.answer(request)) for request in requests]


ROW = {"age": 41, "pulse": 70, "ward": "north", "dead": True}


def test_an_odd_row_is_said_to_be_odd(app):
    [(status, [answer])] = ask(app, {"json": [{**ROW, "pulse": 210, "ward": None}]})
    assert (status, answer["outlier"], answer["outside"]) == (200, True, "pulse")
    assert "pulse 210" in answer["reasons"]


def test_true_is_the_category_true_and_no_number(app, model):
    [(status, answers)] = ask(app, {"json": [ROW, {**ROW, "dead": False}]})
    assert (status, [answer["outside"] for answer in answers]) == (200, ["", ""])
    assert answers == Served.load(model[0]).answer([ROW, {**ROW, "dead": False}])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{**ROW, "pulse": "fast"}], "column 'pulse': 'fast' in row 0 is not a number"),
        ([{**ROW, "pulse": float("inf")}], "contains infinity: feature 'pulse'"),
        ([{**ROW, "age": 10**400}], "column 'age' holds the integer of 1,329 bits: "),
        ([{**ROW, "ward": "\ud800"}], "column 'ward' holds '\\ud800' in row 0: half a character"),
        ([ROW] * 1_001, "at most 1000"),
        ([{**ROW, "pulse": [70]}], "valid number"),
        ({"rows": [ROW]}, "valid list"),
    ],
)
def test_bad_rows_give_422_in_the_library_s_words(app, content, words):
    body = json.dumps(content).encode()
    [(status, said)] = ask(app, {"content": body, "headers": {"Content-Type": "application/json"}})
    assert status == 422
    detail = said["detail"]
    assert words in (detail if isinstance(detail, str) else detail[0]["msg"])


@pytest.mark.parametrize(
    "request_",
    [
        {"json": [{"age": 41, "ward": "of Ann Example"}] * 1_001},
        {"json": [{"age": ["of Ann Example"]}]},
        {"json": {"age": "of Ann Example"}},
        {"content": b'[{"ward": "of Ann Example"'},
    ],
    ids=["too many", "a list", "no list", "cut"],
)
def test_no_refusal_repeats_rows(app, request_):
    """A proxy may log answers."""
    ((status, answer),) = ask(app, request_)
    assert status == 422
    assert "Ann" not in json.dumps(answer)
    assert all(set(one) == {"loc", "msg"} for one in answer["detail"])


def test_the_health_of_the_service(app):
    async def get():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://site") as client:
            return await client.get("/healthz")

    answer = asyncio.run(get())
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
