"""Attacks on what is released, and on what is refused: neither may tell how many rows there are."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from cli_helpers import hold
from hushtable import Feature, LSHiTables, Plan, Release, Schema, Sketch, files, load
from hushtable.errors import DataError, FileError, HushTableError, PrivacyError
from hushtable_federation.policy import Policy, write_policy
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round
from round_helpers import SCHEMA, T0, Consortium, send

ONE = Schema([Feature.numeric("x", low=0, high=1)])
MECHANISMS = ("discrete-gaussian", "discrete-laplace", "laplace-per-table")


@pytest.fixture
def those(tmp_path):
    one = Consortium(tmp_path, 3)
    yield one
    one.close()


def outcome(ask):
    """What an observer sees before any noise: released, or refused in which words."""
    try:
        ask()
    except HushTableError as error:
        return type(error).__name__, str(error)
    return "released", ""


# --- whether there is a release ------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-3, 1.0001e-5, 1e-5, 1e-6])
def test_neighbours_are_released_or_refused_alike(rng, delta):
    """v3: a delta of 1/1,000 released 1,000 rows, refused 1,001, and said how many there were."""
    plan = Plan.draw(ONE, random_state=0, n_tables=4)
    X = rng.random((1001, 1))
    few, more = (
        outcome(lambda n=n: Sketch.from_data(plan, X[:n]).release(0.1, delta)) for n in (1000, 1001)
    )
    assert few == more
    assert (few[0] == "released") == (delta <= 1e-5)


@pytest.mark.parametrize(("expected_rows", "said"), [(1000, "released"), (1001, "PrivacyError")])
def test_the_most_of_delta_comes_from_the_rows_expected(rng, expected_rows, said):
    """v3: what a plan was laid out for is public; what was counted is not."""
    plan = Plan.draw(ONE, random_state=0, epsilon=1.0, expected_rows=expected_rows, n_tables=4)
    for n in (0, 1, 999, 1000, 1001, 3000):
        sketch = Sketch.from_data(plan, rng.random((n, 1)), allow_empty=True)
        assert outcome(lambda sketch=sketch: sketch.release(1.0, 1e-3))[0] == said


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rows_per_person", [1, 3])
@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-6])
@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 30.0])
def test_no_refusal_tells_neighbours_apart(rng, mechanism, rows_per_person, delta, epsilon):
    """v3, widened: whatever the terms are, a person more or less changes neither yes nor words."""
    plan = Plan.draw(ONE, random_state=0, n_tables=2, n_cells=4, min_depth=1, max_depth=2)
    X = rng.random((1001, 1))
    terms = {"delta": delta, "mechanism": mechanism, "rows_per_person": rows_per_person}
    said = {
        outcome(
            lambda n=n: Sketch.from_data(plan, X[:n], allow_empty=True).release(epsilon, **terms)
        )
        for n in (0, 1, 2, 3, 1000, 1001)
    }
    assert len(said) == 1


def of_persons(plan, n, first=0, g=1):
    """Rows of ``n`` persons, of whom ``g`` rows each are counted."""
    rows = {"x": np.linspace(0, 1, n), "pid": [f"p{first + i}" for i in range(n)]}
    options = {"person": "pid", "rows_per_person": g, "allow_empty": True}
    return Sketch.from_data(plan, pa.table(rows), **options)


def reloaded(sketch, folder):
    sketch.save(folder / "s.hush")
    return load(folder / "s.hush")


SUMS = {
    "the empty one second": lambda march, april, folder: march + april,
    "the empty one first": lambda march, april, folder: april + march,
    "of three": lambda march, april, folder: march + april + of_persons(march.plan, 9, 50),
    "from zero": lambda march, april, folder: sum([april, march], start=Sketch.zero(march.plan)),
    "read from a file": lambda march, april, folder: march + reloaded(april, folder),
    "taken away again": lambda march, april, folder: march + april - of_persons(march.plan, 0),
}


@pytest.mark.parametrize("add", SUMS.values(), ids=SUMS)
def test_no_scale_of_noise_tells_whether_a_sketch_is_empty(add, tmp_path):
    """The bound of a sketch without rows was left out of a sum: its noise was half as large."""
    plan = Plan.draw(ONE, random_state=0, n_tables=4)
    march = of_persons(plan, 30)
    found = [
        add(march, of_persons(plan, n, first=9000), tmp_path).release(1.0).ledger for n in (0, 1)
    ]
    units = {(one.sensitivity.rows_per_person, one.shares[0].scale) for one in found}
    assert len(units) == 1


def test_zero_is_the_identity_of_the_bound_by_its_type_alone(tmp_path):
    plan = Plan.draw(ONE, random_state=0, n_tables=4)
    zero = Sketch.zero(plan)
    assert zero.rows_per_person == reloaded(zero, tmp_path).rows_per_person == 0
    for other in (zero, of_persons(plan, 5, g=3), of_persons(plan, 0, g=3)):
        assert (zero + other).rows_per_person == other.rows_per_person
    plain = Sketch.from_data(plan, np.zeros((0, 1)), allow_empty=True)
    assert (zero + plain).rows_per_person is None
    assert zero.release(1.0).ledger.sensitivity.rows_per_person == 1


def test_a_file_of_rows_cannot_say_that_no_row_of_a_person_was_counted(tmp_path):
    """It would take the bound of whatever it is added to."""
    plan = Plan.draw(ONE, random_state=0, n_tables=4)
    forged = replace(of_persons(plan, 5), rows_per_person=0)
    with pytest.raises(FileError, match="rows_per_person=0: needs a whole number, 1 or more"):
        reloaded(forged, tmp_path)


def test_a_round_refuses_such_a_delta_before_any_site_counts(those):
    """v3: the coordinator chose delta, and saw which site had more than 1/delta rows."""
    with pytest.raises(PrivacyError, match=r"delta=0\.001 is above 1e-05"):
        those.open(delta=1e-3)


def test_a_round_made_by_another_tool_is_refused_on_reading(those):
    """v3: a coordinator is not bound to sign with this library."""
    round_ = those.open()
    read = files.unpack(round_.content, "round")
    apart = ("protocol", "kind", "digest", "signature", "arrays", "writer")
    entries = {key: value for key, value in read.manifest.items() if key not in apart}
    entries = json.loads(json.dumps(entries))
    entries["round"]["terms"]["delta"] = 1e-3
    content = files.pack("round", entries, read.arrays, those.lead.sign)
    with pytest.raises(FileError, match=r"delta=0\.001 is above 1e-05"):
        Round.from_bytes(content, "round.hush")


def test_a_round_answers_alike_at_a_thousand_rows_and_one_more(those, rng):
    """v3, in a round: the check of the site's own number of rows was in `Reply.answer`."""
    plan = Plan.draw(SCHEMA, random_state=0, epsilon=1.0, expected_rows=1000, n_tables=2)
    for n in (1000, 1001):
        round_ = those.open(plan=plan, delta=1e-3, title=str(n), epsilon=0.1)
        site = those.sites["s00"]
        reply = Reply(round_, site.keys, site.book, policy=Policy(delta=1e-3, persons=1), at=T0)
        assert send(reply, Sketch.from_data(plan, rng.normal(size=(n, 3))))


