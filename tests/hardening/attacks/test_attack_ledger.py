"""Attacks on what ledgers say: histories that are cut, renamed or forged, pools that are forgotten.

No result may say less than its sites' books, whatever a coordinator signs; and two honest
campaigns after one another cost what an accountant of its own says.
"""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
import rfc8785

from accountant import epsilon, event, paid
from cli_helpers import hold
from hushtable import Plan, files, load
from hushtable.cli import main
from hushtable.errors import FileError, PlanError
from hushtable_federation.book.book import Book
from hushtable_federation.round import Round
from round_helpers import SCHEMA, Consortium

DELTA = 1e-6
TABLES = {"random_state": 1, "n_tables": 5, "n_cells": 16, "min_depth": 2, "max_depth": 4}


@pytest.fixture
def those(tmp_path):
    made = Consortium(tmp_path, 3)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def quick_noise(monkeypatch):
    """Noise of the same scale, drawn fast."""
    rng = np.random.default_rng(1)

    def add_noise(counts, mechanism, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)


def booked(those):
    return max(site.book.total("all rows") for site in those.sites.values())


def first_round(those, share=0.5, **terms):
    """A round of marginals, what came of it, and the plan of the tables that follows."""
    round_ = those.open(plan=Plan.marginals(SCHEMA), share=share, title="first", **terms)
    result = those.result(round_)
    return round_, result, Plan.draw(SCHEMA, marginals=result, **TABLES)


# --- what a coordinator says of the past --------------------------------------------------------


def test_a_plan_whose_history_was_cut_off(those):
    """v4b: `previous` names the marginals, the plan leaves them out: 1.0 said, 1.41 paid."""
    first, _, honest = first_round(those, share=0.9)
    liar = dataclasses.replace(honest, behind=())
    result = those.result(those.open(plan=liar, previous=[first.round_id]))
    assert result.ledger.epsilon == pytest.approx(booked(those))
    assert result.ledger.epsilon > 1.35


def test_another_plan_with_the_marginals_as_previous(those):
    """H_prev: a plan not drawn from the marginals does not count them, whatever is named."""
    first, *_ = first_round(those, share=1.0)
    result = those.result(those.open(previous=[first.round_id]))
    assert result.ledger.epsilon == pytest.approx(booked(those))
    assert {len(share.earlier) for share in result.ledger.shares} == {1}


def forged(entry, answer, **changes):
    """The entry of a plan's history, made to say that it contains this answer."""
    return dataclasses.replace(entry, parts=(answer.share.release,), **changes)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("lie", ["cheaper", "other pool", "two in one", "named as it is"])
def test_a_history_that_is_forged_proves_nothing(those, masked, lie):
    """What an entry contains is left out only where it cost as much as the book says."""
    first, _, honest = first_round(those, masked=masked)
    (entry,) = honest.behind
    answer = those.sites["s00"].book.answer(first.round_id)
    half = dataclasses.replace(entry.cost, rho=entry.cost.rho / 2)
    if lie == "cheaper":
        behind = forged(entry, answer, cost=half)
    elif lie == "other pool":
        behind = forged(entry, answer, pool=None if masked else "f" * 64)
    elif lie == "named as it is":
        behind = dataclasses.replace(entry, release=answer.share.release, cost=half)
    else:
        second = those.open(plan=Plan.marginals(SCHEMA), share=0.5, title="again", masked=masked)
        those.result(second)
        also = those.sites["s00"].book.answer(second.round_id)
        behind = dataclasses.replace(entry, parts=(answer.share.release, also.share.release))
        if masked:
            behind = dataclasses.replace(behind, pool=None)
    plan = dataclasses.replace(honest, behind=(behind,))
    result = those.result(those.open(plan=plan, masked=masked, previous=[first.round_id]))
    assert result.ledger.epsilon >= booked(those) * (1 - 1e-9)


def test_people_behind_a_plan_of_others_are_still_covered(those, tmp_path):
    """Sites that had no part in the plan's history say so; the sites that had still count."""
    (tmp_path / "others").mkdir()
    others = Consortium(tmp_path / "others", 3)
    first, marginals, plan = first_round(others, share=1.0, epsilon=3.0)
    result = those.result(those.open(plan=plan, epsilon=3.2))
    ledger = result.ledger
    assert ledger.epsilon_at(1) >= marginals.ledger.epsilon
    behind = {f"other {name}": [event(first, others.sites)] for name in others.sites}
    for sites in (2, 3):
        assert ledger.epsilon_at(sites) >= paid(behind, sites, DELTA) * (1 - 1e-9)
    assert booked(those) < marginals.ledger.epsilon
    others.close()


def test_a_share_cannot_stand_apart_from_what_is_not_there(those):
    """A share names only entries of the plan's history."""
    _, result, _ = first_round(those)
    entries, arrays = result.entries()
    entries["ledger"]["shares"][0]["apart"] = ["e" * 64]
    with pytest.raises(FileError, match="is not behind the plan"):
        files.unpack(files.pack("release", entries, arrays), "r").build(type(result).from_file)


# --- a plan under another name ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["marginals", "ranges", "ranks", "ace", "rs_hash"])
def test_tables_under_another_name(those, name):
    """v5 (a): tables that call themselves marginals were left out of the next round's ledger."""
    with pytest.raises(PlanError, match=rf"{name}.*RandomFeature"):
        dataclasses.replace(those.plan, detector=name)


