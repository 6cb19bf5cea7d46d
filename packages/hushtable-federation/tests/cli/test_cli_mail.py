"""A round by mail: each party has a folder of its own, and mails what is new in it."""

import random
import shutil

import pytest

from cli_helpers import SCHEMA, do, trust, visit, write_rows
from hushtable import load
from hushtable_federation.book.book import Book

PARTIES = "lead", "north", "south"


@pytest.fixture
def here(tmp_path, capsys):
    """A round of two sites in the coordinator's folder; those of the sites are empty."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", tmp_path / "schema.toml", "--tables", 5, "--seed", 1,
       "-o", tmp_path / "plan.hush")  # fmt: skip
    do("round", "keygen", "lead", "--folder", tmp_path)
    for seed, name in enumerate(PARTIES[1:]):
        do("round", "keygen", name, "--cap", 3, "--persons", "1", "--folder", tmp_path)
        write_rows(tmp_path / f"{name}.csv", 200, seed)
    do("round", "open", tmp_path / "plan.hush", tmp_path / "north.card", tmp_path / "south.card",
       "--key", tmp_path / "lead.key", "--epsilon", 1, "-o", tmp_path / "round.hush")  # fmt: skip
    for name in PARTIES:
        (tmp_path / f"{name}.box").mkdir(mode=0o755)
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_a_round_by_mail_in_any_order_and_with_repetitions(here, run, seed):
    rng, mailed, state = random.Random(seed), [], {}
    cards = trust(here, *PARTIES)

    def call(name, *options):
        rows = None if name == "lead" else f"{name}.csv"
        done = run(*visit(here, here / f"{name}.box", name, *options, rows=rows), "--json")
        if done.code == 2:  # its mail with the round is on the way
            assert "holds no round" in done.err
            return
        assert done.code == 0, done.out + done.err
        state[name] = done.json["rounds"][0]["state"]
        new = [here / f"{name}.box" / file for file in done.json["new_files"]]
        assert all(path.is_file() for path in new)
        mailed.extend((path, other) for path in new for other in PARTIES if other != name)

    call("lead", "--post", here / "round.hush")
    arrived = []
    while mailed or set(state.values()) != {"done"}:
        rng.shuffle(mailed)
        for path, other in [*mailed[:4], *rng.sample(arrived, min(2, len(arrived)))]:
            shutil.copy(path, here / f"{other}.box")  # some again
        arrived += mailed[:4]
        del mailed[:4]
        name = rng.choice(PARTIES)
        call(name, *(() if name == "lead" else cards))
    (result,) = (here / "lead.box").glob("*.result.*")
    sent = []
    for name in PARTIES[1:]:
        with Book.open(here / f"{name}.book") as book:
            (one,) = book.answers()
            sent.append(one.sent)
    assert (load(result).counts == sum(sent)).all()
    files = [{path.name for path in (here / f"{name}.box").iterdir()} for name in PARTIES]
    assert files[0] == files[1] == files[2]
