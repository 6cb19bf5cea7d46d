"""Totals of tables, opened under masks: anyone who counts more rows than it may is named."""

from functools import partial

import numpy as np
import pytest

from hushtable import Plan, Sketch
from hushtable.errors import FileError, PlanError, RoundError
from hushtable_federation import Round, SecureSum
from hushtable_federation.describe import officer_words
from hushtable_federation.online import totals
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.messages import Message
from hushtable_federation.reply import Reply
from hushtable_federation.terms import Terms, price
from rehearsal import Rehearsal

MOST = 250


@pytest.fixture
def rehearse(tmp_path):
    """Return what plays a round of five sites, of which two may be away."""
    made = []

    def play(rows=None, gone=(), change=None, least=4):
        names = [f"s{i}" for i in range(5)]
        folder = tmp_path / str(len(made))
        folder.mkdir()
        here = Rehearsal(names, folder, least=least, max_rows=MOST)
        made.append(here)
        for name, n in (rows or {}).items():
            here.sketches[name] = Sketch.from_data(
                here.round.plan, np.full((n, 2), 4.5), allow_empty=True
            )
        sites = {name: here.site(name) for name in names}
        away = set()

        def answer(name, request):
            step = Message.read(request, here.lead.card).step
            away.update({name} & {one for one, when in gone if when == step})
            if name in away:
                return None
            given = sites[name].answer(request)
            return given if change is None else change(here, step, name, given)

        memory = Memory({name: partial(answer, name) for name in names})
        return here, SecureSum(here.round, here.lead, memory)

    yield play
    for one in made:
        one.close()


def check_sum(here, result):
    sent = [here.books[name].answer(here.round.round_id).sent for name in result.seal.submissions]
    np.testing.assert_array_equal(result.counts, sum(sent))


def test_what_an_officer_signs_says_that_the_number_can_be_read(tmp_path):
    here = Rehearsal(["a", "b"], tmp_path, least=2, max_rows=MOST)
    said = " ".join(officer_words(here.round))
    here.close()
    assert "but its approximate number of rows becomes readable" in said


def test_honest_sites_of_any_size_pass(rehearse):
    here, secure_sum = rehearse({"s0": 1, "s1": MOST, "s2": 40})
    check_sum(here, secure_sum.run())
    assert secure_sum.found_out == {}


def test_honest_sites_pass_with_some_away(rehearse):
    here, secure_sum = rehearse(gone=[("s0", "masked"), ("s1", "unmask")], least=3)
    check_sum(here, secure_sum.run())
    assert secure_sum.found_out == {}


@pytest.mark.parametrize("gone", [(), (("s4", "masked"),)])
def test_invented_rows_are_found_and_their_site_is_named(rehearse, gone):
    _, secure_sum = rehearse({"s2": 20 * MOST}, gone)
    with pytest.raises(RoundError, match=r"s2 counted about [45],[0-9]{3} rows, and the round"):
        secure_sum.run()
    assert set(secure_sum.found_out) == {"s2"}


def test_numbers_that_are_no_counts_are_found(rehearse, monkeypatch):
    before = Reply.counted

    def invented(self, sketch, **options):
        counts = before(self, sketch, **options)
        return counts + (np.arange(len(counts)) % 1000 if self.keys.card.name == "s3" else 0)

    monkeypatch.setattr(Reply, "counted", invented)
    _, secure_sum = rehearse()
    with pytest.raises(RoundError, match="s3 sent tables that count different numbers of rows"):
        secure_sum.run()
    assert set(secure_sum.found_out) == {"s3"}


def test_who_is_gone_may_have_been_made_to_look_so(rehearse):
    _, secure_sum = rehearse({"s2": 20 * MOST}, [("s2", "unmask")])
    with pytest.raises(
        RoundError, match=r"s2 counted about .* or one of those that answered stated"
    ):
        secure_sum.run()
    assert secure_sum.found_out == {}  # no one can tell


# --- wrong totals of masks ------------------------------------------------------------------------


def said_by(liar, lie):
    """Return what has a site add ``lie`` to what it says of its masks, by place of the other."""

    def change(here, step, name, given):
        if (step, name) != ("unmask", liar):
            return given
        said = Message.read(given, here.keys[name].card)
        arrays = said.arrays | {totals.NAME: said.arrays[totals.NAME] + lie}
        return Message.make(here.round, step, here.keys[name], said.body, arrays).content

    return change


