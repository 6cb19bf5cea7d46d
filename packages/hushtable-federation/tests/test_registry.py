"""Drafts for the Differential Privacy Deployments Registry, against its schema."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Periods, Plan, Schema, Sketch, decoded
from hushtable.describe import describe_ledger
from hushtable.privacy import Horizon, Pool
from hushtable_federation.registry import TO_FILL_IN, entry, left_open
from places import DOCS

jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("opendp", reason="releases need opendp")
SCHEMA = json.loads((DOCS / "dp-registry-entry.schema.json").read_text())
FILLED = {
    "url_slug": "unusual-vital-signs-north-2026",
    "publication_date": "2026-11-22",
    "data_product_sector": "Healthcare",
    "data_source_type": "Static",
}
COLUMNS = Schema(
    [
        Feature.numeric("hidden_name", low=0, high=120),
        Feature.categorical("ward", ["secret_north", "secret_south"]),
    ]
)


def release(age=40.0, rows=700, seed=0, **terms):
    plan = Plan.draw(COLUMNS, n_tables=5, random_state=seed)
    data = pa.table({"hidden_name": [age] * rows, "ward": ["secret_south"] * rows})
    return Sketch.from_data(plan, data).release(**({"epsilon": 1.0} | terms))


def wrong(draft):
    """Return the places that the registry's schema refuses."""
    validator = jsonschema.Draft7Validator(SCHEMA)
    return sorted(str(error.path[-1]) for error in validator.iter_errors(draft))


def filled(draft):
    """Fill in all that is left open, as a person would."""
    if isinstance(draft, dict):
        return {key: FILLED.get(key) or filled(value) for key, value in draft.items()}
    if isinstance(draft, list):
        return [filled(value) for value in draft]
    return draft.replace(TO_FILL_IN, "") if isinstance(draft, str) else draft


def pooled(name="8e01"):
    """Two sites that share their noise, as a round's result has them."""
    both = release() + release(30.0)
    pool = Pool(name, least=2, counted=1)
    return replace(both, ledger=replace(both.ledger, pool=pool))


def of_ranges_that_were_paid_for():
    terms = {"epsilon": 1.0, "expected_rows": 20_000}
    loose = Schema([Feature.numeric(name, low=-50, high=30) for name in "ab"])
    rows = np.random.default_rng(0).normal(size=(20_000, 2))
    schema = Sketch.from_data(Plan.ranges(loose, **terms), rows).release(1.0).ranges()
    return Sketch.from_data(Plan.draw(schema, random_state=0, **terms), rows).release(1.0)


MERGED = {
    "one site": release,
    "pure": lambda: release(delta=0.0, mechanism="discrete-laplace"),
    "three rows a person, replace-one": lambda: release(rows_per_person=3, adjacency="replace-one"),
    "two sites": lambda: release() + release(30.0),
    "shared noise": pooled,
    "two cohorts": lambda: pooled() + pooled("9f02"),
    "ranges that were paid for": of_ranges_that_were_paid_for,
    "with an earlier one": lambda: release(epsilon=2.0, after=release(epsilon=0.5, seed=1)),
}


@pytest.mark.parametrize("kind", MERGED)
def test_a_draft_is_refused_until_it_is_filled_in_and_then_taken(kind):
    draft = entry(MERGED[kind]())
    assert wrong(draft) == sorted(FILLED)
    assert set(FILLED) <= {place.rpartition(".")[2] for place in left_open(draft)}
    done = filled(draft)
    assert wrong(done) == []
    assert not list(left_open(done))
    done["deployment"]["basic"]["surprise"] = ""
    assert wrong(done)


def test_parameters_are_those_of_the_ledger():
    one = release(rows_per_person=3)
    loss = entry(one)["deployment"]["privacy_loss"]
    ledger = one.ledger
    assert loss["privacy_parameters"] == {
        "epsilon": ledger.epsilon,
        "delta": 1e-6,
        "rho": ledger.rho,
    }
    assert loss["privacy_unit"] == "One person, with at most 3 records"
    assert loss["privacy_parameters_details"] == " ".join(describe_ledger(ledger))


