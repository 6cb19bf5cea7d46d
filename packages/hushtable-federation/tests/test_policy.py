"""A site's policy: what it refuses, each in local words, with nothing spent."""

import pytest

from hushtable import Feature, Plan, Schema
from hushtable.errors import (
    FileError,
    HushTableError,
    PlanError,
    PrivacyError,
    RoundError,
    UsageError,
)
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys
from hushtable_federation.policy import Approval, Policy, load_policy, policy_beside, write_policy
from hushtable_federation.protocol.messages import Message, ask
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.reply import Reply, trust
from hushtable_federation.round import Round
from round_helpers import DEADLINE, SCHEMA, T0, Consortium, Online, send


@pytest.fixture
def strict(tmp_path):
    """Write a strict policy; return where, and a function that changes it."""
    path = policy_beside(tmp_path / "north.key")
    write_policy(path, "north", 2.0, 1e-6)

    def change(old, new):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return path

    change.path = path
    return change


def refused(round_, site, policy=None, at=T0, attended=True, approval=None):
    """Return the word with which a site refuses; None if it would answer. Nothing is spent."""
    try:
        reply = Reply(
            round_, site.keys, site.book, policy=policy, at=at, attended=attended, approval=approval
        )
        reply.check_known()
    except HushTableError as error:
        assert site.book.answers() == []
        return error.word
    return None


# --- the file -----------------------------------------------------------------------------------


def test_a_new_policy_is_strict(strict):
    policy = load_policy(strict.path)
    assert strict.path.stat().st_mode & 0o777 == 0o600
    assert (policy.epsilon, policy.total_epsilon, policy.delta) == (2.0, 2.0, 1e-6)
    assert not policy.unattended
    assert not policy.coordinator_may_be_site
    assert not policy.coordinators
    assert not policy.sites
    assert policy.known_sites == 2
    assert policy.persons == "column"
    assert policy.masks


def test_a_policy_without_an_entry_is_as_strict_as_a_new_one(strict):
    for line in ('persons = "column"\n', "masks = true\n"):
        strict(line, "")
    policy = load_policy(strict.path)
    assert (policy.persons, policy.masks) == ("column", True)


def test_an_entry_of_before_has_no_effect(strict):
    """Policies of 1.0.0rc1 have it; rounds that it would allow are refused by everyone."""
    strict("masks = true\n", "masks = true\nmax_rows = true\n")
    assert load_policy(strict.path).masks


def test_every_comment_of_the_template_can_be_used(strict):
    text = strict.path.read_text()
    for name in ("lead", "south", "fingerprint", "[[feature]]", "name", "kind", "low", "high"):
        text = text.replace(f"# {name}", name)
    strict.path.write_text(text)
    policy = load_policy(strict.path)
    assert set(policy.coordinators) == {"lead"}
    assert set(policy.sites) == {"south"}
    assert policy.features == (Feature.numeric("age", low=0, high=120),)
    assert policy.officer == " ".join(["0000"] * 8)


def test_a_policy_that_is_missing(tmp_path):
    with pytest.raises(FileError, match=r"no policy here.*round keygen"):
        load_policy(tmp_path / "none.policy.toml")


def test_a_policy_that_others_may_write(strict):
    strict.path.chmod(0o620)
    with pytest.raises(PrivacyError, match="others may write"):
        load_policy(strict.path)


