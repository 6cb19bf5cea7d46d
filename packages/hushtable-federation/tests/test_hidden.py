"""Hidden hash functions: the sealed secret, and a campaign of which the lead has layouts only."""

import dataclasses

import pytest

from hushtable import Plan, files
from hushtable.errors import FileError, PrivacyError, RoundError, UsageError
from hushtable_federation.coordinator import check_drawn_from, round_after, tables_after
from hushtable_federation.hidden import (
    SealedSecret,
    draw_hidden,
    read_plan,
    seal_secret,
)
from hushtable_federation.keys import Keys
from hushtable_federation.layout import Layout
from hushtable_federation.policy import Policy
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Result
from round_helpers import DEADLINE, SCHEMA, T0, Consortium

SECRET = bytes(range(32))
NORTH, SOUTH, WEST, LEAD = (Keys.generate(name) for name in ("north", "south", "west", "lead"))


def known(*sites, leads=(LEAD,)):
    return {
        "site": {keys.card.name: keys.card.fingerprint for keys in sites},
        "coordinator": {keys.card.name: keys.card.fingerprint for keys in leads},
    }


ALL = known(NORTH, SOUTH, WEST)


def opened_secret(content, keys, known):
    return SealedSecret.from_bytes(content).open(keys, known)


@pytest.fixture(scope="module")
def sealed():
    return seal_secret(SECRET, NORTH, [SOUTH.card, WEST.card])


def edited(content, change, signer=NORTH):
    """Return the file with its manifest changed, signed again."""
    read = files.unpack(content, "a")
    said = dict(read.manifest["secret"])
    change(said)
    return files.pack("secret", {"secret": said}, {}, signer.sign)


# --- the sealed secret ----------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [NORTH, SOUTH, WEST], ids=lambda keys: keys.card.name)
def test_each_reader_opens_the_secret(sealed, reader):
    assert opened_secret(sealed, reader, ALL) == SECRET


def test_nothing_in_the_file_tells_the_secret(sealed):
    assert SECRET not in sealed
    assert SECRET.hex().encode() not in sealed
    again = SealedSecret.from_bytes(seal_secret(SECRET, NORTH, [SOUTH.card, WEST.card]))
    first = SealedSecret.from_bytes(sealed)
    assert first.readers == again.readers
    assert first.key != again.key
    assert not set(first.copies) & set(again.copies)
    assert len(set(first.copies)) == 3


def test_who_is_no_reader_is_refused(sealed):
    for keys in (LEAD, Keys.generate("south")):
        with pytest.raises(RoundError, match=r"not for the keys of .*request a new secret"):
            opened_secret(sealed, keys, ALL)


def test_a_sender_whom_the_site_does_not_know_is_refused(sealed):
    with pytest.raises(RoundError, match=r"'north' is not known here.*--trust") as refused:
        opened_secret(sealed, SOUTH, known(WEST))
    assert refused.value.word is Refusal.UNKNOWN
    other = Keys.generate("north")
    with pytest.raises(RoundError, match=f"known here as {other.card.fingerprint}"):
        opened_secret(sealed, SOUTH, known(other, WEST))


def test_a_secret_that_the_coordinator_made_or_can_read_is_refused():
    made = seal_secret(SECRET, LEAD, [NORTH.card, SOUTH.card])
    with pytest.raises(RoundError, match=r"was sealed by 'lead'.*would not be hidden"):
        opened_secret(made, SOUTH, ALL)
    shared = seal_secret(SECRET, NORTH, [LEAD.card, SOUTH.card])
    with pytest.raises(RoundError, match=r"can be read by 'lead'.*would not be hidden") as refused:
        opened_secret(shared, SOUTH, ALL)
    assert refused.value.word is Refusal.UNKNOWN
    # Of a coordinator that is a site, too, people said that it may be both.
    assert opened_secret(made, SOUTH, known(NORTH, LEAD)) == SECRET


def test_a_coordinator_under_another_name_shows_among_the_readers():
    twin = Keys.generate("west 2")
    read = SealedSecret.from_bytes(seal_secret(SECRET, NORTH, [SOUTH.card, twin.card]))
    assert read.strangers(SOUTH.card, ALL) == [twin.card]
    assert read.strangers(SOUTH.card, known(NORTH, twin)) == []


def test_the_lead_under_the_name_of_a_site_is_found_by_its_keys():
    masked = Keys("west", LEAD._signing, LEAD.masking)
    content = seal_secret(SECRET, NORTH, [SOUTH.card, masked.card])
    leads = {"site": ALL["site"], "coordinator": {"lead": masked.card.fingerprint}}
    with pytest.raises(RoundError, match="can be read by 'west'"):
        opened_secret(content, SOUTH, leads)


