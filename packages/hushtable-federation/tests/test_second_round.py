"""The second round of several sites: a gate, and counts of the dense rows, exact and private."""

import dataclasses
import json

import jsonschema
import numpy as np
import pytest

from hushtable import Feature, HushTable, LocalModel, Plan, Release, Schema, Sketch, files
from hushtable.counts import rounds
from hushtable.counts.release import check_plan
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.families.histograms import noised_otsu_cell
from hushtable.privacy import Design
from hushtable.scores import Explainer, Scorer
from places import DOCS

SCHEMA = Schema([Feature.numeric(name, low=0, high=1) for name in "abc"])
TERMS = {"epsilon": 3.0, "expected_rows": 6_000}
TWICE = TERMS | {"passes": 2}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    rows = rng.normal(0.5, 0.06, (6_000, 3))
    rows[:200] = rng.random((200, 3))
    return rng.permutation(rows.clip(0, 1))


@pytest.fixture(scope="module")
def private(X):
    """Every step of a private model in four rounds at three sites, merged; and the last plan."""
    pytest.importorskip("opendp")
    parts = np.array_split(X, 3)

    def merged(plan):
        north, south, east = (Sketch.from_data(plan, part).release(3.0) for part in parts)
        return north + south + east

    marginals = merged(Plan.marginals(SCHEMA, **TWICE))
    first = merged(Plan.draw(SCHEMA, marginals=marginals, random_state=1, **TWICE))
    gate = merged(rounds.gate(first))
    plan = rounds.second_pass(first, gate)
    return {"marginals": marginals, "first": first, "gate": gate, "second": merged(plan)}


def exact(X, **parameters):
    plan = Plan.draw(SCHEMA, random_state=1, n_tables=20, **parameters)
    return Sketch.from_data(plan, X)


def second(first, X):
    return rounds.second_pass(first, Sketch.from_data(rounds.gate(first), X))


# --- three sites are one --------------------------------------------------------------------------


def test_sites_count_the_same_rows_under_a_private_gate(private, X, tmp_path):
    plan = private["second"].plan
    whole = Sketch.from_data(plan, X)
    parts = [Sketch.from_data(plan, part) for part in np.array_split(X, 3)]
    assert parts[0] + parts[1] + parts[2] == whole
    scores = Scorer(private["first"]).score(X)
    gate = rounds.gate(private["first"]).family
    assert whole.n_rows == (gate.cells(scores) >= plan.gate_cell).sum() < len(X)
    plan.save(tmp_path / "plan.hush")
    private["second"].save(tmp_path / "all.hush")
    read = Release.from_file(files.read(tmp_path / "all.hush"))
    assert read.plan.plan_id == plan.plan_id
    assert (Scorer(read).score(X[:50]) == Scorer(private["second"]).score(X[:50])).all()


def test_files_of_second_rounds_keep_the_published_schema(private, X, tmp_path):
    path = DOCS / "hush-manifest-1.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    for name, plan in {"exact": second(exact(X), X), "private": private["second"].plan}.items():
        plan.save(tmp_path / f"{name}.hush")
        manifest = files.read(tmp_path / f"{name}.hush").manifest
        validator.validate(manifest)
    for key, wrong in (("first_noise_sd", 0), ("gate_cell", 128), ("gate_cell", 1.5)):
        broken = manifest | {"plan": manifest["plan"] | {key: wrong}}
        assert list(validator.iter_errors(broken)), key
    for key in ("gate_cell", "behind"):
        less = {name: value for name, value in manifest["plan"].items() if name != key}
        assert list(validator.iter_errors(manifest | {"plan": less})), key


# --- the budget -----------------------------------------------------------------------------------


def test_all_rounds_together_cost_the_total(private):
    ledger = private["second"].ledger
    assert 2.999 < ledger.epsilon <= 3.0
    assert [spent.what for spent in ledger.behind_plan] == ["marginals", "hushtable", "gate"]
    total = ledger.cost.rho
    shares = [spent.cost.rho / total for spent in ledger.behind_plan]
    assert shares == pytest.approx([0.1, 0.45, 0.045], rel=1e-3)
    assert not private["second"].plan.data_dependent
    assert private["gate"].plan.share_of_budget == pytest.approx(0.045)
    assert private["second"].plan.share_of_budget is None


