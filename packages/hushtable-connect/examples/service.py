"""A service at the site that scores rows over HTTP: scores and reasons stay where the rows are.

pip install 'hushtable[connect]' fastapi uvicorn
HUSHTABLE_MODEL=model.hush uvicorn service:app --host 127.0.0.1

curl 127.0.0.1:8000/healthz
curl 127.0.0.1:8000/score -H 'Content-Type: application/json' -d '[{"age": 41, "pulse": 210}]'
"""

import os
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from hushtable.errors import DataError
from hushtable_connect.serving import Served

#: Values by column, null where one is missing: true stays true, and no whole number is rounded.
Values = dict[str, float | int | bool | str | None]
#: Rows per request, at most 1,000.
Rows = Annotated[list[Values], Field(max_length=1_000)]


class Answer(BaseModel):
    """The answer for one row: `Served.judge` describes each entry."""

    row: int
    severity: float | None
    outlier: bool | None
    score: float
    reasons: str | None
    outside: str


served = Served.load(os.environ.get("HUSHTABLE_MODEL", "model.hush"))  # once, at the start
app = FastAPI(title="hushtable")


@app.exception_handler(RequestValidationError)
def refuse(request: Request, error: RequestValidationError) -> JSONResponse:
    """Report the error without the rows, because a proxy may log the response."""
    found = [{"loc": one["loc"], "msg": one["msg"]} for one in error.errors()]
    return JSONResponse({"detail": found}, 422)


@app.get("/healthz")
def healthy() -> dict[str, str]:
    """Report that the model is loaded and rows can be scored."""
    return {"status": "ok"}


@app.post("/score")
def score(rows: Rows) -> list[Answer]:
    """Return how unusual each row is, and why."""
    try:
        return [Answer(**answer) for answer in served.answer(rows)]
    except DataError as error:
        raise HTTPException(422, str(error)) from None