def test_tables_under_another_name_in_a_file(those):
    """v5 (a), by a file made again, with the plan id that fits."""
    entries, arrays = those.plan.entries()
    content = those.plan.to_dict() | {"detector": "marginals"}
    named = content | {"arrays": files.array_digests(those.plan.arrays())}
    entries["plan"] = content
    entries["plan_id"] = hashlib.sha256(rfc8785.dumps(named)).hexdigest()
    made = files.pack("plan", entries, arrays)
    with pytest.raises(FileError, match=r"marginals.*EquiWidth.*RandomFeature"):
        files.unpack(made, "plan.hush").build(Plan.from_file)


def test_marginals_under_the_name_of_a_detector():
    """And the other way round: histograms have no scores."""
    with pytest.raises(PlanError, match=r"hushtable.*RandomFeature.*EquiWidth"):
        dataclasses.replace(Plan.marginals(SCHEMA), detector="hushtable")


# --- noise that was shared before ---------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("masked_first", [True, False])
@pytest.mark.parametrize("masked_then", [True, False])
def test_a_person_at_several_sites(those, share, masked_first, masked_then):
    """v5 (b): masked marginals, then tables without masks: 1.451 said at 2 sites, 1.528 true."""
    first, _, plan = first_round(those, share=share, masked=masked_first)
    second = those.open(plan=plan, masked=masked_then, previous=[first.round_id])
    ledger = those.result(second).ledger
    events = [event(first, those.sites), event(second, those.sites)]
    for sites in (1, 2, 3):
        true = paid(dict.fromkeys(those.sites, events), sites, DELTA)
        # Of five tables: the noise being discrete costs a little more.
        assert true <= ledger.epsilon_at(sites) <= 1.005 * true


# --- two campaigns ------------------------------------------------------------------------------


def test_two_campaigns_one_after_the_other(tmp_path, capsys, monkeypatch):
    """D_repeat: the second campaign of the same sites opens; its answers cost what they cost.

    Three sites, two campaigns of two steps. In the first, the answer of site c to step 2 gets
    lost, and the step is redone without it.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in "abc":
        rows = rng.normal(size=(400, 4))
        np.savetxt(f"{name}.csv", rows, delimiter=",", header="w,x,y,z", comments="")
        do("round", "keygen", name, "--cap", 10, "--persons", "1")
    do("round", "keygen", "lead")
    schema = '[[feature]]\nname = "{}"\nkind = "numeric"\nlow = -6.0\nhigh = 6.0\n'
    (tmp_path / "schema.toml").write_text("".join(map(schema.format, "wxyz")))
    events, results = [], {}
    for title in ("one", "two"):
        do("round", "open", "schema.toml", *cards("abc"), "--key", "lead.key", "--epsilon", 1,
           "--expected-rows", 12_000, "--title", title, "-o", f"{title}.1.hush")  # fmt: skip
        events.append(submitted(f"{title}.1.hush", "abc"))
        do("round", "next", f"{title}.1.hush", f"{title}.1.result.hush", "--key", "lead.key",
           "-o", f"{title}.2.hush")  # fmt: skip
        events.append(submitted(f"{title}.2.hush", "abc"))
        last, sites = f"{title}.2.hush", "abc"
        if title == "one":
            last, sites = "again.2.hush", "ab"
            do("round", "open", "one.2.hush", *cards("ab"), "--key", "lead.key", "--epsilon", 1,
               "--previous", "one.1.hush", "-o", last)  # fmt: skip
            events.append(submitted(last, "ab"))
        made = f"{last.removesuffix('.hush')}.result.hush"
        results[title] = load(made).ledger, sites, tuple(events)
    capsys.readouterr()
    for title, (ledger, sites, past) in results.items():
        of = {name: [one for one in past if name in one.sites] for name in sites}
        for several in range(1, len(sites) + 1):
            true = paid(of, several, DELTA)
            print(f"campaign {title}, at {several} sites: {ledger.epsilon_at(several):.4f} said, "
                  f"{true:.4f} true")  # fmt: skip
            assert ledger.epsilon_at(several) == pytest.approx(true, rel=0.01)
            assert ledger.epsilon_at(several) >= true * (1 - 1e-9)
    for name in "abc":
        true = epsilon(sum(one.rho(1) for one in events if name in one.sites), DELTA)
        with Book.open(f"{name}.book") as book:
            said = book.total("all rows")
        print(f"book of {name}: {said:.4f} said, {true:.4f} true")
        assert said == pytest.approx(true, rel=0.01)
        assert said >= true * (1 - 1e-9)
    assert results["two"][0].epsilon == pytest.approx(epsilon_of(("a", "b")), rel=1e-6)


def epsilon_of(names):
    totals = []
    for name in names:
        with Book.open(f"{name}.book") as book:
            totals.append(book.total("all rows"))
    return max(totals)


def do(*arguments):
    assert main([str(argument) for argument in arguments]) == 0, arguments


def cards(names):
    return [f"{name}.card" for name in names]


def submitted(round_, names):
    """Let these sites answer a round, up to its result; return what happened."""
    hold(Path(), round_, *names)
    with open(round_, "rb") as file:
        return event(Round.from_bytes(file.read(), round_), names)