@pytest.mark.parametrize("victim", range(4))
@pytest.mark.parametrize("lie", [5, 10**6])
def test_one_liar_neither_stops_a_round_nor_has_others_blamed(rehearse, victim, lie):
    """one_liar_max_rows.py: one wrong total, and no one had a result."""
    wrong = np.zeros((5, 10), np.uint64)
    wrong[victim] = lie
    here, secure_sum = rehearse(change=said_by("s4", wrong))
    check_sum(here, secure_sum.run())
    named = {"s4": "stated wrong totals of its masks"} if lie > 100 else {}
    assert secure_sum.found_out == named


@pytest.fixture(scope="module")
def opening(tmp_path_factory):
    """Return what `Opened.of` is given in a round, by how many rows sites have and who is gone."""
    made = {}

    def given(rows=(), gone=(), least=4):
        key = (tuple(rows), tuple(gone), least)
        if key not in made:
            here = Rehearsal(NAMES, tmp_path_factory.mktemp("opening"), least=least, max_rows=MOST)
            for name, n in rows:
                here.sketches[name] = Sketch.from_data(
                    here.round.plan, np.full((n, 2), 4.5), allow_empty=True
                )
            answers = {name: here.site(name).answer for name in NAMES}
            silent = {name: lambda request: None for name in gone}

            def unmask_alone(name, request, answers=answers, silent=silent):
                step = Message.read(request, here.lead.card).step
                return (silent if step == "unmask" else {}).get(name, answers[name])(request)

            memory = Memory({name: partial(unmask_alone, name) for name in NAMES})
            secure_sum = SecureSum(here.round, here.lead, memory)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    totals.OpenedTotals, "of", lambda *arguments: made.update({key: arguments})
                )
                with pytest.raises(AttributeError):
                    secure_sum.run()  # the arguments are all that is wanted of it
            here.close()
        round_, *others, said = made[key]
        return round_, *others, {name: words.copy() for name, words in said.items()}

    return given


NAMES = [f"s{i}" for i in range(5)]
BIG = 2**64
#: What a liar adds to the totals of its mask with another site, by table.
LIES = {
    "one row": lambda rng: np.full(10, 1),
    "a few rows": lambda rng: np.full(10, 5),
    "a few rows fewer": lambda rng: np.full(10, -5),
    "so many rows that it has none": lambda rng: np.full(10, 200),
    "so many that the other has none": lambda rng: np.full(10, -200),
    "a million rows": lambda rng: np.full(10, 10**6),
    "one table alone": lambda rng: np.eye(1, 10, int(rng.integers(10)), dtype=int)[0] * 10**4,
    "tables by chance": lambda rng: rng.integers(-300, 300, 10),
    "anything": lambda rng: rng.integers(0, BIG, 10, dtype=np.uint64),
    "a table by half of all": lambda rng: np.eye(1, 10, 3, dtype=np.uint64)[0] * np.uint64(2**63),
}


def add(said, liar, other, lie):
    said[liar][NAMES.index(other)] += np.asarray(lie).astype(np.uint64)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("gone", [(), ("s1",), ("s1", "s2")])