@pytest.mark.parametrize("marginals", [False, True])
def test_shares_follow_from_the_design_and_the_rounds_before(private, marginals):
    counts = private["marginals"] if marginals else None
    once = Plan.draw(SCHEMA, marginals=counts, random_state=1, **TERMS)
    twice = Plan.draw(SCHEMA, marginals=counts, random_state=1, **TWICE)
    assert once.share_of_budget is None
    assert twice.share_of_budget == pytest.approx(0.45 if marginals else 0.5)
    assert "passes" not in once.to_dict()["design"]
    assert twice.to_dict()["design"]["passes"] == 2


def test_without_two_passes_nothing_is_left_for_a_gate(X):
    pytest.importorskip("opendp")
    plan = Plan.draw(SCHEMA, random_state=1, **TERMS)
    sketch = Sketch.from_data(plan, X)
    gate = Sketch.from_data(rounds.gate(sketch.release(3.0)), X)
    with pytest.raises(PrivacyError, match=r"exhausted.*passes=2.*share=0\.5"):
        gate.release(3.0)
    first = sketch.release(3.0, share=0.5)
    gate = Sketch.from_data(rounds.gate(first), X).release(3.0)
    last = Sketch.from_data(rounds.second_pass(first, gate), X).release(3.0)
    assert 2.999 < last.ledger.epsilon <= 3.0


def test_two_passes_are_drawn_only_where_they_pay():
    assert Design(1.0, 1e-6, 10_000).pays_second_pass()
    assert not Design(1.0, 1e-6, 8_000).pays_second_pass()
    for make in (Plan.draw, Plan.marginals):
        with pytest.raises(PrivacyError, match=r"a second pass is not worthwhile.*with one pass"):
            make(SCHEMA, epsilon=1.0, expected_rows=8_000, passes=2)
        with pytest.raises(UsageError, match="give epsilon"):
            make(SCHEMA, passes=2)
        with pytest.raises(UsageError, match="passes=3"):
            make(SCHEMA, **TERMS, passes=3)
    with pytest.raises(UsageError, match=r"passes=2 with novelty=True.*one pass"):
        Plan.draw(SCHEMA, **TWICE, novelty=True)
    with pytest.raises(UsageError, match="one layout"):
        Plan.draw(SCHEMA, detector="lsh_itables", **TWICE)
    with pytest.raises(PlanError, match="design"):
        Design.from_dict(Design(1.0, 1e-6, 9_999).to_dict() | {"passes": 3})


# --- scores -----------------------------------------------------------------------------------


def test_the_score_adds_both_counts_and_finds_the_outliers(private, X):
    first, last = private["first"], private["second"]
    values = [np.arcsinh(one.counts / (2 * one.noise_sd)) / np.log(2) for one in (first, last)]
    assert Scorer(last).values == pytest.approx(values[0] + values[1], abs=2**-19)
    scores, apart = Scorer(last).score(X), np.abs(X - 0.5).max(axis=1) > 0.3
    assert apart.mean() < 0.05
    assert scores[apart].max() < np.median(scores)


def test_the_mean_and_the_threshold_hold_for_the_rows_counted(private, X):
    scorer = Scorer(private["second"])
    scores = scorer.score(X)
    # Over 150 runs of the noise, this difference had a standard deviation of .04; the one without
    # the correction, below, was .375 on average.
    assert scorer.histogram_means().mean() == pytest.approx(scores.mean(), abs=0.2)
    assert (scorer.row_counts == private["first"].counts).all()
    assert 0.01 < (scores < scorer.auto_offset()).mean() < 0.1
    # The correction matters: without it, noise in the first counts is taken for rows.
    counted = private["first"].counts
    plain = (counted * scorer.values).sum() / counted.sum()
    assert abs(plain - scores.mean()) > 2 * abs(scorer.histogram_means().mean() - scores.mean())
    detector = HushTable.from_counts(private["second"])
    assert detector.passes == 2
    assert detector.offset_ == scorer.auto_offset()
    shares = Explainer(scorer).explain(X[:5])
    typical = scorer.histogram_means().mean()
    assert shares.sum(axis=1) == pytest.approx(typical - scores[:5])
    assert np.isfinite(scorer.score_with_errors(X[:5])).all()


def test_exact_counts_behind_a_private_gate_score_at_their_site(private, X):
    plan = private["second"].plan
    sketch = Sketch.from_data(plan, X)
    scorer = Scorer(sketch)
    scores = scorer.score(X)
    assert 0.01 < (scores < scorer.auto_offset()).mean() < 0.1
    assert sketch.first_pass() is sketch  # the first counts are no sketch: they have noise
    with pytest.raises(UsageError, match="no rows were counted"):
        Scorer(Sketch.zero(plan))


