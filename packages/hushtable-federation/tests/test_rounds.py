"""Rounds by file: exact sums, noise shares, and everything that is refused, with its reason."""

import json
import re
from datetime import timedelta
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy

from hushtable import Feature, HushTable, LocalModel, Plan, Release, Schema, Sketch, files, load
from hushtable.counts import rounds
from hushtable.data.labels import fold
from hushtable.errors import FileError, PlanError, PrivacyError, RoundError, UsageError
from hushtable.privacy.ledger import Ledger
from hushtable.scores.scorer import Scorer
from hushtable_federation.book.book import Book
from hushtable_federation.describe import officer_words, round_lines
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.reply import Reply
from hushtable_federation.result import implausible
from hushtable_federation.round import Round
from round_helpers import DEADLINE, SCHEMA, T0, clock_at, send


def submissions(consortium, round_, **options):
    return {name: site.submit(round_, **options) for name, site in consortium.sites.items()}


def test_a_replaced_card_is_heard(consortium):
    """Everyone reads aloud one fingerprint of all cards; any other card or role changes it."""
    those = consortium(3)
    opened = those.open()
    assert re.fullmatch(r"([0-9a-f]{4} ){7}[0-9a-f]{4}", opened.fingerprint)
    cards = [site.keys.card for site in those.sites.values()]

    def of(cards, lead):
        asked = Round.open(opened.plan, cards, lead, epsilon=0.5, deadline=DEADLINE)
        return asked.fingerprint

    with clock_at(T0):
        assert of(cards[::-1], those.lead) == opened.fingerprint  # whatever order, terms, plan
        others = {
            of([Keys.generate("s00").card, *cards[1:]], those.lead),
            of(cards, Keys.generate("lead")),
            of([those.lead.card, *cards[1:]], those.sites["s00"].keys),
            of(cards[1:], those.lead),
        }
    assert len({opened.fingerprint, *others}) == 5


# --- sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 10])
def test_without_masks_the_sum_is_that_of_the_sites(consortium, k):
    those = consortium(k)
    round_ = those.open(masked=False)
    result = those.result(round_)
    assert isinstance(result, Release)
    np.testing.assert_array_equal(
        result.counts, sum(site.sent(round_) for site in those.sites.values())
    )
    assert 0.9999 < result.ledger.epsilon <= 1.0
    assert result.ledger.noise_sd == pytest.approx(round_.noise_sd)