def test_a_policy_that_cannot_be_read(tmp_path):
    folder = tmp_path / "folder.policy.toml"
    folder.mkdir()
    with pytest.raises(FileError, match="cannot be read"):
        load_policy(folder)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("version = 1", "version = 2", "version 2.*upgrade"),
        ("version = 1", "", "version None"),
        ("version = 1", "version = ", "not a TOML file"),
        ("[round]", "[rounds]", "unknown entry 'rounds'"),
        ("known_sites", "known_site", r"\[round\] unknown entry 'known_site'"),
        ("delta = 1e-06", "", "lacks delta"),
        ("total_epsilon = 2.0", "total_epsilon = 1.0", "epsilon is above total_epsilon"),
        ("delta = 1e-06", 'delta = "small"', "delta='small'"),
        ("known_sites = 2", "known_sites = 0", "known_sites=0"),
        ("answer = false", "answer = true", "unattended answers are allowed, but no plan"),
        ("answer = false", "answer = 1", "needs true or false"),
        ("masks = true", "masks = 1", r"line \d+: \[round\] masks is 1: needs true or false"),
        ('persons = "column"', 'persons = "affirmed"', "needs 'column', or the most rows"),
        ('persons = "column"', "persons = 0", "needs 'column', or the most rows"),
        ('persons = "column"', "persons = true", "needs 'column', or the most rows"),
        ("plans = []", "plans = 7", "needs a list"),
        (
            "# south = ",
            "lead = 7\n# lead = ",
            r"line 15: \[sites\] lead is 7: needs the fingerprint",
        ),
        ("# fingerprint = ", 'fingerprint = "12"  # ', "needs the fingerprint"),
        ("known_sites = 2", "known_sites = 3\n[sites]\n", "Cannot declare|twice|not a TOML"),
    ],
)
def test_a_policy_that_is_damaged_or_contradicts_itself(strict, old, new, says):
    with pytest.raises(FileError, match=says):
        load_policy(strict(old, new))


def test_contradictions():
    one, other = " ".join(["0123"] * 8), " ".join(["4567"] * 8)
    with pytest.raises(PlanError, match="only 1 other sites are named"):
        Policy(sites={"south": one}, known_sites=3)
    with pytest.raises(PlanError, match="also named as a site"):
        Policy(coordinators={"lead": one}, sites={"lead": one, "south": other})
    Policy(coordinators={"a": one}, sites={"a": one}, coordinator_may_be_site=True)


# --- the terms, point by point -----------------------------------------------------------------


def test_each_point_in_which_a_round_can_break_it(consortium):
    those = consortium(3)
    site = those.sites["s00"]
    round_ = those.open()
    fits = {"unattended": True, "features": SCHEMA.features}
    assert refused(round_, site, Policy(**fits), attended=False) is None
    narrow = tuple(Feature.numeric(f"x{j}", low=-4.0, high=5.0) for j in range(3))
    texts = (Feature.categorical("x0", ["a"]), *SCHEMA.features[1:])
    for change in (
        {"epsilon": 0.9},
        {"delta": 1e-7},
        {"unattended": False},
        {"features": SCHEMA.features[:2]},
        {"features": narrow},
        {"features": texts},
    ):
        policy = Policy(**fits | change)
        assert refused(round_, site, policy, attended=False) is Refusal.POLICY, change
    assert refused(round_, site, Policy(**fits, total_epsilon=0.9, epsilon=0.8)) is Refusal.POLICY
    assert refused(round_, site, Policy(epsilon=0.99, total_epsilon=0.99)) is Refusal.POLICY
    cheap = those.open(epsilon=0.5, title="cheap")
    site.submit(cheap)
    after = Policy(total_epsilon=0.9, epsilon=0.9)
    with pytest.raises(RoundError) as caught:
        Reply(those.open(epsilon=0.85), site.keys, site.book, policy=after, at=T0)
    assert caught.value.word is Refusal.BUDGET


def test_a_round_without_masks_needs_a_policy_that_allows_it(consortium):
    those = consortium(3)
    site, round_ = those.sites["s00"], those.open(masked=False)
    for attended in (True, False):
        for masks, word in ((True, Refusal.POLICY), (False, None)):
            policy = Policy(unattended=True, features=SCHEMA.features, masks=masks)
            assert refused(round_, site, policy, attended=attended) is word
    assert refused(round_, site) is None  # no policy is given: a person looks at the round


