"""Signed results: made by collecting, kept by files, checked against round, book, submissions."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

from hushtable import LocalModel, files, load, plugins
from hushtable.cli import main
from hushtable.errors import FileError, RoundError, UsageError
from hushtable_federation.keys import Keys, grouped
from hushtable_federation.result import Result
from places import DOCS
from round_helpers import T0, Online


@pytest.fixture
def signed(consortium, tmp_path):
    """Three sites, their masked round, what they sent, and the signed result in a file."""
    those = consortium(3)
    round_ = those.open()
    sent = {name: site.submit(round_) for name, site in those.sites.items()}
    result = those.sum(round_, sent)
    result.save(tmp_path / "result.hush")
    return those, round_, sent, result


def digests(sent):
    return {name: files.unpack(content, name).digest for name, content in sent.items()}


def test_a_result_names_its_round_and_all_submissions(signed, tmp_path):
    those, round_, sent, result = signed
    read = Result.load(tmp_path / "result.hush")
    assert read.coordinator == those.lead.card
    assert read.seal == result.seal
    assert read.seal.round_id == round_.round_id
    assert read.seal.submissions == digests(sent)
    assert read.seal.digest == files.read(tmp_path / "result.hush").digest
    read.check_round(round_)
    for name, site in those.sites.items():
        read.check_own(name, site.book.answer(round_.round_id).share, sent[name])
    assert not read.check_submissions(round_, sent, T0)  # named, and under masks
    read.check_digest(grouped(read.seal.digest).upper())


def test_a_file_keeps_its_seal_to_the_bit(signed, tmp_path):
    load(tmp_path / "result.hush").save(tmp_path / "again.hush")
    assert (tmp_path / "again.hush").read_bytes() == (tmp_path / "result.hush").read_bytes()


def test_what_is_made_of_a_result_is_not_signed(signed, tmp_path):
    those, round_, _, result = signed
    answer = those.sites["s00"].book.answer(round_.round_id)
    LocalModel.of(result, answer.share.release, answer.sent, answer.counts).save(
        tmp_path / "local.hush"
    )
    assert files.read(tmp_path / "local.hush").signature is None
    one, other = (site.sketch(those.plan).release(1.0) for site in [*those.sites.values()][:2])
    assert one.seal is None
    assert (replace(one, seal=result.seal) + other).seal is None


def test_what_was_changed_in_memory_is_not_saved_as_signed(signed, tmp_path):
    *_, result = signed
    changed = replace(result, counts=np.roll(result.counts, 1))
    with pytest.raises(FileError, match="is not bit-identical to what 'lead' signed"):
        changed.save(tmp_path / "changed.hush")
    assert not (tmp_path / "changed.hush").exists()
    replace(changed, seal=None).save(tmp_path / "changed.hush")
    with pytest.raises(RoundError, match="is not signed: anyone could have made"):
        Result.load(tmp_path / "changed.hush")


def test_only_the_coordinator_signs(consortium):
    those = consortium(2)
    round_ = those.open(masked=False)
    collection = those.collect(round_, {n: one.submit(round_) for n, one in those.sites.items()})
    assert collection.result().seal is None
    for keys in (Keys.generate("lead"), those.sites["s00"].keys):
        with pytest.raises(RoundError, match="the round was opened by 'lead'"):
            collection.result(keys)
    masked = those.collect(those.open(), {})
    with pytest.raises(RoundError, match="the masks are removed in steps"):
        masked.result()


def test_signed_files_keep_the_published_schema(signed, tmp_path):
    *_, result = signed
    path = DOCS / "hush-manifest-1.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    manifest = files.read(tmp_path / "result.hush").manifest
    validator.validate(manifest)
    assert {"result", "signature"} <= set(manifest)
    for key in set(manifest) - {"writer"}:
        broken = {k: v for k, v in manifest.items() if k != key}
        assert list(validator.iter_errors(broken)), key
    for key in manifest["result"]:
        entry = {k: v for k, v in manifest["result"].items() if k != key}
        assert list(validator.iter_errors(manifest | {"result": entry})), key
    result.plan.save(tmp_path / "plan.hush")
    plan = files.read(tmp_path / "plan.hush").manifest
    for key in ("result", "signature"):
        assert list(validator.iter_errors(plan | {key: manifest[key]}))


def test_a_partial_result_names_those_that_are_in(consortium, tmp_path):
    those = consortium(3)
    round_ = those.open(masked=False, least=2)
    sent = {name: site.submit(round_) for name, site in those.sites.items()}
    late = sent.pop("s02")
    those.sum(round_, sent).save(tmp_path / "result.hush")
    read = Result.load(tmp_path / "result.hush")
    read.check_round(round_)
    assert read.check_submissions(round_, sent, T0)
    share = those.sites["s02"].book.answer(round_.round_id).share
    with pytest.raises(RoundError, match="does not name 's02'"):
        read.check_own("s02", share, late)
    with pytest.raises(RoundError, match=r"late is from 's02', whose submission .* does not name"):
        read.check_submissions(round_, sent | {"late": late}, T0)


@pytest.mark.parametrize("least", [3, 4], ids=["some may be lost", "all stay"])
def test_the_sum_of_an_online_round_names_who_stayed(
    consortium, quick_noise, tmp_path, monkeypatch, capsys, least
):
    monkeypatch.setattr("hushtable_federation.clock.read", lambda: T0)
    those = consortium(4)
    round_ = those.open(least=least)
    online = Online(those, round_, lost={} if least == 4 else {"masked": ["s03"]})
    online.run().save(tmp_path / "result.hush")
    read = Result.load(tmp_path / "result.hush")
    read.check_round(round_)
    sent = online.answers("masked")
    assert read.seal.submissions == digests(sent)
    assert read.sites == ([*those.sites] if least == 4 else ["s00", "s01", "s02"])
    read.check_own("s00", those.sites["s00"].book.answer(round_.round_id).share, sent["s00"])
    round_.save(tmp_path / "round.hush")
    verify = ["round", "verify", "result.hush", "--round", "round.hush", "--book"]
    monkeypatch.chdir(tmp_path)
    assert main([*verify, those.sites["s00"].book.path]) == 0
    assert "What s00 sent is in it, unchanged." in capsys.readouterr().out
    code = main([*verify, those.sites["s03"].book.path])
    assert code == (0 if least == 4 else 1)
    assert not read.check_submissions(round_, sent, T0)


def test_submissions_that_do_not_belong(signed, tmp_path):
    those, round_, sent, _ = signed
    read = Result.load(tmp_path / "result.hush")
    other = those.open(title="another")
    foreign = those.sites["s00"].submit(other)
    for given, says in (
        ({"s00": sent["s00"]}, "the submissions of 's01', 's02' are missing"),
        (sent | {"s00": foreign}, "answers round"),
        (sent | {"s00": sent["s00"][:-9]}, "truncated"),
        (sent | {"s00": b""}, "the file is empty"),
    ):
        with pytest.raises(RoundError, match=says):
            read.check_submissions(round_, given, T0)
    with pytest.raises(RoundError, match="it is the result of another round"):
        read.check_round(other)


def test_a_signature_that_cannot_be_checked_is_not_passed_over(signed, tmp_path, monkeypatch):
    """As in the core alone, which has no code for signatures."""
    monkeypatch.setattr(plugins, "points", lambda group: {})
    with pytest.raises(FileError, match="a signed file needs the package hushtable-federation"):
        load(tmp_path / "result.hush")


def test_digests_that_are_none(signed, tmp_path):
    read = Result.load(tmp_path / "result.hush")
    for text in ("", "ab12", "g" * 64, read.seal.digest + "0"):
        with pytest.raises(UsageError, match="needs the 64 hexadecimal digits"):
            read.check_digest(text)
    with pytest.raises(RoundError, match="two different results"):
        read.check_digest("0" * 64)


def test_other_files_hold_no_result(signed, tmp_path):
    _, round_, *_ = signed
    round_.save(tmp_path / "round.hush")
    with pytest.raises(FileError, match="holds a round: give the result"):
        Result.load(tmp_path / "round.hush")
