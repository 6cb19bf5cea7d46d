"""Results that were forged, rolled, cut or are another round's: no one follows them."""

import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from hushtable import files, load
from hushtable.cli import main
from hushtable.errors import FileError
from hushtable.privacy.ledger import Ledger
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from round_helpers import Consortium

#: What a manifest says of its file; all else is content that a forger may write again.
OF_THE_FILE = ("protocol", "kind", "arrays", "digest", "signature", "writer")


@pytest.fixture
def scene(tmp_path, request):
    """Three sites, their round, what they sent, and the signed result, all in files."""
    those = Consortium(tmp_path, 3)
    masked = getattr(request, "param", True)
    round_ = those.open(at=now(), deadline=now() + timedelta(days=7), masked=masked, least=3)
    round_.save(tmp_path / "round.hush")
    rows = ["x0,x1,x2", *(",".join(f"{x:.3f}" for x in row) for row in those.sites["s00"].X)]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    sent = {}
    for name, site in those.sites.items():
        sent[name] = site.submit(round_, at=now())
        (tmp_path / f"{name}.submission.hush").write_bytes(sent[name])
    those.sum(round_, sent, now()).save(tmp_path / "result.hush")
    those.close()
    return SimpleNamespace(
        those=those,
        round=round_,
        folder=tmp_path,
        result=tmp_path / "result.hush",
        changed=tmp_path / "changed.hush",
        submissions=[tmp_path / f"{name}.submission.hush" for name in sent],
    )


def written_again(source, target, sign, change=lambda entries, arrays: None):
    """Write a file again with other content, consistent in itself."""
    content = files.read(source)
    entries = {k: v for k, v in content.manifest.items() if k not in OF_THE_FILE}
    arrays = dict(content.arrays)
    change(entries, arrays)
    files.write_bytes(target, files.pack(content.kind, entries, arrays, sign))
    return target


def roll(entries, arrays):
    """Move rows from one cell of the first table to another: all tables still hold as many."""
    counts = arrays["counts"].copy()
    counts[:2] += [3, -3]
    arrays["counts"] = counts


def strip(entries, arrays):
    del entries["result"]


