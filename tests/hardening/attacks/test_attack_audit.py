"""Audits from outside: the package stands, and every mistake planted in it is found."""

import numpy as np
import pytest

from hushtable import Feature, Plan, Release, Schema, Sketch, load
from hushtable.cli import main
from hushtable.errors import PrivacyError
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Sensitivity
from hushtable_bench import outside
from hushtable_bench.outside import BROKEN, a_third_of_the_noise
from hushtable_bench.systems.audit import apart, audit_neighbours
from hushtable_bench.systems.bounds import judge_ratios

#: A correct release fails a test at this confidence once in ten million runs.
SURE = 1 - 1e-7
FAMILIES = ("ace", "hushtable", "lsh_itables", "rotated_rs_hash", "rs_hash")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (at % 2))
        for at, name in enumerate(outside.CASES)
    ],
)
def test_the_package_stands(name, tmp_path):
    """audit.py: one round, two rounds, replace-one, three rows, Laplace, masked, from files."""
    effort = 0.025 if "periods" in name else 0.1
    finding = outside.CASES[name].audit(tmp_path, confidence=SURE, effort=effort)
    print(finding.words())
    assert not finding.rejects, finding.words()


@pytest.mark.slow
@pytest.mark.parametrize("name", outside.CASES)
def test_a_third_of_the_noise_is_found(name, tmp_path):
    """audit.py, its control: a threefold mistake went unnoticed at 2,000 trials.

    A tenth to a half of the default run's trials is enough.
    """
    effort = 0.5 if "Laplace" in name else 0.25 if name == "one round" else 0.1
    effort = 0.025 if "periods" in name else effort
    with a_third_of_the_noise():
        finding = outside.CASES[name].audit(tmp_path, confidence=0.95, effort=effort)
    assert finding.rejects, finding.words()


@pytest.mark.slow
@pytest.mark.parametrize("mistake", BROKEN)
def test_every_planted_mistake_is_found(mistake, tmp_path):
    """audit.py: what it attacked and found to hold is shown to be seen where it does not."""
    name, plant = BROKEN[mistake]
    with plant():
        finding = outside.CASES[name].audit(tmp_path)
    assert finding.rejects, finding.words()
    assert finding.ideal < finding.epsilon


@pytest.mark.parametrize("planted", [False, True])
def test_the_command_line_is_audited_by_its_files(planted, tmp_path):
    """audit.py through ``hushtable sketch`` and ``hushtable release``: what a site really sends."""
    case = outside.CASES["three rows a person"]
    outside.tables_plan().save(tmp_path / "plan.hush")

    def publish(X, folder):
        header = ",".join(f"x{j}" for j in range(X.shape[1]))
        np.savetxt(folder / "rows.csv", X, "%.17g", ",", header=header, comments="")
        sketch, released = folder / "site.sketch.hush", folder / "site.hush"
        plan, rows = str(tmp_path / "plan.hush"), str(folder / "rows.csv")
        assert main(["sketch", rows, "--plan", plan, "-o", str(sketch), "--json"]) == 0
        terms = ["--epsilon", "4", "--rows-per-person", "3", "-o", str(released), "--json"]
        assert main(["release", str(sketch), *terms]) == 0
        sketch.unlink()
        release = load(released)
        released.unlink()
        return [release]

    if planted:
        with a_third_of_the_noise():
            finding = case.audit(tmp_path, confidence=0.95, effort=0.2, publish=publish)
    else:
        finding = case.audit(tmp_path, confidence=SURE, effort=0.2, publish=publish)
    assert finding.rejects == planted, finding.words()