# --- no rows at all -------------------------------------------------------------------------------


def test_no_rows_are_released_like_any_others():
    """v3, at its end: no one and one person are neighbours, too."""
    plan = Plan.draw(ONE, random_state=0, n_tables=4)
    release = Sketch.zero(plan).release(1.0)
    assert release.ledger.epsilon <= 1.0
    assert release.counts.any()
    assert isinstance(release + Sketch.from_data(plan, [[0.5]]).release(1.0), Release)


@pytest.mark.parametrize("options", [{}, {"max_samples": 5}, {"sample_weight": []}])
def test_no_rows_are_counted_where_it_is_asked_for(options):
    """v3, at its end: by default an error, since an empty table mostly is a mistake."""
    plan = Plan.draw(ONE, random_state=0, n_tables=4)
    empty = np.empty((0, 1))
    with pytest.raises(DataError, match="no row"):
        Sketch.from_data(plan, empty, **options)
    counted = Sketch.from_data(plan, empty, allow_empty=True, **options)
    assert not counted.counts.any()
    assert not counted.tally.any()
    assert counted.largest_weight == 1


def test_no_rows_of_another_table_are_refused():
    """Empty or not, columns have to be the plan's."""
    plan = Plan.draw(ONE, random_state=0, n_tables=4)
    with pytest.raises(DataError, match="2 columns, but the plan has 1"):
        Sketch.from_data(plan, np.empty((0, 2)), allow_empty=True)


def test_a_site_without_rows_answers_a_round(tmp_path, rng):
    """v3, at its end: by its refusal, the coordinator learned that a site had no row."""
    those = Consortium(tmp_path, 2)
    those.plan.save(tmp_path / "plan.hush")
    round_ = those.open(deadline=T0.replace(year=2100), at=None)
    round_.save(tmp_path / "round.hush")
    those.lead.card.save(tmp_path / "lead.card")
    for site in those.sites.values():
        site.keys.card.save(tmp_path / f"{site.name}.card")
    for (name, site), n in zip(those.sites.items(), (0, 60), strict=True):
        site.keys.save(tmp_path / f"{name}.key")
        write_policy(tmp_path / f"{name}.policy.toml", name, 1.0, 1e-6, 1)
        site.book.close()
        rows = rng.normal(size=(n, 3))
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header="x0,x1,x2", comments="")
    those.lead.save(tmp_path / "lead.key")
    assert len(load(hold(tmp_path, "round.hush", *those.sites)).ledger.shares) == 2


# --- samples --------------------------------------------------------------------------------------


@pytest.fixture
def papers():
    """Plan of the paper's tables, of which each counts a sample."""
    features = [Feature.numeric(f"x{j}", low=0, high=1) for j in range(4)]
    schema = Schema(features, named=False)
    return Plan.draw(schema, detector="lsh_itables", random_state=0, n_tables=20)