@pytest.fixture
def run(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def refused(run):
    def refused(*arguments, says, code=1):
        done = run(*arguments)
        assert (done.code, done.out) == (code, ""), done.out
        assert done.err.startswith("hushtable: error: ")
        for words in [says] if isinstance(says, str) else says:
            assert words in done.err
        machine = run(*arguments, "--json")
        assert machine.code == code
        assert set(json.loads(machine.out)) == {"error", "kind"}

    return refused


def everything_that_reads(scene):
    """Return the commands that build counts from a result's file."""
    here, file = scene.folder, scene.changed
    return [
        ("inspect", file),
        ("round", "verify", file, "--round", here / "round.hush"),
        ("round", "model", file, "--book", here / "s00.book", "-o", here / "x.hush"),
        ("score", here / "rows.csv", "--model", file, "-o", here / "x.csv"),
        ("merge", file, "-o", here / "x.hush"),
        ("report", file, "-o", here / "x.html"),
        ("plan", "ranks", file, "-o", here / "x.hush"),
    ]


# --- what is true passes --------------------------------------------------------------------------


@pytest.mark.parametrize("scene", [False], indirect=True, ids=["no masks"])
def test_a_true_result_is_verified_by_every_site(scene, run):
    own = run("round", "verify", scene.result, *scene.submissions, "--book",
              scene.folder / "s01.book", "--json")  # fmt: skip
    assert own.code == 0, own.err
    facts = json.loads(own.out)
    assert facts["recomputed"]
    assert facts["own_answer"]
    assert facts["signed_by"]["fingerprint"] == scene.those.lead.card.fingerprint
    assert set(facts["submissions"]) == {"s00", "s01", "s02"}
    digest = facts["digest"]
    again = run("round", "verify", scene.result, "--round", scene.folder / "round.hush",
                "--digest", digest, "--digest", f"{digest[:32]} {digest[32:].upper()}")  # fmt: skip
    assert again.code == 0, again.err
    assert "Verified: " in again.out
    assert digest[:4] + " " + digest[4:8] in again.out
    assert "Whether this site's answer is in it: give --book." in again.out


def test_inspect_score_and_model_say_who_signed(scene, run):
    fingerprint = scene.those.lead.card.fingerprint
    shown = run("inspect", scene.result).out
    assert f"Signed by        lead ({fingerprint})" in shown
    assert f"Round            {scene.round.round_id}" in shown
    assert "Submissions      3: s00, s01, s02" in shown
    for command in everything_that_reads(scene)[2:4]:
        command = [scene.result if part == scene.changed else part for part in command]
        assert f"is signed by lead ({fingerprint})" in " ".join(run(*command).out.split())
        facts = json.loads(run(*command, "--json").out)
        assert facts["signed_by"] == {"name": "lead", "fingerprint": fingerprint}


def test_with_nothing_to_compare_only_the_fingerprint_is_told(scene, run):
    alone = run("round", "verify", scene.result)
    assert alone.code == 0
    told = " ".join(alone.out.split())
    assert "Verified" not in told
    assert "call lead, and compare the fingerprint" in told
    assert scene.those.lead.card.fingerprint in told
    assert not json.loads(run("round", "verify", scene.result, "--json").out)["round_checked"]


def test_a_book_notes_what_was_verified(scene, run, monkeypatch):
    notes = {}
    monkeypatch.setattr(Book, "verified", lambda _, digest: notes.get(digest), raising=False)
    monkeypatch.setattr(
        Book,
        "note_verified",
        lambda _, digest, round_id: notes.setdefault(digest, now()),
        raising=False,
    )
    book = ("--book", scene.folder / "s00.book")
    model = ("round", "model", scene.result, *book, "-o", scene.folder / "x.hush")
    assert json.loads(run(*model, "--json").out)["verified"] is None
    assert "hushtable round verify checks the signature" in " ".join(run(*model).out.split())
    assert run("round", "verify", scene.result, *book).code == 0
    assert list(notes) == [files.read(scene.result).digest]
    assert f"verified on {now():%Y-%m-%d}" in " ".join(run(*model).out.split())


# --- what is not, does not ------------------------------------------------------------------------


def test_rolled_counts_are_refused_wherever_they_are_read(scene, refused):
    """Finding 14: counts moved by one cell, under the signature of the true ones."""
    signature = files.read(scene.result).signature
    written_again(scene.result, scene.changed, lambda *_: signature, roll)
    with pytest.raises(FileError, match="the signature is not that of 'lead'"):
        load(scene.changed)
    for command in everything_that_reads(scene):
        refused(*command, says=["the signature is not that of 'lead'", "forged or edited"])


def test_a_signature_that_was_cut_off_is_missed(scene, refused):
    """Finding 14: the digest does not cover the signature, so that it can go without a trace."""
    written_again(scene.result, scene.changed, None)
    refused("inspect", scene.changed, says="only partly signed")
    signature = files.read(scene.result).signature
    written_again(scene.result, scene.changed, lambda *_: signature, strip)
    refused("inspect", scene.changed, says="only partly signed")
    scene.changed.write_bytes(scene.result.read_bytes()[:-8])
    refused("inspect", scene.changed, says="truncated")


def test_a_result_without_any_seal_is_said_to_be_unsigned(scene, run, refused):
    """Finding 14: rolled counts in a file like those of `merge`. No one can tell; it is said."""

    def both(entries, arrays):
        strip(entries, arrays)
        roll(entries, arrays)

    written_again(scene.result, scene.changed, None, both)
    _, verify, model, score, merge, *_ = everything_that_reads(scene)
    refused(*verify, says="is not signed: anyone could have made or changed it")
    for command in (("inspect", scene.changed), model, score, merge):
        shown = run(*command)
        assert shown.code == 0
        words = "Signed by no one" if command[0] == "inspect" else "is not signed"
        assert f"{words}: anyone could have made or changed it" in " ".join(shown.out.split())
        assert json.loads(run(*command, "--json").out)["signed_by"] is None


def test_another_with_the_coordinators_name_signs(scene, run, refused):
    """Finding 14: the forger's own keys, under the coordinator's name."""
    forger = Keys.generate("lead")

    def forge(entries, arrays):
        roll(entries, arrays)
        entries["result"]["coordinator"] = forger.card.to_dict()

    written_again(scene.result, scene.changed, forger.sign, forge)
    assert forger.card.fingerprint in run("inspect", scene.changed).out
    for where in (("--round", scene.folder / "round.hush"), ("--book", scene.folder / "s00.book")):
        refused("round", "verify", scene.changed, *where,
                says=["it is forged", forger.card.fingerprint,
                      scene.those.lead.card.fingerprint])  # fmt: skip


def test_a_card_that_is_not_whole_is_refused(scene, refused):
    """The masking key of another on the card: its own signature does not cover that."""
    forger, other = Keys.generate("lead"), Keys.generate("lead")

    def forge(entries, arrays):
        card = forger.card.to_dict() | {"masking": other.card.masking}
        entries["result"]["coordinator"] = card

    written_again(scene.result, scene.changed, forger.sign, forge)
    for command in everything_that_reads(scene)[:4]:
        refused(*command, says="the card of 'lead' was edited")


@pytest.mark.parametrize("scene", [False], indirect=True, ids=["no masks"])
def test_the_coordinator_itself_changes_the_sum(scene, refused):
    """The true signature over false counts: the submissions say so, and so does another site."""
    written_again(scene.result, scene.changed, scene.those.lead.sign, roll)
    true = files.read(scene.result).digest
    round_ = ("--round", scene.folder / "round.hush")
    refused("round", "verify", scene.changed, *scene.submissions, *round_,
            says=["its counts are not the sum of the submissions", "Do not use it"])  # fmt: skip
    refused("round", "verify", scene.changed, *round_, "--digest", true,
            says=["two different results", "Use neither"])  # fmt: skip


def other_submission(entries):
    entries["result"]["submissions"]["s00"] = "0" * 64


def left_out(entries):
    del entries["result"]["submissions"]["s00"]


def stranger(entries):
    submissions = entries["result"]["submissions"]
    submissions["s99"] = submissions.pop("s00")


def shares_exchanged(entries):
    entries["ledger"]["shares"].reverse()


def fewer_parts_counted(entries):
    ledger = Ledger.from_dict(entries["ledger"])
    entries["ledger"] = replace(ledger, pool=replace(ledger.pool, counted=1)).to_dict()


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (other_submission, "it names the submission 000000000000 of 's00'"),
        (left_out, "it names submissions of ['s01', 's02']"),
        (stranger, "it names submissions of ['s01', 's02', 's99']"),
        (shares_exchanged, "its ledger does not hold the share of 's00'"),
        (fewer_parts_counted, "its ledger does not match the round's terms"),
    ],
)
def test_the_coordinator_itself_states_what_is_not_so(scene, refused, edit, says):
    """The true signature over a list or ledger that is not that of the round."""
    written_again(
        scene.result, scene.changed, scene.those.lead.sign, lambda entries, _: edit(entries)
    )
    refused("round", "verify", scene.changed, "--book", scene.folder / "s00.book",
            says=[says, "is not the result of round"])  # fmt: skip