@pytest.mark.parametrize("detector", FAMILIES)
def test_a_row_is_found_in_exact_counts_of_every_family(detector):
    """sens.py: the cells that an audit looks at are those that the row changes, in each family."""
    schema = Schema([Feature.numeric(f"x{j}", low=0, high=1) for j in range(4)])
    plan = Plan.draw(schema, detector=detector, random_state=1, n_tables=5)
    rng = np.random.default_rng(0)
    row = rng.random(4)
    changed = Sketch.from_data(plan, row[None]).counts
    assert changed.sum() == plan.family.n_histograms
    claim = {"epsilon": 1.0, "delta": 1e-6}
    ledger = Ledger(
        "discrete-gaussian",
        Sensitivity(plan.family.n_histograms),
        1e-6,
        (Share("0" * 64, 10.0, "none"),),
    )

    def exact(X):
        return Release(plan, Sketch.from_data(plan, X).counts, ledger)

    finding = audit_neighbours(exact, rng.random((20, 4)), row, trials=40, **claim)
    assert finding.auc == 1.0
    assert finding.rejects


def test_rows_that_are_apart_share_no_cell():
    rows = outside._lone_rows()
    counts = Sketch.from_data(outside.tables_plan(), rows).counts
    assert len(rows) > 250
    assert counts.max() == 1
    np.testing.assert_array_equal(apart(outside.tables_plan(), np.vstack([rows, rows])), rows)


@pytest.mark.slow
def test_many_rows_tell_as_much_as_many_releases():
    """The noise of one release is as many trials as it has rows apart: the same area."""
    small = {"n_tables": 4, "n_cells": 64, "min_depth": 16, "max_depth": 16}
    plan = Plan.draw(outside.SCHEMA, random_state=0, **small)
    rows = apart(plan, np.random.default_rng(0).random((200, len(outside.SCHEMA))))[:20]
    areas = [
        audit_neighbours(
            lambda X: Sketch.from_data(plan, X).release(4.0),
            np.full((5, len(outside.SCHEMA)), 0.5), asked, epsilon=4.0, delta=1e-6, trials=trials,
        ).auc
        for asked, trials in ((rows, 30), (rows[:3], 200))
    ]  # fmt: skip
    # Each has a standard error of .017, and the best attack .711.
    assert areas == pytest.approx([0.711, 0.711], abs=5.3 * 0.017)


@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "discrete-laplace"])
def test_an_ideal_mechanism_shows_less_than_the_claim(mechanism):
    """And with more trials more of it: what an audit could see at best stands beside each."""
    delta = 1e-6 if mechanism == "discrete-gaussian" else 0.0
    shown = []
    for trials in (100, 1000, 10_000, 100_000):
        nothing = (np.zeros(trials), np.zeros(trials))
        finding = judge_ratios(
            "none", [nothing], mechanism, np.ones(4, np.int64),
            epsilon=2.0, delta=delta, confidence=0.95,
        )  # fmt: skip
        assert not finding.rejects
        shown.append(finding.ideal)
    assert shown == sorted(shown)
    assert shown[0] < 1.0
    assert 1.4 < shown[-1] < 2.0


def test_nothing_stays_broken(tmp_path):
    """A planted mistake is gone with its block, also where the block fails."""
    sketch = Sketch.from_data(outside.tables_plan(), outside._lone_rows())
    right = sketch.release(1.0).ledger
    for _, plant in outside.MISTAKES.values():
        with pytest.raises(PrivacyError, match="needs a number above 0"), plant():
            sketch.release(-1.0)
    again = sketch.release(1.0).ledger
    assert (again.noise_sd, again.epsilon) == (right.noise_sd, right.epsilon)
    spread = (sketch.release(1.0).counts - sketch.counts).std()
    # Of 4,096 cells: a standard deviation is known to 1.1%.
    assert spread == pytest.approx(right.noise_sd, rel=0.06)


def test_targets_and_table_say_what_was_found(tmp_path):
    standing = outside.CASES["one round"].audit(tmp_path, effort=0.05)
    with a_third_of_the_noise():
        broken = outside.CASES["three rows a person"].audit(tmp_path, effort=0.5)
    found = [("one round", standing), ("planted", broken)]
    assert [target.met for target in outside.targets(found)] == [True, True]
    swapped = [("planted", standing), ("one round", broken)]
    assert [target.met for target in outside.targets(swapped)] == [False, False]
    assert "\n".join(map(str, outside.page(found))).count("rejected") == 1