def test_a_changed_file_is_refused(sealed):
    for place in range(200, len(sealed), 97):
        broken = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises((FileError, RoundError)):
            opened_secret(broken, SOUTH, ALL)


def test_whoever_signs_what_another_sealed_is_refused(sealed):
    """A reader cannot pass the copies on as its own: the sender is part of every key."""
    with pytest.raises(RoundError, match="signature is not that of 'north'"):
        opened_secret(edited(sealed, lambda said: None, SOUTH), WEST, ALL)
    card = SOUTH.card.to_dict()
    stolen = edited(sealed, lambda said: said.update(sender=card), SOUTH)
    with pytest.raises(RoundError, match="does not open"):
        opened_secret(stolen, WEST, ALL)


def test_the_list_of_readers_is_part_of_every_key(sealed):
    """A list that hides a reader opens for no one, no matter who signs it."""

    def without_west(said):
        said["readers"], said["copies"] = said["readers"][:2], said["copies"][:2]

    def swapped(said):
        said["copies"] = said["copies"][::-1]

    for change in (without_west, swapped):
        with pytest.raises(RoundError, match="does not open"):
            opened_secret(edited(sealed, change), SOUTH if change is without_west else WEST, ALL)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda said: said.update(readers=said["readers"][:1], copies=said["copies"][:1]), "needs"),
        (
            lambda said: said.update(readers=said["readers"][1:], copies=said["copies"][1:]),
            "one of its",
        ),
        (lambda said: said.update(readers=said["readers"][::-1]), "not sorted"),
        (lambda said: said.update(copies=said["copies"][:2]), "copy for each reader"),
        (lambda said: said.update(copies=["", *said["copies"][1:]]), "too short"),
        (lambda said: said.update(copies=["zz" * 48, *said["copies"][1:]]), "copy for each"),
        (lambda said: said.update(key="00"), "needs a key"),
        (lambda said: said.pop("key"), "key"),
        (lambda said: said.update(sender={"name": "north"}), "card"),
    ],
)
def test_what_is_no_sealed_secret_is_refused(sealed, change, words):
    with pytest.raises(FileError, match=words):
        SealedSecret.from_bytes(edited(sealed, change))


def test_a_key_by_which_nothing_can_be_agreed_on(sealed):
    """Zeros are a point that gives everyone the same key."""
    with pytest.raises(RoundError, match="not valid to agree on masks"):
        opened_secret(edited(sealed, lambda said: said.update(key="00" * 32)), SOUTH, ALL)


def test_what_cannot_be_sealed():
    with pytest.raises(UsageError, match="at least 32"):
        seal_secret(b"password", NORTH, [SOUTH.card])
    with pytest.raises(UsageError, match=r"give their cards \(--site\)"):
        seal_secret(SECRET, NORTH, [NORTH.card])
    with pytest.raises(RoundError, match="several cards"):
        seal_secret(SECRET, NORTH, [SOUTH.card, Keys.generate("south").card])


def test_whom_a_policy_names_is_known_and_nobody_else(sealed):
    book = {"site": {"north": NORTH.card}, "coordinator": {"lead": LEAD.card}}
    assert opened_secret(sealed, SOUTH, Policy().pins(book)) == SECRET
    strict = Policy(sites={"west": WEST.card.fingerprint, "south": SOUTH.card.fingerprint})
    with pytest.raises(RoundError, match="'north' is not known here"):
        opened_secret(sealed, SOUTH, strict.pins(book))


# --- a campaign -----------------------------------------------------------------------------------

TERMS = {"epsilon": 1.0, "expected_rows": 20_000}


def campaign(those, hidden, tmp_path):
    """Run marginals and tables; return both rounds, their results, and each site's plan."""
    marginals = Plan.marginals(SCHEMA, **TERMS)
    given = {"plan": marginals} if hidden else {}
    first = those.open(plan=Layout.of(marginals) if hidden else marginals)
    sent = {name: site.submit(first, **given) for name, site in those.sites.items()}
    merged = those.sum(first, sent)
    merged.save(tmp_path / "marginals.hush")
    result = Result.load(tmp_path / "marginals.hush")
    result.check_round(first)
    if hidden:
        plans = {n: tables_after(marginals, result.counts, secret=SECRET) for n in those.sites}
        what = check_drawn_from(Layout.of(plans["s00"]), result.counts)
    else:
        what = tables_after(marginals, result.counts, seed=1)
        plans = dict.fromkeys(those.sites, what)
    second = round_after(first, what, those.lead, DEADLINE)
    sent = {
        name: site.submit(second, at=second.opened, **({"plan": plans[name]} if hidden else {}))
        for name, site in those.sites.items()
    }
    total = those.sum(second, sent, second.opened)
    return first, second, merged, total, plans


