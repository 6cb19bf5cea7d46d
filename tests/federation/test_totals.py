"""Totals of tables, opened under masks: whoever counts more rows than it may is named."""

from functools import partial

import numpy as np
import pytest

from hushtable import Plan, Sketch
from hushtable.errors import FileError, PlanError, RoundError
from hushtable.federation import Round, SecureSum
from hushtable.federation.online import totals
from hushtable.federation.online.memory import Memory
from hushtable.federation.online.messages import Message
from hushtable.federation.rehearsal import Rehearsal
from hushtable.federation.site import Reply
from hushtable.federation.terms import Terms, price
from hushtable.report.words import officer_words

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
            here.sketches[name] = Sketch.from_data(here.round.plan, np.full((n, 2), 4.5))
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
    said = " ".join(officer_words(here.round, here.round.plan))
    here.close()
    assert "No row and no score leaves; about how many rows a site has can be read" in said


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
    with pytest.raises(RoundError, match=r"s2 counted about .* or one of those who answered"):
        secure_sum.run()
    assert secure_sum.found_out == {}  # nobody can tell


def test_wrong_totals_of_masks_blame_nobody_alone(rehearse):
    def lie(here, step, name, given):
        if (step, name) != ("unmask", "s1"):
            return given
        said = Message.read(given, here.keys[name].card)
        wrong = said.arrays[totals.NAME] + np.uint64(10**6)
        arrays = said.arrays | {totals.NAME: wrong}
        return Message.make(here.round, step, here.keys[name], said.body, arrays).content

    _, secure_sum = rehearse(change=lie)
    with pytest.raises(RoundError, match="s0 or s1 says wrong totals of its masks"):
        secure_sum.run()
    assert secure_sum.found_out == {}


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
    assert terms.k_min * price(parts, here.round.layout.cells) <= parts
    assert terms.colluders == 0
    assert "opened" in terms.to_dict()
    assert Terms.from_dict(terms.to_dict()) == terms


def test_a_round_that_does_not_pay_is_refused(rehearse):
    here, _ = rehearse()
    terms = here.round.terms
    free = Terms.from_dict({**terms.to_dict(), "k_min": terms.k_min + terms.opened, "opened": 0})
    with pytest.raises(PlanError, match="do not pay for opening"):
        free.check_opened(here.round.layout.cells)
    # One part, which nobody else's hides, is seen as it is in any case.
    assert Terms.agreed(2, epsilon=1.0, max_rows=10, cells=(64,)).opened == 0


def test_plans_without_such_totals(rehearse):
    here, _ = rehearse()
    schema = here.round.plan.schema
    horizon = Plan.draw(schema, epsilon=1.0, expected_rows=900, horizon=3, random_state=0)
    cards = [keys.card for keys in here.keys.values()]
    asked = {"epsilon": 1.0, "deadline": here.round.deadline, "max_rows": 10}
    with pytest.raises(FileError, match="max_rows bounds tables that count each row once"):
        Round.open(horizon, cards, here.lead, **asked)
    with pytest.raises(FileError, match="is checked under masks"):
        Round.open(here.round.plan, cards, here.lead, masked=False, **asked)
