"""What a thief learns who kept the messages of a round, and later has all keys and books."""

import base64
from pathlib import Path

import numpy as np
import pytest

from folder_helpers import Clock, Folder
from hushtable_federation.keys import Keys
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import Message, RoundKeys, ask, passed_on
from hushtable_federation.refusals import Refusal
from hushtable_federation.submission import Submission
from round_helpers import UNATTENDED, Hand, Online, affirmed, agent

pytestmark = pytest.mark.usefixtures("quick_noise")


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def used(monkeypatch):
    """Note the secrets of masks as they are used: private keys, seeds, and keys of masks."""
    found = set()

    def noting(name, of_argument):
        work = getattr(masks, name)

        def noted(first, *others, **options):
            made = work(first, *others, **options)
            found.add(first if of_argument else made)
            return made

        monkeypatch.setattr(masks, name, noted)

    for name in ("own_key", "pair_key", "seal_key"):  # each takes a seed or private key
        noting(name, True)
    noting("pair_key", False)
    return found


def lies_in(secret, files):
    """Whether a secret is in one of the files: as bytes, in hexadecimal digits or in base64."""
    forms = (secret, secret.hex().encode(), base64.b64encode(secret).rstrip(b"="))
    return any(form in content for form in forms for content in files)


def stolen(folder):
    """Return the content of all files of all parties: keys, books, journals; and of the folder."""
    return [path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()]


def play(here, until="done"):
    """Have all visit until the coordinator, and then all sites, have the result."""
    for _ in range(5):
        here.sites()
        if until == "counts":
            if all(here.names("masked", name) for name in here.consortium.sites):
                return
        elif here.visit().state == "done":
            assert {one.state for one in here.sites().values()} == {"done"}
            return
    raise AssertionError("no result")


def test_a_thief_with_all_keys_and_books_finds_no_secret_of_a_past_round(consortium, clock, used):
    """The search finds them as long as the round is under way: so it can find them."""
    those = consortium(4)
    for name, site in those.sites.items():
        site.keys.save(those.folder / f"{name}.key")
    here = Folder(those, those.open(least=3))
    play(here, "counts")
    drawn = set(used)
    assert len(drawn) == 4 * 3 + 6  # of each site two keys and a seed; and the key of each pair
    before = stolen(those.folder)
    assert sum(lies_in(secret, before) for secret in drawn) == 4 * 3
    play(here)
    here.check()
    after = stolen(those.folder)
    # A seed is known, whose mask the result is without; no key of a site or pair is.
    assert not [secret for secret in drawn if lies_in(secret, after)]
    # The keys themselves are among what was stolen.
    for site in those.sites.values():
        assert lies_in(site.keys.masking.private_bytes_raw(), after)


def counts_of(here, name):
    """Return the masked counts that a site sent, as the folder shows them."""
    (path,) = here.names("masked", name)
    return Submission.from_bytes(path.read_bytes(), name, here.round, here.round.opened).words


def seed_of(here, name):
    """Return the seed of a site's own mask: anyone combines it from the shares given."""
    least, found = here.round.needed, {}
    place = here.round.names.index(name)
    for giver in here.round.names:
        (path,) = here.names("unmask", giver)
        message = Message.read(path.read_bytes(), here.round.card(giver))
        share = message.arrays["seeds"][place, : masks.SHARE_BYTES].tobytes()
        found[here.round.names.index(giver) + 1] = share
    return masks.combine(dict([*found.items()][:least]))


def test_masks_do_not_come_from_the_keys_on_the_cards(consortium, clock):
    """With all lasting keys, masked counts stay random; with those of the round, they open."""
    those = consortium(3)
    here = Folder(those, those.open())
    round_id = here.round.round_id
    play(here, "counts")
    of_round = {
        name: bytes.fromhex(site.book.step(round_id, "keys")[2]["mask"])
        for name, site in those.sites.items()
    }
    lasting = {name: site.keys.masking.private_bytes_raw() for name, site in those.sites.items()}
    play(here)
    for name, site in those.sites.items():
        true = site.sent(here.round).astype(np.uint64)
        for private, opens in ((of_round, True), (lasting, False)):
            words = counts_of(here, name).copy()
            own = masks.own_key(seed_of(here, name), round_id, name)
            masks.add_stream(own, words, subtract=True)
            for other in private.keys() - {name}:
                public = masks.public_of(private[other])
                key = masks.pair_key(private[name], public, round_id, name, other)
                masks.add_pair(name, other, key, words, subtract=True)
            assert np.array_equal(words, true) == opens
            if not opens:
                assert (words != true).mean() > 0.99
                assert np.abs(words.view(np.int64).astype(float)).min() > 2.0**40


# --- a coordinator who hands out keys ------------------------------------------------------------


def drawn(online):
    """Return the keys that sites drew, as they are passed on."""
    return {
        n: RoundKeys.read(online.round, n, c).content for n, c in online.answers("keys").items()
    }


def asked_with(online, name, keys):
    """Return a site's answer to a list of keys."""
    request = ask(online.round, "shares", online.consortium.lead, *passed_on(keys))
    site = online.consortium.sites[name]
    return Message.read(agent(site).answer(request), site.keys.card)