def test_sites_write_one_category_in_several_ways(consortium):
    those = consortium(2)
    towns = {"s00": ["Z\u00fcrich", "Bern"], "s01": [" Zu\u0308rich", "Bern\u00a0"]}
    listed = {fold(town) for site in towns.values() for town in site}
    schema = Schema([Feature.categorical("town", sorted(listed)), *SCHEMA.features])
    round_ = those.open(masked=False, plan=Plan.draw(schema, n_tables=4, random_state=0))
    for name, (first, second) in towns.items():
        site = those.sites[name]
        columns = {feature.name: site.X[:, j] for j, feature in enumerate(SCHEMA.features)}
        site.X = pa.table({"town": [first, second] * (len(site.X) // 2), **columns})
        clean = pa.table({"town": towns["s00"] * (len(site.X) // 2), **columns})
        counted = site.sketch(round_.plan)
        assert counted.tally[:, 1].sum() == 0
        np.testing.assert_array_equal(counted.counts, Sketch.from_data(round_.plan, clean).counts)
    result = those.result(round_)
    assert result.plan.schema.features[0].categories == ("Bern", "Z\u00fcrich")


def test_noise_is_shared_by_those_whom_the_bound_counts_on(consortium):
    those = consortium(6)
    whole = those.open(masked=False).site_scale
    shared = those.open()
    assert shared.terms.k_min == 5
    assert shared.site_scale == pytest.approx(whole / np.sqrt(5), rel=1e-5)
    assert those.open(colluders=3).site_scale == pytest.approx(whole / np.sqrt(2), rel=1e-5)
    two = consortium(2)
    assert two.open().site_scale == two.open(masked=False).site_scale


def test_a_share_of_the_noise_is_never_too_fine(consortium):
    those = consortium(10)
    assert those.open(epsilon=20.0).site_scale == 2.0


def test_the_noise_is_what_the_round_says(consortium):
    those = consortium(3)
    site = those.sites["s00"]
    plan = Plan.draw(SCHEMA, n_tables=100, random_state=0)
    round_ = those.open(plan=plan)
    site.submit(round_)
    noise = site.sent(round_) - site.sketch(plan).counts
    assert noise.std() == pytest.approx(round_.site_scale, rel=0.05)
    assert abs(noise.mean()) < 5 * round_.site_scale / np.sqrt(len(noise))


def test_a_part_of_a_shared_noise_is_no_release(consortium):
    those = consortium(3)
    round_ = those.open()
    those.sites["s00"].submit(round_)
    answer = those.sites["s00"].book.answer(round_.round_id)
    with pytest.raises(PrivacyError, match="1 of at least 3 parts"):
        Release(those.plan, answer.sent, round_.ledger(answer.share))


def test_results_of_masked_rounds_about_the_same_rows_do_not_merge(consortium):
    those = consortium(3)
    first, second = those.open(), those.open(title="again")
    one = those.result(first)
    other = those.result(second)
    for a, b in ((one, other), (other, one)):
        with pytest.raises(PrivacyError, match="came before another of these"):
            a + b
    with pytest.raises(PrivacyError, match="merge each release once"):
        one + one


@pytest.mark.parametrize("masked", [True, False])
def test_a_second_round_costs_the_total_of_its_plan(consortium, masked):
    """First pass, gate, second pass, each a round."""
    those = consortium(3, rows=1_000)
    terms = {"epsilon": 3.0, "expected_rows": 4_000, "passes": 2, "n_tables": 10, "n_cells": 16}
    plan = Plan.draw(SCHEMA, random_state=0, **terms)
    done = []

    def round_of(plan):
        asked = those.open(
            plan=plan,
            epsilon=3.0,
            masked=masked,
            previous=[one.round_id for one in done],
        )
        done.append(asked)
        return those.result(asked)

    first = round_of(plan)
    gate = round_of(rounds.gate(first))
    second = rounds.second_pass(first, gate)
    result = round_of(second)
    assert [spent.what for spent in result.ledger.behind_plan] == ["hushtable", "gate"]
    assert 2.99 < result.ledger.epsilon <= 3.0
    for site in those.sites.values():  # no one pays twice
        assert site.book.total("all rows") == pytest.approx(3.0, rel=1e-2)
    assert np.isfinite(Scorer(result).score(those.sites["s00"].X)).all()


@pytest.mark.parametrize("named", [False, True])
def test_rounds_about_the_same_rows_add_up_in_the_ledger(consortium, named):
    """Also if the second names the first as what its plan was drawn from."""
    those = consortium(2)
    first = those.open(epsilon=0.5)
    submissions(those, first)
    previous = [first.round_id] if named else []
    result = those.result(those.open(epsilon=0.5, title="again", previous=previous))
    assert [len(share.earlier) for share in result.ledger.shares] == [1, 1]
    assert result.ledger.epsilon > 0.6
    assert those.sites["s00"].book.total("all rows") == pytest.approx(result.ledger.epsilon)


# --- the local model --------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [True, False])
def test_the_local_model_is_the_others_noised_and_ones_own_exact(consortium, masked, tmp_path):
    those = consortium(3)
    round_ = those.open(masked=masked)
    result = those.result(round_)
    first, *others = those.sites.values()
    answer = first.book.answer(round_.round_id)
    local = LocalModel.of(result, answer.share.release, answer.sent, answer.counts)
    expected = first.sketch(those.plan).counts + sum(s.sent(round_) for s in others)
    np.testing.assert_array_equal(local.counts, expected)
    assert local.noise_sd == pytest.approx(round_.site_scale * np.sqrt(2))
    local.save(tmp_path / "local.hush")
    assert files.read(tmp_path / "local.hush").kind == "local"
    back = load(tmp_path / "local.hush")
    np.testing.assert_array_equal(back.counts, local.counts)
    detector = HushTable.from_counts(back)
    detector.save(tmp_path / "detector.hush")
    again = load(tmp_path / "detector.hush")
    np.testing.assert_array_equal(Scorer(back).values, again._scorer.values)
    assert detector.sketch_.own == again.sketch_.own
    for leak in (lambda: local + result, lambda: local.release(1.0)):
        with pytest.raises(PrivacyError, match="exact counts of its site"):
            leak()
    with pytest.raises(PlanError, match="no share"):
        LocalModel(local.plan, local.counts, local.ledger, "someone else's")


# --- what a coordinator cannot open -------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "error", "message"),
    [
        ({"epsilon": 0.0}, PrivacyError, "epsilon"),
        ({"epsilon": 50.0}, PrivacyError, "epsilon"),
        ({"delta": 1.0}, PrivacyError, "delta"),
        ({"least": 4}, FileError, "3 sites cannot be at least 4"),
        ({"least": 2, "colluders": 1}, UsageError, "k_min=0"),
        ({"colluders": 2}, UsageError, "k_min=0 with 3 sites"),
        ({"deadline": T0 - timedelta(days=1)}, UsageError, "has passed"),
        ({"deadline": DEADLINE.replace(tzinfo=None)}, UsageError, "time zone"),
        ({"rows_per_person": 0}, UsageError, "rows_per_person"),
        ({"adjacency": "sideways"}, UsageError, "adjacency"),
        ({"masked": False, "least": 0}, UsageError, "least=0: needs a whole number"),
    ],
)
def test_terms_that_cannot_be(consortium, terms, error, message):
    with pytest.raises(error, match=message):
        consortium(3).open(**terms)


def test_too_few_for_two_honest_lists(consortium):
    with pytest.raises(FileError, match="needs 6 or more"):
        consortium(10).open(least=5)


def test_rosters_that_cannot_be(consortium):
    those = consortium(2)
    one, other = those.cards
    for cards, message in (
        ([one], "1 sites"),
        ([one, one], r"have the name \['s00'\]"),
        ([one, Keys.generate("lead").card], "both named 'lead'"),
    ):
        with pytest.raises((FileError, UsageError), match=message):
            those.open(cards=cards)
    same = Keys("s09", those.sites["s01"].keys._signing, those.sites["s01"].keys.masking)
    with pytest.raises(FileError, match="same keys"):
        those.open(cards=[other, same.card])


def test_plans_that_no_release_is_private_under(consortium, X):
    exact = HushTable(n_tables=5, random_state=0).fit(X).plan_
    with pytest.raises(PrivacyError, match="ranges"):
        consortium(2).open(plan=exact)


# --- what a site refuses ------------------------------------------------------------------------


def test_a_round_that_was_edited(consortium):
    those = consortium(3)
    round_ = those.open()
    read = files.unpack(round_.content, "r")
    entries = {k: v for k, v in read.manifest.items() if k not in ("protocol", "kind", "arrays")}
    entries = {k: v for k, v in entries.items() if k not in ("digest", "signature", "writer")}
    entries["round"]["terms"]["epsilon"] = 5.0
    forged = files.pack("round", entries, read.arrays, Keys.generate("mallory").sign)
    with pytest.raises(RoundError, match="signature is not that of 'lead'"):
        Round.from_bytes(forged, "round.hush")
    with pytest.raises(FileError):
        Round.from_bytes(round_.content[:-7], "round.hush")
    plan = files.pack("plan", *those.plan.entries())
    with pytest.raises(FileError, match="holds a plan"):
        Round.from_bytes(plan, "round.hush")
    with pytest.raises(FileError, match="not one of hushtable"):
        Round.from_bytes(safetensors.numpy.save({"x": np.zeros(3)}), "round.hush")


def test_a_k_min_that_does_not_fit(consortium):
    """Signed by the coordinator, but counting on more noise than there is."""
    those = consortium(3)
    read = files.unpack(those.open().content, "r")
    entries = {"round": read.manifest["round"]} | dict(zip(("plan_id", "plan"), (
        read.manifest["plan_id"], read.manifest["plan"]), strict=True))  # fmt: skip
    for k_min in (0, 3, 7):
        entries["round"]["terms"]["k_min"] = k_min
        forged = files.pack("round", entries, read.arrays, those.lead.sign)
        with pytest.raises(FileError, match=f"k_min={k_min} with 3 sites"):
            Round.from_bytes(forged, "round.hush")


def test_a_round_that_is_over_and_clocks_that_are_wrong(consortium):
    those = consortium(2)
    round_, site = those.open(), those.sites["s00"]
    with pytest.raises(RoundError, match="ended on 2027-03-08"):
        site.submit(round_, at=DEADLINE + timedelta(seconds=1))
    with pytest.raises(RoundError, match="correct the clock"):
        site.submit(round_, at=T0 - timedelta(hours=1))
    assert site.book.answer(round_.round_id) is None
    site.submit(round_, at=T0 - timedelta(minutes=5))  # clocks differ a little


def test_a_round_for_others(consortium):
    those = consortium(3)
    round_ = those.open(cards=those.cards[:2])
    with pytest.raises(RoundError, match="'s02' takes no part"):
        those.sites["s02"].submit(round_)


def test_a_roster_with_other_keys_of_mine(consortium):
    those = consortium(2)
    round_ = those.open(cards=[Keys.generate("s00").card, those.cards[1]])
    with pytest.raises(RoundError, match="with keys other than these"):
        those.sites["s00"].submit(round_)


@pytest.mark.parametrize("who", ["s01", "lead"])
def test_keys_of_others_that_changed(consortium, who):
    those = consortium(2)
    site = those.sites["s00"]
    site.submit(those.open(masked=False))
    new = Keys.generate(who)
    if who == "lead":
        round_ = those.open(title="next", keys=new, masked=False)
    else:
        round_ = those.open(title="next", cards=[those.cards[0], new.card], masked=False)
    with pytest.raises(RoundError, match=f"keys of '{who}' in this round are not those"):
        site.submit(round_)
    site.book.trust([new.card], "coordinator" if who == "lead" else "site")
    site.submit(round_)


def test_a_round_that_asks_for_more_than_the_cap(consortium):
    those = consortium(2, cap=1.0)
    site = those.sites["s00"]
    with pytest.raises(PrivacyError, match=r"to epsilon 2 .* cap of 's00' is 1 .* smaller epsilon"):
        site.submit(those.open(epsilon=2.0))
    site.submit(those.open())
    with pytest.raises(PrivacyError, match=r"it is 1 so far.*: nothing is left to spend"):
        site.submit(those.open(epsilon=0.1, title="one more"))
    site.submit(those.open(epsilon=0.1, title="of others"), data_set="last year")
    site.book.set_cap(1.2, 1e-6)
    site.submit(those.open(epsilon=0.1, title="one more"))


def test_rounds_under_other_terms_do_not_add_up(consortium):
    those = consortium(2)
    site = those.sites["s00"]
    site.submit(those.open(epsilon=0.1))
    with pytest.raises(PrivacyError, match="other terms"):
        site.submit(those.open(epsilon=0.1, rows_per_person=3))


def test_the_same_round_twice(consortium):
    those = consortium(2)
    round_, site = those.open(), those.sites["s00"]
    first = site.submit(round_)
    later = T0 + timedelta(hours=2)
    assert site.submit(round_, at=later) == first
    assert len(site.book.answers()) == 1
    # Nor do the rows decide whether there is an answer: that would tell of them.
    site.X = site.X + 0.5
    assert site.submit(round_, data_set="last year") == first
    assert site.book.data_sets() == ["all rows"]


def test_counts_that_a_row_may_have_changed_more(consortium):
    those = consortium(2)
    site, round_ = those.sites["s00"], those.open(masked=False)
    reply = Reply(round_, site.keys, site.book, at=T0)
    weighted = Sketch.from_data(those.plan, site.X, sample_weight=np.full(len(site.X), 3))
    with pytest.raises(PrivacyError, match="sample_weight"):
        send(reply, weighted)
    other = Plan.draw(SCHEMA, n_tables=5, n_cells=16, min_depth=2, max_depth=4, random_state=9)
    with pytest.raises(RoundError, match="another plan"):
        send(reply, site.sketch(other))
    assert site.book.answers() == []


# --- what a coordinator refuses -----------------------------------------------------------------


def repacked(content, keys, change):
    """A submission with other content, signed with these keys."""
    read = files.unpack(content, "s")
    apart = ("protocol", "kind", "arrays", "digest", "signature", "writer")
    entries = {k: v for k, v in read.manifest.items() if k not in apart}
    arrays = dict(read.arrays)
    change(entries, arrays)
    return files.pack("submission", entries, arrays, keys.sign)


def flipped(content):
    middle = len(content) - 9
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def of_a_stranger(those, good):
    stranger = Keys.generate("mallory")
    return repacked(good, stranger, lambda entries, _: entries.update(site="mallory"))


def set_word(value):
    def change(entries, arrays):
        arrays["words"] = arrays["words"].copy()
        arrays["words"][3] = np.int64(value).view(np.uint64)

    return change


def move_rows(entries, arrays):
    arrays["words"] = arrays["words"].copy()
    arrays["words"][:16] += np.uint64(1000)


def changed(change):
    """Return a case: the site's own submission, changed and signed again."""
    return lambda those, good: repacked(good, those.sites["s00"].keys, change)


FAULTS = {
    "empty": (lambda those, good: b"", "the file is empty"),
    "no file of ours": (lambda those, good: b"hello", "not a .hush file|truncated|damaged"),
    "truncated": (lambda those, good: good[: len(good) // 2], "truncated"),
    "bit flip": (lambda those, good: flipped(good), "not the ones that the file was written with"),
    "not a submission": (
        lambda those, good: files.pack("plan", *those.plan.entries()),
        "holds a plan",
    ),
    "unknown site": (of_a_stranger, "'mallory' does not take part"),
    "forged signature": (
        lambda those, good: repacked(good, Keys.generate("s00"), lambda e, a: None),
        "signature is not that of 's00'",
    ),
    "replayed from another round": (
        lambda those, good: those.sites["s00"].submit(those.open(masked=False, title="old")),
        "answers round",
    ),
    "stale plan": (
        lambda those, good: those.sites["s00"].submit(
            those.open(masked=False, plan=Plan.draw(SCHEMA, n_tables=4, random_state=5))
        ),
        "about another plan",
    ),
    "changed roster": (
        lambda those, good: those.sites["s00"].submit(
            those.open(masked=False, cards=those.cards[:2])
        ),
        "answers round",
    ),
    "a site's clock is behind": (
        changed(lambda e, a: e.update(made="2027-01-01T00:00:00Z")),
        "in the future of the site's clock .*: correct the clock",
    ),
    "a site's clock is ahead": (
        changed(lambda e, a: e.update(made="2027-03-05T00:00:00Z")),
        "one of the two clocks is wrong",
    ),
    "too late": (
        changed(lambda e, a: e.update(made="2027-03-09T00:00:00Z")),
        "ended on 2027-03-08 .*, and the site's clock shows 2027-03-09",
    ),
    "no time": (
        changed(lambda e, a: e.update(made="yesterday")),
        "does not state when",
    ),
    "noise of other terms": (
        changed(lambda e, a: e["share"].update(scale=0.5)),
        "made for other terms",
    ),
    "counts of another shape": (
        changed(lambda e, a: a.update(words=a["words"][:-1])),
        "as the plan needs",
    ),
    "a negative count": (changed(set_word(-(10**6))), "impossible counts"),
    "a huge count": (changed(set_word(2**60)), "exceeds 2\\^52"),
    "totals that disagree": (changed(move_rows), "different numbers of rows"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_bad_submission_is_refused_and_the_rest_go_on(consortium, fault):
    those = consortium(3)
    round_ = those.open(masked=False)
    good = submissions(those, round_)
    make, reason = FAULTS[fault]
    bad = make(those, good["s00"])
    collection = those.collect(round_, good | {"s00": bad})
    ((name, why),) = collection.refused
    assert name == "s00"
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(why)
    assert collection.missing == ["s00"]
    result = collection.result()
    np.testing.assert_array_equal(
        result.counts, those.sites["s01"].sent(round_) + those.sites["s02"].sent(round_)
    )


def test_duplicates_and_contradictions(consortium):
    those = consortium(3)
    round_ = those.open(masked=False)
    good = submissions(those, round_)
    collection = those.collect(round_, good | {"copy": good["s00"]})
    assert (collection.missing, collection.refused) == ([], [])

    def another(entries, arrays):
        arrays["words"] = arrays["words"] + np.arange(len(arrays["words"]), dtype=np.uint64) % 2

    other = repacked(good["s00"], those.sites["s00"].keys, another)
    for order in ({"a": good["s00"], "b": other}, {"a": other, "b": good["s00"]}):
        rest = {name: good[name] for name in ("s01", "s02")}
        collection = those.collect(round_, order | rest | {"c": good["s00"]})
        assert collection.contradicted == {"s00"}
        assert collection.missing == ["s00"]
        assert all("two different submissions" in why for _, why in collection.refused)
        assert len(collection.result().ledger.shares) == 2


def test_too_few(consortium):
    those = consortium(3)
    round_ = those.open(masked=False)
    good = submissions(those, round_)
    with pytest.raises(RoundError, match="1 sites have answered, and the round needs 2"):
        those.sum(round_, {"s00": good["s00"]})


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([2**52, 0, 0, 0, 2**52, 0, 0, 0], None),
        ([2**52 + 1, 0, 0, 0, 2**52 + 1, 0, 0, 0], "exceeds 2"),
        # Totals have a standard deviation of 2 here, and lie equally far from their mean.
        ([32, 0, 0, 0, 0, 0, 0, 0], None),
        ([0, 0, 0, 0, 33, 0, 0, 0], "table 1 about 0, all tables on average 16: 8 times"),
        ([33, 0, 0, 0, 0, 0, 0, 0], "table 1 about 33, all tables on average 16: 8 times"),
        ([9, 9, 0, -8, 10, 0, 0, 0], None),
        ([9, 9, 0, -9, 9, 0, 0, 0], "cell 3 holds -9"),
        ([24, -8, -8, -8, 0, 0, 0, 0], None),
        ([0, 0, 0, 0, 25, -8, -8, -8], "cell 4 holds 25, more than the 0 rows"),
    ],
)
def test_where_counts_become_implausible(counts, message):
    plan = Plan.draw(SCHEMA, random_state=0, n_tables=2, n_cells=4, min_depth=2, max_depth=2)
    found = implausible(plan, np.array(counts), 1.0)
    assert found is None if message is None else message in found


@pytest.mark.parametrize(
    "detector",
    [
        "hushtable",
        "lsh_itables",
        pytest.param("ace", marks=pytest.mark.slow),
        pytest.param("rs_hash", marks=pytest.mark.slow),
        pytest.param("rotated_rs_hash", marks=pytest.mark.slow),
    ],
)
def test_all_honest_rounds_are_plausible(consortium, quick_noise, detector):
    """The check on sums and single sites never refuses honest counts, of any family."""
    those = consortium(3, rows=40)
    if detector not in ("hushtable", "lsh_itables"):
        pytest.importorskip("hushtable_bench")
    plan = Plan.draw(SCHEMA, detector=detector, n_tables=10, random_state=0)
    for masked in (True, False):
        round_ = those.open(plan=plan, masked=masked, epsilon=0.5)
        result = those.result(round_, data_set=f"{detector} {masked}")
        assert len(result.ledger.shares) == 3


# --- keys and cards -----------------------------------------------------------------------------


def test_keys_go_through_files(tmp_path):
    keys = Keys.generate("St. Mary's".replace("'", ""))
    keys.save(tmp_path / "a.key")
    keys.card.save(tmp_path / "a.card")
    assert Keys.load(tmp_path / "a.key").card == keys.card
    assert Card.load(tmp_path / "a.card") == keys.card
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="never overwritten"):
        Keys.generate("b").save(tmp_path / "a.key")
    assert "private" not in (tmp_path / "a.card").read_text()


def test_keys_on_a_disk_without_hard_links(tmp_path, monkeypatch):
    def link(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", link)
    keys = Keys.generate("a")
    keys.save(tmp_path / "a.key")
    assert Keys.load(tmp_path / "a.key").card == keys.card
    with pytest.raises(UsageError, match="never overwritten"):
        keys.save(tmp_path / "a.key")
    assert [path.name for path in tmp_path.iterdir()] == ["a.key"]


def test_secret_files_that_are_open_lost_or_damaged(tmp_path):
    keys = Keys.generate("a")
    for make, load_, what in (
        (keys.save, Keys.load, "a.key"),
        (lambda p: Book.create(p, keys.card, epsilon=1.0).close(), Book.open, "a.book"),
    ):
        path = tmp_path / what
        with pytest.raises(FileError, match="make new keys"):
            load_(path)
        make(path)
        path.chmod(0o640)
        with pytest.raises(PrivacyError, match=r"others may read this file \(mode 640\)"):
            load_(path)
        path.chmod(0o600)
        path.write_bytes(b"{" + path.read_bytes()[1:100])
        with pytest.raises(FileError, match="damaged"):
            load_(path)


def test_a_card_in_place_of_keys_is_named(tmp_path):
    """It may be read by others, and is: its owner is not to make new keys for that."""
    Keys.generate("a").card.save(tmp_path / "a.card")
    (tmp_path / "a.card").chmod(0o644)
    with pytest.raises(UsageError, match="this is a card, for others: give the keys of 'a'"):
        Keys.load(tmp_path / "a.card")


def test_a_card_that_was_edited(tmp_path):
    card = Keys.generate("a").card
    content = card.to_dict()
    for change in (
        {"name": "b"},
        {"masking": Keys.generate("a").card.masking},
        {"signature": "00" * 64},
    ):
        with pytest.raises(RoundError, match="edited"):
            Card.from_dict(content | change)
    with pytest.raises(RoundError, match="hexadecimal"):
        Card.from_dict(content | {"signing": "xyz"})
    (tmp_path / "x.card").write_text(json.dumps({"hushtable": "card"} | content | {"name": "b"}))
    with pytest.raises(FileError, match=r"x\.card: the card of 'b' was edited"):
        Card.load(tmp_path / "x.card")


@pytest.mark.parametrize(
    "name",
    ["", " a", "a/b", "a\n", "x" * 65, "..", 7, "s\u043e0", "nörth", "\uff5301", "\u045501",
     "l\u0131sa", "a\u200bb"],
)  # fmt: skip
def test_names_that_do_not_fit(name):
    with pytest.raises(RoundError, match="needs 1 to 64"):
        Keys.generate(name)


def test_a_book_and_keys_of_different_sites(consortium):
    those = consortium(2)
    path = those.sites["s00"].book.path
    with pytest.raises(RoundError, match="use the keys and the book that belong together"):
        Book.open(path, those.sites["s01"].keys.card)
    with pytest.raises(RoundError, match="use the keys and the book that belong together"):
        Book.open(path, Keys.generate("s00").card)


def test_ledgers_with_a_pool_are_checked(consortium):
    those = consortium(3)
    round_ = those.open()
    ledger = those.result(round_).ledger
    content = ledger.to_dict()
    assert Ledger.from_dict(content) == ledger
    for change in ({"counted": 3}, {"counted": 0}, {"least": 1}):
        with pytest.raises(PlanError):
            Ledger.from_dict(content | {"pool": content["pool"] | change})
    with pytest.raises(PlanError, match="edited"):
        # Counting on fewer parts than it says: the numbers do not follow.
        Ledger.from_dict(content | {"pool": content["pool"] | {"counted": 1}})


@pytest.mark.parametrize(
    ("adjacency", "suspects"),
    [("add-remove", "a person is among the rows"), ("replace-one", "record has certain values")],
)
def test_what_an_officer_signs_is_in_plain_words(consortium, adjacency, suspects):
    """No figure is for the coordinator, and none stands without its meaning."""
    those = consortium(3)
    plan = Plan.draw(SCHEMA, epsilon=1.0, expected_rows=9000, random_state=0)
    round_ = those.open(plan=plan, adjacency=adjacency, rows_per_person=2)
    sentences, lines = officer_words(round_), round_lines(round_)
    (bound,) = (one for one in sentences if "suspects" in one)
    assert suspects in bound
    assert "at most 76.1% sure" in bound
    assert "except with a probability of 1e-06" in bound
    assert "up to 2" in bound
    for word in ("e^", "k_min", "home model", "gain", adjacency):
        assert word not in " ".join([*sentences, *lines.values()])
    assert lines["Noise"].endswith("per site, under masks")
    leaky = round_lines(those.open(plan=plan, adjacency=adjacency, colluders=1))
    assert leaky["Noise"].endswith("under masks, and enough even if 1 site reveals its part")


def test_a_repeat_is_charged_and_names_the_round_that_had_no_result(consortium):
    """A person is informed before the site answers; after a result, nothing is said of it."""
    those = consortium(3, cap=10.0)
    site, first = those.sites["s00"], those.open(title="first try")
    site.submit(first)
    second = those.open(title="second try")
    words = Reply(second, site.keys, site.book, at=T0).cost_words
    assert f"includes 'first try' ({first.round_id[:12]}), whose result this site has not" in words
    assert "costs its budget, whether or not it ended with a sum" in words
    before = site.book.total("all rows")
    site.book.note_verified("ab" * 32, first.round_id)
    assert "first try" not in Reply(second, site.keys, site.book, at=T0).cost_words
    site.submit(second)
    assert site.book.total("all rows") > before


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "pip install hushtable-federation==1.0.0rc1"), (3, "install a newer version")],
)
def test_masked_rounds_of_another_protocol_are_refused_with_what_to_do(consortium, number, words):
    """They open and are verified as before, but nobody answers, sums or continues them."""
    those = consortium(3)
    site = those.sites["s00"]
    with patch("hushtable_federation.terms.PROTOCOL", number):
        other, unmasked = those.open(), those.open(masked=False)
    assert other.terms.protocol == number
    for use in (
        lambda: Reply(other, site.keys, site.book, at=T0),
        lambda: SecureSum(other, those.lead, Memory({})),
        lambda: other.next(those.lead, deadline=DEADLINE),
    ):
        with pytest.raises(RoundError, match=words):
            use()
    assert Reply(unmasked, site.keys, site.book, at=T0).epsilon > 0
