"""Plans of rounds before and after that of a model's tables: each command is the call in Python.

``test_cli_second_round.py`` and ``test_cli_ranks.py`` have the others.
"""

import pytest

from hushtable import Plan, Schema, load

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


def test_marginals(made, site):
    schema = Schema.from_toml(site / "schema.toml")
    assert made("marginals", site / "schema.toml") == Plan.marginals(schema)
    assert made("marginals", site / "schema.toml", *OPTIONS) == Plan.marginals(schema, **TERMS)