@pytest.mark.parametrize(
    ("affirmed", "stated", "word"),
    [
        (1, 1, None),
        (40, 40, None),
        (40, 41, None),
        (40, 39, Refusal.POLICY),
        (2, 1, Refusal.POLICY),
    ],
)
def test_a_round_states_no_fewer_rows_of_a_person_than_are_affirmed(
    consortium, affirmed, stated, word
):
    """The coordinator chooses the number after the policy was written: a lower one is refused."""
    those = consortium(2)
    site, round_ = those.sites["s00"], those.open(rows_per_person=stated)
    reply = Reply(round_, site.keys, site.book, policy=Policy(persons=affirmed), at=T0)
    sketch = site.sketch(reply.plan)
    if word is None:
        reply.counted(sketch)
    else:
        with pytest.raises(Refused, match=f"--rows-per-person {affirmed}") as caught:
            reply.counted(sketch)
        assert caught.value.word is word
    reply.check_persons(identified=True)  # a column tells persons: whatever is stated is kept to


def test_plans_may_be_named_in_place_of_columns(consortium):
    those = consortium(3)
    site, round_ = those.sites["s00"], those.open()
    only = Policy(unattended=True, plans=(those.plan.plan_id,))
    assert refused(round_, site, only, attended=False) is None
    other = those.open(plan=Plan.draw(SCHEMA, random_state=1, n_tables=5))
    assert refused(other, site, only, attended=False) is Refusal.POLICY
    assert refused(other, site, only) is Refusal.POLICY  # what is named binds a person, too


def test_categories_have_to_be_among_the_policys(consortium):
    those = consortium(2)
    schema = Schema([Feature.categorical("x0", ["f", "m", "x"])])
    round_ = those.open(plan=Plan.draw(schema, random_state=0, n_tables=4))
    for allowed, word in ((("f", "m", "x", "y"), None), (("f", "m"), Refusal.POLICY)):
        policy = Policy(features=(Feature.categorical("x0", allowed),))
        assert refused(round_, those.sites["s00"], policy) is word


@pytest.mark.parametrize(("asked", "allowed"), [("Zu\u0308rich", "Z\u00fcrich"), ("a ", "\ufeffa")])
def test_texts_of_a_round_and_a_policy_are_compared_as_those_of_rows(consortium, asked, allowed):
    those = consortium(2)
    schema = Schema([Feature.categorical(asked, [asked, "m"])])
    round_ = those.open(plan=Plan.draw(schema, random_state=0, n_tables=4))
    policy = Policy(features=(Feature(allowed, "categorical", categories=(allowed, "m")),))
    assert refused(round_, those.sites["s00"], policy) is None
    policy = Policy(features=(Feature.categorical(allowed, ["m"]),))
    assert refused(round_, those.sites["s00"], policy) is Refusal.POLICY


def test_a_coordinator_that_is_a_site(consortium):
    those = consortium(3)
    round_ = those.open(keys=those.sites["s01"].keys)
    site = those.sites["s00"]
    site.book.trust([those.sites["s01"].keys.card], "coordinator")
    assert refused(round_, site) is Refusal.POLICY
    assert refused(round_, site, Policy(coordinator_may_be_site=True)) is None


# --- who --------------------------------------------------------------------------------------


def test_a_peer_is_not_a_coordinator(consortium):
    those = consortium(3)
    round_ = those.open(
        keys=those.sites["s01"].keys, cards=[those.sites[n].keys.card for n in ("s00", "s02")]
    )
    assert refused(round_, those.sites["s00"]) is Refusal.UNKNOWN


def test_cards_swapped_after_pinning(consortium):
    those = consortium(3)
    site, false = those.sites["s00"], Keys.generate("s01")
    pinned = Policy(
        coordinators={"lead": those.lead.card.fingerprint},
        sites={n: those.sites[n].keys.card.fingerprint for n in ("s01", "s02")},
    )
    assert refused(those.open(), site, pinned) is None
    cards = [site.keys.card, false.card, those.sites["s02"].keys.card]
    for policy in (pinned, Policy()):
        assert refused(those.open(cards=cards), site, policy) is Refusal.UNKNOWN
    lead = those.open(keys=Keys.generate("lead"))
    for policy in (pinned, Policy()):
        assert refused(lead, site, policy) is Refusal.UNKNOWN
    # A table that names someone alone decides: what the book knows does not count beside it.
    narrow = Policy(sites={"s01": those.sites["s01"].keys.card.fingerprint})
    assert refused(those.open(), site, narrow) is Refusal.UNKNOWN