def test_pure_noise_states_epsilon_alone():
    draft = entry(MERGED["pure"]())["deployment"]
    assert draft["dp_variant"]["variant_name"] == "Pure DP"
    assert set(draft["privacy_loss"]["privacy_parameters"]) == {"epsilon"}


def test_a_public_number_of_rows_is_named_as_unprotected():
    draft = entry(MERGED["three rows a person, replace-one"]())["deployment"]["dp_variant"]
    assert draft["unprotected_quantities"].startswith("The number of rows")


#: By kind of release, what the draft states of it.
STATED = {
    "two sites": ("Federated", "One release", "for one at 2 sites the factor is"),
    "shared noise": ("Federated", "One release", "2 sites share the noise"),
    "two cohorts": ("Federated", "One release", "2 rounds about different people are merged"),
    "with an earlier one": ("Central", "Many releases", "earlier releases on the same rows (hush"),
    "ranges that were paid for": ("Central", "Many releases", "releases on the same rows (ranges "),
}


@pytest.mark.parametrize("kind", STATED)
def test_the_draft_states_what_the_ledger_does(kind):
    deployment = entry(MERGED[kind]())["deployment"]
    model = deployment["deployment_model"]
    *names, words = STATED[kind]
    assert [model["model_name"], model["release_type"]] == names
    assert words in model["model_name_details"]
    assert words in deployment["accounting"]["composition"]
    paid = "through earlier private releases" in deployment["dp_variant"]["data_domain"]
    assert paid == (kind == "ranges that were paid for")


def test_the_registry_says_that_all_periods_are_paid():
    plan = Plan.draw(COLUMNS, epsilon=1.0, expected_rows=2_000, horizon=Horizon.of(6, 2, 3))
    site = Periods(plan, epsilon=1.0)
    increments = [site.release(Sketch.zero(plan)) for _ in range(3)]
    deployment = entry(decoded(increments, window=2))["deployment"]
    loss, model = deployment["privacy_loss"], deployment["deployment_model"]
    assert loss["privacy_unit"] == "One person, with at most 1 record in each of 2 periods"
    assert model["data_source_type"] == "Dynamic"
    assert model["release_type"] == "Many releases"
    assert "the files of all 6 periods show together" in deployment["accounting"]["composition"]


def test_nothing_of_rows_and_no_name_of_a_column_is_in_it():
    """Other rows under the same terms give the same draft, but for the ids of the release."""
    drafts = []
    for age, rows in ((20.0, 100), (90.0, 5000)):
        one = release(age, rows)
        text = json.dumps(entry(one))
        assert not any(name in text for name in ("hidden_name", "secret", "ward"))
        drafts.append(text.replace(one.release_id, ""))
    assert drafts[0] == drafts[1]


def test_the_command_writes_it(tmp_path, capsys):
    from hushtable.cli import main

    release().save(tmp_path / "r.hush")
    out = tmp_path / "entry.json"
    assert main(["inspect", str(tmp_path / "r.hush"), "--registry", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    draft = json.loads(out.read_text())
    assert facts["registry"] == str(out)
    assert facts["registry_left_open"] == list(left_open(draft))
    assert main(["inspect", str(tmp_path / "r.hush"), "--registry", str(out)]) == 0
    assert "Search it for 'TO FILL IN:'" in capsys.readouterr().out


def test_only_a_release_has_an_entry(tmp_path, capsys):
    from hushtable.cli import main

    Plan.draw(COLUMNS, random_state=0).save(tmp_path / "p.hush")
    out = tmp_path / "entry.json"
    assert main(["inspect", str(tmp_path / "p.hush"), "--registry", str(out)]) == 2
    assert "p.hush is a plan: give a release" in capsys.readouterr().err
    assert not out.exists()