def test_otsu_under_noise():
    clear = np.zeros(32, np.int64)
    clear[[5, 6, 25, 26]] = 300, 500, 4_000, 4_000
    cell = noised_otsu_cell(clear, 8_800)
    assert 7 <= cell <= 25
    rng = np.random.default_rng(0)
    noised = clear + rng.normal(0, 20, 32).round().astype(np.int64)
    assert 7 <= noised_otsu_cell(noised, round(noised.sum())) <= 25
    alike = np.zeros(32, np.int64)
    alike[20] = 1_000
    assert noised_otsu_cell(alike, 1_000) == 0
    assert noised_otsu_cell(-alike, -1_000) in range(32)


# --- refusals -------------------------------------------------------------------------------------


def test_an_exact_gate_of_private_counts_is_refused(X, private):
    one = private["first"]
    with pytest.raises(PrivacyError, match=r"the gate's are exact.*release them too"):
        rounds.second_pass(one, Sketch.from_data(rounds.gate(one), X))


def test_no_second_pass_follows_what_is_none(X, private):
    rows = np.random.default_rng(0).random((60, 3))
    for counts, says in (
        (exact(rows, novelty=True), "for novelty detection"),
        (Sketch.from_data(Plan.marginals(SCHEMA), rows), "do not score rows"),
        (private["second"], "a third gains nothing"),
    ):
        with pytest.raises(UsageError, match=says):
            rounds.gate(counts)
    with pytest.raises(PlanError, match="counted no rows"):
        rounds.gate(Sketch.zero(exact(rows).plan))


def test_exact_passes_go_on_from_ranges_that_were_released(X, private):
    paid = private["marginals"].spent()
    schema = dataclasses.replace(SCHEMA, paid=paid)
    first = Sketch.from_data(Plan.draw(schema, random_state=1, n_tables=5), X)
    assert rounds.gate(first).behind == second(first, X).behind == paid


# --- nothing leaves that depends on rows but through noise ---------------------------------------


def test_nothing_is_released_behind_an_exact_gate(X):
    first = exact(X)
    gate = Sketch.from_data(rounds.gate(first), X)
    for sketch in (gate, Sketch.from_data(rounds.second_pass(first, gate), X)):
        with pytest.raises(PrivacyError, match="depends on exact counts"):
            sketch.release(1.0)
        with pytest.raises(PrivacyError, match="depends on exact counts"):
            check_plan(sketch.plan)


def test_a_plan_cannot_deny_its_first_counts(X, private):
    plan = second(exact(X), X)
    with pytest.raises(PlanError, match="states that it depends on no data"):
        dataclasses.replace(plan, data_dependent=False)
    last = private["second"].plan
    for behind in ((), last.behind[:1], last.behind[:2]):
        with pytest.raises(PlanError, match="leaves out the releases"):
            dataclasses.replace(last, behind=behind)
    with pytest.raises(PlanError, match=r"states that it depends on no data|do not fit"):
        dataclasses.replace(last, first_noise_sd=None)
    for noise in (0.0, -1.0, 1e-9, np.nan, np.inf):
        with pytest.raises(PlanError, match="first_noise_sd"):
            dataclasses.replace(last, first_noise_sd=noise)
    for cell in (-1, 32, None):
        with pytest.raises(PlanError, match=r"gate_cell|first_noise_sd"):
            dataclasses.replace(last, gate_cell=cell)


def test_no_shared_plan_depends_on_a_local_model(X):
    pytest.importorskip("opendp")
    plan = Plan.draw(SCHEMA, random_state=1, **TWICE)
    mine, others = (Sketch.from_data(plan, part) for part in np.array_split(X, 2))
    sent = mine.release(3.0)
    local = LocalModel.of(sent + others.release(3.0), sent.release_id, sent.counts, mine.counts)
    with pytest.raises(PrivacyError, match="a local model holds exact counts"):
        rounds.gate(local)
    assert rounds.ranks(local).data_dependent  # and nothing can be released under it


def test_a_local_model_of_a_second_round_scores(private, X):
    plan, parts = private["second"].plan, np.array_split(X, 3)
    mine = Sketch.from_data(plan, parts[0])
    sent, other = (Sketch.from_data(plan, part).release(3.0) for part in parts[:2])
    local = LocalModel.of(sent + other, sent.release_id, sent.counts, mine.counts)
    assert local.noise_sd < (sent + other).noise_sd
    assert np.isfinite(Scorer(local).score(parts[0])).all()
    assert np.isfinite(Scorer(local).auto_offset())