@pytest.fixture
def only_keys(consortium, clock):
    """Five sites that have drawn keys for a round, and nothing else."""
    those = consortium(5)
    online = Online(those, those.open(least=3), {"shares": list(those.sites)})
    with pytest.raises(Exception, match="0 sites are left in step 'shares'"):
        online.run()
    return online


def word(message):
    assert message.step == "refused"
    return message.body["word"]


def test_keys_that_others_signed_are_taken_alone(only_keys):
    keys = drawn(only_keys)
    those, round_ = only_keys.consortium, only_keys.round
    s01, later = those.sites["s01"].keys, those.open()
    public = [masks.public_of(masks.draw_key()) for _ in range(2)]
    forged = RoundKeys.sign(round_, Keys.generate("s01"), *public).content
    of_another = RoundKeys.sign(later, s01, *public).content
    weak = [RoundKeys.sign(round_, s01, *two).content for two in ((64 * "0", public[0]),
            (public[0], 64 * "0"))]  # fmt: skip
    for bad in (forged, of_another, *weak, bytes(128), keys["s02"]):
        assert word(asked_with(only_keys, "s00", keys | {"s01": bad})) == Refusal.SHARES
    without_me = {name: one for name, one in keys.items() if name != "s00"}
    own = RoundKeys.sign(round_, those.sites["s00"].keys, *public).content
    for bad in (without_me, keys | {"s00": own}, dict([*keys.items()][:2])):
        assert word(asked_with(only_keys, "s00", bad)) == Refusal.SITES
    assert word(asked_with(only_keys, "s00", keys | {"ministry": forged})) == Refusal.REQUEST
    assert those.sites["s00"].book.step(round_.round_id, "shares") is None
    assert asked_with(only_keys, "s00", keys).step == "shares"
    four = dict([*keys.items()][:4])
    assert word(asked_with(only_keys, "s00", four)) == Refusal.ANSWERED


def test_lists_of_keys_that_split_the_sites_give_no_sum(only_keys):
    """Two groups that mask among themselves alone would show the sum of each.

    Each has as many sites as are needed, with one in both; no one signs a list, or gives shares
    for one, that holds two sites without a mask between them.
    """
    keys, those, round_ = drawn(only_keys), only_keys.consortium, only_keys.round
    groups = {"s00": "s00 s01 s02", "s01": "s00 s01 s02", "s02": "s00 s01 s02 s03 s04",
              "s03": "s02 s03 s04", "s04": "s02 s03 s04"}  # fmt: skip
    for name, group in groups.items():
        answer = asked_with(only_keys, name, {one: keys[one] for one in group.split()})
        assert answer.step == "shares"
        request = ask(round_, "masked", those.lead, {})
        only_keys.log.append(("shares", name, b"", answer.content))
        sent = agent(those.sites[name]).answer(request)
        only_keys.log.append(("masked", name, b"", sent))
    hand = Hand(only_keys)
    for names in ("s00 s01 s02 s03 s04", "s00 s01 s02 s03", "s01 s02 s03"):
        for step in ("survivors", "unmask"):
            for name in names.split():
                rows = {n: bytes(masks.SEALED_BYTES) for n in names.split()}
                request = hand.listing(step, name, names.split(), rows=rows)
                answer = Message.read(
                    agent(those.sites[name]).answer(request), those.sites[name].keys.card
                )
                assert word(answer) in (Refusal.SITES, Refusal.SHARES), (names, step, name)
    request = hand.listing("survivors", "s00", ["s00", "s01", "s02"])
    answer = Message.read(agent(those.sites["s00"]).answer(request), those.sites["s00"].keys.card)
    assert answer.step == "survivors"


def test_who_agreed_to_a_round_sends_its_counts_without_being_asked_again(consortium, clock):
    """The second visit needs no rows, and no policy that lets the site answer by itself."""
    those = consortium(3)
    here = Folder(those, those.open())
    for name in those.sites:
        here.site(name)
    assert here.names("masked", "s02")
    assert not here.names("masked", "s00")
    assert here.site("s00", rows=False).posted == ["shares", "masked"]


def test_the_kept_key_is_in_the_book_alone(consortium, clock):
    """And the messages show the public half, once."""
    those = consortium(3)
    here = Folder(those, those.open())
    here.site("s00")
    (path,) = here.names("keys", "s00")
    message = Message.read(path.read_bytes(), those.sites["s00"].keys.card)
    noted = those.sites["s00"].book.step(here.round.round_id, "keys")
    assert set(message.arrays) == {"keys"}
    public = RoundKeys.read(here.round, "s00", path.read_bytes())
    assert set(noted[2]) == {"mask", "seal"}
    for private, half in zip(noted[2].values(), public[:2], strict=True):
        assert masks.public_of(bytes.fromhex(private)) == half
        assert not lies_in(bytes.fromhex(private), [p.read_bytes() for p in here.names()])
    assert here.site("s00").posted == []  # nothing is drawn again
    assert affirmed(those.sites["s00"]).unattended is UNATTENDED.unattended