@pytest.fixture
def rows(rng):
    return rng.random((1500, 4))


def test_a_row_more_redraws_every_seeded_sample(papers, rows):
    """v2: the ledger takes two cells a table to change; with a known seed, hundreds do."""
    more = np.vstack([rows, [[1.0] * 4]])
    few, many = (
        Sketch.from_data(papers, X, max_samples=500, random_state=7).counts for X in (rows, more)
    )
    assert np.abs(few - many).sum() > 10 * 2 * papers.family.n_tables


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("seed", [7, "generator", "global"])
def test_seeded_samples_are_not_released(papers, rows, mechanism, seed):
    """v2: claimed 2.0 and truly about 100; the likelihood ratio showed it in 70% of releases."""
    given = {"generator": np.random.default_rng(), "global": np.random.RandomState(3)}
    state = given.get(seed, seed)
    sketch = Sketch.from_data(papers, rows, max_samples=500, random_state=state)
    with pytest.raises(PrivacyError, match="samples"):
        sketch.release(0.01, mechanism=mechanism)
    with pytest.raises(PrivacyError, match="samples"):
        (sketch + Sketch.from_data(papers, rows)).release(0.01, mechanism=mechanism)
    with pytest.raises(PrivacyError, match="samples"):
        (Sketch.from_data(papers, rows) + sketch - sketch).release(0.01, mechanism=mechanism)


def test_the_refusal_says_what_to_do(papers, rows):
    sketch = Sketch.from_data(papers, rows, max_samples=500, random_state=7)
    with pytest.raises(PrivacyError, match=r"from a seed.*leave random_state out"):
        sketch.release(0.01, mechanism="laplace-per-table")


def test_fresh_samples_are_released_by_the_papers_mechanism(papers, rows, tmp_path):
    """v2: no one knows which rows are in a sample that the system's own entropy drew."""
    sketch = Sketch.from_data(papers, rows, max_samples=500)
    again = Sketch.from_data(papers, rows, max_samples=500)
    assert not np.array_equal(sketch.counts, again.counts)
    sketch.save(tmp_path / "s.hush")
    for one in (sketch, sketch + again, load(tmp_path / "s.hush")):
        ledger = one.release(0.01, mechanism="laplace-per-table").ledger
        assert ledger.epsilon == pytest.approx(2 * 20 * 0.01)
        with pytest.raises(PrivacyError, match="samples of fixed size"):
            one.release(1.0)


def test_a_file_keeps_what_the_samples_were_drawn_from(papers, rows, tmp_path):
    """v2, by way of a file: also one that does not say it."""
    path = tmp_path / "s.hush"
    Sketch.from_data(papers, rows, max_samples=500, random_state=7).save(path)
    assert load(path).seeded
    assert (load(path) + Sketch.from_data(papers, rows, max_samples=500)).seeded
    fresh = Sketch.from_data(papers, rows, max_samples=500)
    entries, arrays = fresh.entries()
    assert not fresh.seeded
    files.write(path, "sketch", entries, arrays)
    assert not load(path).seeded
    del entries["fresh_samples"]  # as files had it that were written before
    files.write(path, "sketch", entries, arrays)
    assert load(path).seeded
    with pytest.raises(PrivacyError, match="from a seed"):
        load(path).release(0.01, mechanism="laplace-per-table")
    for wrong in (1, "yes", None, []):
        files.write(path, "sketch", entries | {"fresh_samples": wrong}, arrays)
        with pytest.raises(FileError, match="fresh_samples"):
            load(path)


def test_all_rows_have_no_seed(papers, rows):
    assert not Sketch.from_data(papers, rows, random_state=7).seeded
    assert not Sketch.zero(papers).seeded


def test_a_round_takes_no_samples(those):
    """v2, in a round: seeded or not, a round adds Gaussian noise."""
    round_ = those.open()
    site = those.sites["s00"]
    for seed in (7, None):
        sketch = Sketch.from_data(those.plan, site.X, max_samples=20, random_state=seed)
        with pytest.raises(PrivacyError, match="samples"):
            send(Reply(round_, site.keys, site.book, at=T0), sketch)
    assert site.book.answers() == []


def test_a_detector_with_a_seed_is_not_released(papers, rows):
    """v2, by way of a detector: `random_state` draws its samples as well as its plan."""
    nothing = LSHiTables.from_counts(Sketch.from_data(papers, rows))
    for seed in (0, None):
        detector = LSHiTables.from_counts(nothing.sketch_)
        detector.set_params(random_state=seed, max_samples=500).partial_fit(rows)
        assert detector.sketch_.seeded == (seed is not None)


def test_a_seed_gives_the_same_model_again(rows):
    """What the seeds of samples are for stays as it was."""
    models = [LSHiTables(n_tables=5, random_state=3).fit(rows).sketch_ for _ in range(2)]
    assert models[0] == models[1]
    assert models[0].seeded