@pytest.mark.parametrize(("colluders", "word"), [(0, Refusal.UNKNOWN), (1, None)])
def test_noise_is_shared_with_known_sites_only(consortium, colluders, word):
    those = consortium(4)
    stranger = Keys.generate("x")
    round_ = those.open(cards=[*those.cards, stranger.card], colluders=colluders)
    assert refused(round_, those.sites["s00"]) is word


def test_one_known_site_too_few(consortium):
    those = consortium(3)
    site, fakes = those.sites["s00"], [Keys.generate(f"z{i}").card for i in range(3)]
    round_ = those.open(cards=[*those.cards, *fakes], colluders=3)
    assert refused(round_, site, Policy(known_sites=3)) is None
    assert refused(round_, site, Policy(known_sites=4)) is Refusal.UNKNOWN
    # Without masks each site adds the whole noise, and needs no one's.
    plain = those.open(cards=[*those.cards, *fakes], masked=False)
    assert refused(plain, site, Policy(known_sites=4, masks=False)) is None


def test_trust_takes_roles_from_the_round(consortium, tmp_path):
    those = consortium(3)
    site = those.sites["s00"]
    with Book.create(tmp_path / "new.book", site.keys.card, epsilon=3.0) as book:
        round_ = those.open()
        reply = Reply(round_, site.keys, book, at=T0)
        assert [card.name for card in reply.new] == ["lead", "s01", "s02"]
        with pytest.raises(Refused, match="coordinator 'lead' is not known"):
            send(reply, site.sketch(reply.plan))
        with pytest.raises(UsageError, match="ask 's01' directly"):
            trust(book, round_, [Keys.generate("s01").card])
        reply.trust(reply.new)
        assert reply.new == []
        assert set(book.known("coordinator")) == {"lead"}
        assert set(book.known("site")) == {"s01", "s02"}
        send(reply, site.sketch(reply.plan))


@pytest.mark.parametrize("name", ["S01", "s 01", "s-01", "s0_1", "s.01"])
def test_names_that_look_alike(consortium, name):
    those = consortium(2)
    with pytest.raises(FileError, match="looks like another's"):
        those.open(cards=[*those.cards, Keys.generate(name).card])


# --- the officer --------------------------------------------------------------------------------


def test_an_officers_signature(consortium, tmp_path):
    those = consortium(2)
    site, officer = those.sites["s00"], Keys.generate("officer")
    policy = Policy(officer=officer.card.fingerprint)
    round_, other = those.open(), those.open(title="other")
    Approval.sign(round_, officer).save(tmp_path / "a.approval")
    right = Approval.load(tmp_path / "a.approval")
    assert refused(round_, site, policy, approval=right) is None
    mine = Approval.sign(round_, officer)
    wrong = {
        "missing": None,
        "another's": Approval.sign(round_, Keys.generate("officer")),
        "of another round": Approval.sign(other, officer),
        "moved": Approval(round_.round_id, officer.card, Approval.sign(other, officer).signature),
        "forged": Approval(round_.round_id, officer.card, mine.signature[::-1]),
    }
    for what, approval in wrong.items():
        assert refused(round_, site, policy, approval=approval) is Refusal.POLICY, what
    (tmp_path / "b.approval").write_text("{}")
    with pytest.raises(FileError, match="holds no approval"):
        Approval.load(tmp_path / "b.approval")


# --- unattended -------------------------------------------------------------------------------


def test_unattended_sites_trust_nobody_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("hushtable_federation.clock.read", lambda: T0)
    those = Consortium(tmp_path, 3)
    stranger = Keys.generate("ministry")
    round_ = Round.open(
        those.plan, those.cards, stranger, epsilon=1.0, deadline=DEADLINE, at=T0, least=2
    )
    agent = Online(those, round_).agents["s00"]

    before = those.sites["s00"].book.known()
    for step in ("hello", "keys"):
        answer = Message.read(
            agent.answer(ask(round_, step, stranger, {})), those.sites["s00"].keys.card
        )
        assert (answer.step, answer.body) == ("refused", {"word": "unknown"})
    assert those.sites["s00"].book.known() == before
    those.close()
