"""Plans of rounds before and after that of a model's tables: each command is the call in Python.

``test_cli_second_round.py`` and ``test_cli_ranks.py`` have the others.
"""

import pytest

from cli_helpers import write_rows
from hushtable import Plan, Schema, Sketch, load

TERMS = {"epsilon": 3.0, "expected_rows": 20_000}
OPTIONS = ("--epsilon", 3, "--expected-rows", 20_000)


@pytest.fixture
def made(run, tmp_path):
    """Run a command of plan; return the plan that it writes."""

    def made(command, *arguments):
        out = tmp_path / f"{command}.hush"
        result = run("plan", command, *arguments, "-o", out, "--json")
        assert result.code == 0, result.err
        assert result.json["command"] == f"plan {command}"
        assert result.json["plan_id"] == load(out).plan_id
        return load(out)

    return made


def test_marginals_and_ranges(made, run, site, tmp_path):
    schema, rows = Schema.from_toml(site / "schema.toml"), write_rows(tmp_path / "rows.csv", 9_000)
    assert made("marginals", site / "schema.toml") == Plan.marginals(schema)
    plan = made("ranges", site / "schema.toml", *OPTIONS)
    assert plan == Plan.ranges(schema, **TERMS)
    Sketch.from_data(plan, rows).release(3.0).save(tmp_path / "r.hush")
    ranges = ("--ranges", tmp_path / "r.hush")
    plan = made("marginals", site / "schema.toml", *ranges, *OPTIONS)
    assert plan == Plan.marginals(load(tmp_path / "r.hush").ranges(), **TERMS)