def test_the_result_of_another_round(scene, refused):
    """A true result, of a round that this site did not answer."""
    here = scene.folder / "elsewhere"
    here.mkdir()
    others = Consortium(here, 3)
    round_ = others.open(at=now(), deadline=now() + timedelta(days=7))
    sent = {name: site.submit(round_, at=now()) for name, site in others.sites.items()}
    others.sum(round_, sent, now()).save(scene.changed)
    others.close()
    refused("round", "verify", scene.changed, "--round", scene.folder / "round.hush",
            says="it is the result of another round")  # fmt: skip
    refused("round", "verify", scene.changed, "--book", scene.folder / "s00.book",
            says="which 's00' did not answer")  # fmt: skip
    round_.save(here / "round.hush")
    refused("round", "verify", scene.result, "--book", scene.folder / "s00.book", "--round",
            here / "round.hush", says="leave out --round")  # fmt: skip


def test_what_is_asked_wrongly(scene, refused):
    here = scene.folder
    refused("round", "verify", scene.result, *scene.submissions, code=2,
            says="submissions are checked against their round: give --round or --book")  # fmt: skip
    refused("round", "verify", scene.result, scene.submissions[0], "--round", here / "round.hush",
            says="the submissions of 's01', 's02' are missing")  # fmt: skip
    refused("round", "verify", scene.result, here / "none.hush", says="no such file")
    refused("round", "verify", here / "round.hush", says="holds a round")
    refused("round", "verify", scene.result, "--digest", "abc", code=2,
            says="needs the 64 hexadecimal digits")  # fmt: skip