class Campaign:
    """Of three sites: its consortium, both rounds, both results, and each site's plan."""

    def __init__(self, folder, hidden):
        self.folder, self.those = folder, Consortium(folder, 3, rows=200)
        done = campaign(self.those, hidden, folder)
        self.first, self.second, self.merged, self.total, self.plans = done

    @property
    def costs(self):
        books = [site.book.total("all rows") for site in self.those.sites.values()]
        return [*books, self.total.ledger.epsilon]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same campaign, by whether it hides its hash functions."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hushtable_federation.clock.read", lambda: T0)
        made = {hidden: Campaign(tmp_path_factory.mktemp("c"), hidden) for hidden in (True, False)}
    yield made
    for one in made.values():
        one.those.close()


@pytest.fixture
def done(both):
    return both[True]


def test_a_hidden_campaign_costs_what_an_open_one_costs(both):
    for hidden, one in both.items():
        assert (one.second.plan is None) == hidden
        assert one.second.previous == (one.first.round_id,)
        assert [spent.what for spent in one.total.ledger.behind_plan] == ["marginals"]
        assert one.costs == pytest.approx([1.0] * 4, rel=1e-3)
    assert both[True].costs == pytest.approx(both[False].costs, rel=1e-9)
    assert both[True].second.terms == both[False].second.terms
    assert both[True].second.site_scale == both[False].second.site_scale


def test_three_sites_draw_the_same_plan_to_the_bit(done):
    contents = set()
    for name, plan in done.plans.items():
        assert plan.hidden
        plan.save(done.folder / name)
        contents.add((done.folder / name).read_bytes())
    assert len(contents) == 1


def test_the_result_of_a_hidden_campaign_is_verified_and_opened(done):
    done.total.save(done.folder / "result.hush")
    result = Result.load(done.folder / "result.hush")
    result.check_round(done.second)
    sites = done.those.sites
    answer = sites["s01"].book.answer(done.second.round_id)
    result.check_own("s01", answer.share, answer.content)
    opened = result.counts.open(done.plans["s02"])
    assert opened.plan.hidden
    sent = sum(site.sent(done.second) for site in sites.values())
    assert (result.counts.counts == sent).all()
    assert (opened.counts == result.counts.layout.restored(sent, done.plans["s02"])).all()
    assert opened.spent() == result.counts.spent()
    assert opened.release_id == result.counts.ledger.release_id


def test_a_layout_that_leaves_out_what_was_spent_is_refused(done):
    fresh = draw_hidden(SECRET, SCHEMA, **TERMS)
    with pytest.raises(RoundError, match="was not drawn from this result"):
        check_drawn_from(Layout.of(fresh), done.merged)
    layout = Layout.of(done.plans["s00"])
    assert check_drawn_from(layout, done.merged) is layout


def test_tables_follow_from_marginals_that_were_laid_out(done):
    with pytest.raises(RoundError, match="tables are drawn from marginals"):
        tables_after(done.plans["s00"], done.total, secret=SECRET)
    with pytest.raises(RoundError, match="not designed for a budget"):
        tables_after(Plan.marginals(SCHEMA), done.merged, secret=SECRET)
    other = tables_after(Plan.marginals(SCHEMA, **TERMS), done.merged, secret=b"t" * 32)
    assert other.plan_id != done.plans["s00"].plan_id


def test_only_the_coordinator_opens_what_follows(consortium):
    those = consortium(2)
    first = those.open()
    with pytest.raises(RoundError, match="these are the keys of 's00'"):
        round_after(first, those.plan, those.sites["s00"].keys, DEADLINE)


def test_a_layout_in_place_of_the_plan_is_named(tmp_path):
    Layout.of(Plan.marginals(SCHEMA, **TERMS)).save(tmp_path / "layout.hush")
    with pytest.raises(FileError, match="holds a layout: give the plan"):
        read_plan(tmp_path / "layout.hush")


def test_marginals_may_be_read_by_others_unless_they_are_marked(tmp_path):
    """They follow from the schema: there are no hash functions in them to hide."""
    marginals = Plan.marginals(SCHEMA, **TERMS)
    marginals.save(tmp_path / "open.hush")
    (tmp_path / "open.hush").chmod(0o644)
    assert read_plan(tmp_path / "open.hush").hidden
    dataclasses.replace(marginals, hidden=True).save(tmp_path / "hidden.hush")
    (tmp_path / "hidden.hush").chmod(0o644)
    with pytest.raises(PrivacyError, match="others may read this file"):
        read_plan(tmp_path / "hidden.hush")