def test_no_lie_of_one_stops_a_round_or_has_an_honest_site_named(opening, lie, gone):
    """All liars and victims, one or several at a time; with sites that are silent by then."""
    rng = np.random.default_rng(len(lie))
    rows = [("s0", 0), ("s1", MOST - 5), ("s2", 3), ("s3", 60)]
    for liar in (name for name in NAMES if name not in gone):
        others = [name for name in NAMES if name != liar]
        for victims in [[one] for one in others] + [others, others[:2], others[1:]]:
            given = opening(rows, gone, least=3)
            for victim in victims:
                add(given[-1], liar, victim, LIES[lie](rng))
            found = totals.OpenedTotals.of(*given)
            assert found.stops == {}, (liar, victims)
            assert set(found.liars) <= {liar}, victims


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("together", [True, False])
def test_no_lies_of_two_have_an_honest_site_named(opening, seed, together):
    """Of any sizes, against one or all, and where the two lie about each other, too."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        given = opening([("s0", 0), ("s1", MOST - 5), ("s2", 3)], least=3)
        two = rng.choice(NAMES, 2, replace=False)
        for liar in two:
            lie = LIES[str(rng.choice(list(LIES)))]
            for victim in rng.choice(NAMES, rng.integers(1, 5), replace=False):
                if victim != liar and (together or victim not in two):
                    add(given[-1], liar, victim, lie(rng))
        found = totals.OpenedTotals.of(*given)
        assert set(found.liars) <= set(two)
        assert found.stops == {}


def test_whoever_says_wrong_totals_to_hide_its_rows_is_named_or_the_group_is(opening):
    """With its excess put down to others, by as much as only a few of them could have."""
    excess = 20 * MOST
    for shares, named, which in (([1.0], set(), "s0 and s4"), ([0.25] * 4, {"s4"}, "s0 and s1")):
        given = opening([("s4", MOST + excess)])
        for share, other in zip(shares, NAMES, strict=False):
            add(given[-1], "s4", other, np.full(10, -int(excess * share)))
        found = totals.OpenedTotals.of(*given)
        assert set(found.liars) == named
        ((group, why),) = found.stops.items()
        assert group.startswith(which)
        assert "together, because it is unknown which of them, counted about" in f"{group} {why}"


def test_two_who_agree_on_wrong_totals_hide_what_both_may_count_and_no_more(opening):
    given = opening([("s3", 2 * MOST - 20), ("s4", 0)])
    for liar, other, sign in (("s3", "s4", 1), ("s4", "s3", 1)):
        add(given[-1], liar, other, np.full(10, sign * (MOST - 10)))
    assert totals.OpenedTotals.of(*given).stops == {}  # what threats.md says cannot be known
    given = opening([("s3", 20 * MOST), ("s4", 0)])
    for liar, other in (("s3", "s4"), ("s4", "s3")):
        add(given[-1], liar, other, np.full(10, 19 * MOST))
    found = totals.OpenedTotals.of(*given)
    assert set(found.stops) == set(found.liars) == {"s4"}


def test_the_price_is_that_of_the_sum_and_all_totals_together():
    """By the covariance of what is seen: of each part's total, and of the sum of all parts."""
    for parts, cells in ((4, 16), (19, 64), (7, 128)):
        seen = np.zeros((parts + cells, parts * cells))
        for i in range(parts):
            mine = slice(i * cells, (i + 1) * cells)
            seen[i, mine] = 1.0
            seen[parts:, mine] = np.eye(cells)
        shift = np.zeros(parts * cells)
        shift[0] = 1.0  # a row of the first part
        moved, covariance = seen @ shift, seen @ seen.T
        together = moved @ np.linalg.pinv(covariance) @ moved
        assert together * parts == pytest.approx(price(parts, [cells]))


def test_parts_of_the_noise_pay(rehearse):
    here, _ = rehearse()
    terms = here.round.terms
    parts = terms.k_min + terms.opened
    assert parts == 3
    assert terms.k_min * price(parts, np.diff(here.round.plan.family.offsets).tolist()) <= parts
    assert terms.colluders == 0
    assert "opened" in terms.to_dict()
    assert Terms.from_dict(terms.to_dict()) == terms


def test_a_round_that_does_not_pay_is_refused(rehearse):
    here, _ = rehearse()
    terms = here.round.terms
    free = Terms.from_dict({**terms.to_dict(), "k_min": terms.k_min + terms.opened, "opened": 0})
    with pytest.raises(PlanError, match="do not pay for opening"):
        free.check_opened(np.diff(here.round.plan.family.offsets).tolist())
    # One part, which no one else's hides, is seen as it is in any case.
    assert Terms.agreed(2, epsilon=1.0, max_rows=10, cells=(64,)).opened == 0


def test_plans_without_such_totals(rehearse):
    here, _ = rehearse()
    schema = here.round.plan.schema
    horizon = Plan.draw(schema, epsilon=1.0, expected_rows=900, horizon=3, random_state=0)
    cards = [keys.card for keys in here.keys.values()]
    asked = {"epsilon": 1.0, "deadline": here.round.deadline, "max_rows": 10}
    with pytest.raises(FileError, match="max_rows is only for tables that count each row once"):
        Round.open(horizon, cards, here.lead, **asked)
    with pytest.raises(FileError, match="is checked under masks"):
        Round.open(here.round.plan, cards, here.lead, masked=False, **asked)
