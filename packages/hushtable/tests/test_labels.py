"""Texts as labels: what no one sees is folded, and what may be one label is asked about."""

import io
import json
import re
import unicodedata

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hushtable
from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data import labels, read, understand
from hushtable.data.labels import fold, fold_names, fold_texts, key
from hushtable.data.texts import words
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, FileError, PlanError
from hushtable.history import History

NFC, NFD = "Z\u00fcrich", "Zu\u0308rich"
HEART, PICTURE = "\u2764", "\u2764\ufe0f"
#: Texts that are one with the first, and what no one sees of each.
ONE = [
    NFC, NFD, f" {NFC}", f"{NFC}\t", f"{NFC}\u00a0", f"\u2009{NFD}\u202f", f"\ufeff{NFC}",
    f"{NFC}\u200b", f"\u200e{NFC}\u200f", f"\u3000{NFC}\u200d", f"{NFC}\ufe0f", f"Z\ufe0e{NFC[1:]}",
]  # fmt: skip
#: Letters whose combinations are in doubt, and what is around texts.
LETTERS = st.sampled_from(
    [*"aAeu \t\n", "\u0308", "\u0301", "\u0327", "\u00e9", "\u1100", "\u1161", "\u11a8", "\uac00",
     "\u0434", "\u03b1", "\u0387", "\u6f22", "\u304b", "\u3099", "\u0644", *labels.BLANKS,
     *labels.MARKS, *labels.SELECTORS, "\U0001f600", "\u212b", "\u0340", "\u0483", "\u0958"]
)  # fmt: skip
TEXTS = st.text(LETTERS, max_size=6) | st.text(
    st.characters(exclude_categories=("Cs", "Cn")), max_size=6
)


def table(*towns, **more):
    """Return rows with these towns in turn, and a number."""
    n = 20 * len(towns)
    return pa.table({"town": [*towns] * 20, "size": [i % 17 / 4 for i in range(n)], **more})


def fitted(rows, **options):
    return HushTable(n_tables=5, random_state=0, passes=1).fit(read(rows, **options))


# --- folding --------------------------------------------------------------------------------------


@given(st.lists(TEXTS | st.none(), max_size=12), st.integers(0, 3))
@example(["", None, " a"], 1)
@example(["\u00a0", "\u0434\u0308"], 0)
def test_columns_are_folded_as_their_texts(texts, start):
    column = pa.array(texts, pa.string()).slice(start)
    found = fold_texts(column)
    assert found.to_pylist() == [None if text is None else fold(text) for text in texts[start:]]


def test_letters_that_need_no_folding():
    plain = [c for c in map(chr, range(0x30000)) if re.match(f"[{labels._PLAIN}]", c)]
    second = {
        parts[1]
        for c in map(chr, range(0x30000))
        if len(parts := unicodedata.decomposition(c).split()) == 2 and parts[0][0] != "<"
    }
    assert len(plain) > 30_000
    for c in plain:
        assert fold(c) == c
        assert not unicodedata.combining(c)
        assert f"{ord(c):04X}" not in second


# --- names of columns -----------------------------------------------------------------------------


def test_names_that_fold_to_one_are_refused_in_words():
    with pytest.raises(
        DataError, match=r"columns 'a' and 'a\\xa0' have the same name, 'a': they differ"
    ):
        fold_names(["b", "a", "a\u00a0"])
    with pytest.raises(DataError, match="how accents are composed: rename one of the two"):
        HushTable().fit(pd.DataFrame({NFC: [1.0, 2.0], NFD: [3.0, 4.0]}))


def test_a_file_with_such_names_is_refused_by_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"b,{NFC},{NFD}\n" + "1,2,3\n" * 9)
    with pytest.raises(
        DataError, match=r"line 1: columns 'Z\\xfcrich' and 'Zu\\u0308rich' have the same name"
    ):
        HushTable().fit(path)


def test_a_numeric_frame_is_found_too():
    rows = pd.DataFrame({NFC: [1.5, 2.5, 9.0] * 9, "b": [1.0, 2.0, 7.0] * 9})
    model = HushTable(n_tables=3, random_state=0).fit(rows)
    later = rows.rename(columns={NFC: f"{NFD} "})
    assert model.score_samples(later).tolist() == model.score_samples(rows).tolist()
    assert model.feature_names_in_.tolist() == [NFC, "b"]


def test_names_that_a_person_gives_are_folded(tmp_path):
    without = table("a", "b", "c")
    rows = without.append_column(f"{NFD} ", [[f"p{i % 30}" for i in range(60)]])
    model = fitted(rows, drop=[NFC], kinds={" town": "category"})
    assert model.plan_.schema.names == ["town", "size"]
    assert read(rows, columns=[NFD, "size\u00a0"]).names == (NFC, "size")
    of_persons = HushTable(n_tables=3, random_state=0).fit(rows, person=f"{NFD} ")
    assert of_persons.persons_.n_persons == 30
    assert of_persons.plan_.schema.names == ["town", "size"]
    in_context = HushTable(n_tables=3, random_state=0, context=["town "]).fit(without)
    assert in_context.plan_.context == ["town"]
    kept = model.outliers(rows, n=3, keep=[f"{NFD} "])
    assert sum(name.strip() == NFD for name in kept.column_names) == 1


# --- categories -----------------------------------------------------------------------------------


def test_spellings_are_one_category():
    model = fitted(table(*ONE, "Bern", HEART, PICTURE))
    assert model.plan_.schema.features[0].categories == ("Bern", NFC, HEART)
    clean = fitted(table(*[NFC] * len(ONE), "Bern", HEART, HEART))
    assert model.plan_.plan_id == clean.plan_.plan_id
    assert model.sketch_.counts.tolist() == clean.sketch_.counts.tolist()


def test_a_public_schema_is_folded(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(
        f'[[feature]]\nname = "{NFD}"\nkind = "categorical"\ncategories = ["{NFD}", "b "]\n'
    )
    schema = Schema.from_toml(path)
    assert (schema.names, schema.features[0].categories) == ([NFC], (NFC, "b"))
    path.write_text(
        f'[[feature]]\nname = "a"\nkind = "categorical"\ncategories = ["{NFD}", "{NFC}"]\n'
    )
    with pytest.raises(
        PlanError, match=r"'Zu\\u0308rich' and 'Z\\xfcrich' are the same, because they differ"
    ):
        Schema.from_toml(path)


# --- the version in a plan ------------------------------------------------------------------------


def of_towns(version, categories):
    feature = Feature("town", "categorical", categories=tuple(categories))
    return Schema([feature, Feature.numeric("size", low=0, high=5)], labels=version)


def test_a_plan_notes_the_version(tmp_path):
    plan = Plan.draw(of_towns(1, [NFC, "b"]), n_tables=3, random_state=0)
    assert plan.to_dict()["schema"]["labels"] == labels.LABELS_VERSION == 1
    plan.save(tmp_path / "a.hush")
    assert hushtable.load(tmp_path / "a.hush").plan_id == plan.plan_id
    before = Plan.draw(of_towns(0, [NFC, "b"]), n_tables=3, random_state=0)
    assert "labels" not in before.to_dict()["schema"]
    assert before.difference(plan) == "texts are compared by rules 0 against 1"
    with pytest.raises(PlanError, match="update hushtable"):
        of_towns(2, ["a"])
    with pytest.raises(
        PlanError, match=r"no row can have the category 'Zu.*, because texts are folded"
    ):
        of_towns(1, [NFD])


def test_a_plan_without_the_note_compares_texts_as_before():
    schema = of_towns(0, [NFC, NFD, " a", "a"])
    plan = Plan.draw(schema, n_tables=3, random_state=0)
    again = Plan.from_content(plan.to_dict(), plan.arrays())
    assert again.plan_id == plan.plan_id
    rows = table(NFC, NFD, " a", "a", "a ")
    [batch] = open_rows(rows, again.schema).read()
    assert batch.column(0).to_pylist()[:5] == [NFC, NFD, " a", "a", "a "]
    assert Sketch.from_data(again, rows).tally[0, 1] == 20  # unseen: the last


# --- labels that may be one -----------------------------------------------------------------------


@pytest.mark.parametrize(("group", "how"), [
    (["Alpha", "alpha", "ALPHA"], "case"), (["Stra\u00dfe", "STRASSE"], "case"),
    (["K\u00f6ln", "Koln"], "case or accents"), (["\u0130zmir", "izmir"], "case or accents"),
    (["Alpha", "\u0410lpha"], "look-alike signs"), (["Bern", "\uff22ern"], "look-alike signs"),
    (["m2", "m\u00b2"], "look-alike signs"), (["A", "\u0391"], "look-alike signs"),
    (["a b", "a\u00a0b"], "look-alike signs"),
])  # fmt: skip
def test_labels_that_are_asked_about(group, how):
    assert labels.near(dict.fromkeys(group, 1)) == [sorted(group)]
    assert labels.is_asked(group)
    assert labels.difference(group) == how


# --- yes and no -----------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [
    ["Yes", "yes", "Y", "TRUE", "No", "no", "N", "FALSE"], ["ja", "Ja", "nein"],
    ["oui", "Non", "NON"], ["s\u00ed", "si", "no"], ["sim", "N\u00e3o", "nao"],
    ["tak", "nie", "TAK"], ["yes", "yes", "1", "no"],
    ["\u0434\u0430", "\u043d\u0435\u0442", "\u0414\u0430"], ["evet", "hay\u0131r", "HAYIR"],
    ["\u306f\u3044", "\u3044\u3044\u3048", "yes"], ["\u662f", "\u5426", "yes"], ["Y", "y", "N"],
    ["\u0646\u0639\u0645", "\u0644\u0627", "yes"], ["\u2713", "\u2714\ufe0f", "\u2717"],
    ["ano", "ne", "Ano"], ["nej", "ja", "Ja"], ["waar", "ja", "nee"], ["true", "yes", "false"],
])  # fmt: skip
def test_yes_and_no_in_their_spellings_are_one_category(texts):
    model = fitted(table(*texts))
    [one, _] = model.understanding_
    assert one.kind == "category"
    assert one.reading.kind == "answer"
    assert one.question == ""
    categories = model.plan_.schema.features[0].categories
    assert {words.side(text) for text in categories} == {True, False}
    assert len(categories) == 2
    said = ["Yes" if words.side(text) else "NO" for text in texts]
    later = table(*said)
    assert model.score_samples(later).tolist() == model.score_samples(table(*texts)).tolist()


@pytest.mark.parametrize("texts", [
    ["Yes", "No"], ["yes", "no", "unknown"], ["x", "yes", "no"], ["S", "N", "O"],
    ["ja", "Ja", "JA"],
])  # fmt: skip
def test_other_texts_are_categories_as_they_are(texts):
    [one, _] = understand(table(*texts)).columns
    assert one.reading.kind == "category"
    assert one.evidence == f"{len(texts)} different texts"


def test_yes_and_no_are_written_as_most_write_them_and_read_from_other_types(tmp_path):
    model = fitted(table("Yes", "Yes", "y", "No", "no", "no"))
    assert model.plan_.schema.features[0].categories == ("Yes", "no")
    assert model.understanding_[0].evidence == "yes and no in 4 spellings"
    expected = model.score_samples(table("Yes", "Yes", "y", "No", "no", "no")).tolist()
    for column in ([True, True, True, False, False, False], [1, 1, 1, 0, 0, 0]):
        assert model.score_samples(table(*column)).tolist() == expected


# --- what else is compared ------------------------------------------------------------------------


def test_persons_and_entities_are_folded():
    ids = [NFC, f"{NFD} ", "b", "b\u00a0"] * 5
    rows = pa.table({"who": ids, "x": [float(i) for i in range(20)]})
    found = HushTable(n_tables=3, random_state=0).fit(rows, person="who")
    assert found.persons_.n_persons == 2
    at = pa.array(range(20), pa.timestamp("s"))
    history = History(entity="who ", time="at")
    history.update(rows.append_column("at", at))
    assert list(history._numbers) == [NFC, "b"]
    again = History.from_bytes(history.to_bytes())
    assert list(again._numbers) == [NFC, "b"]


@pytest.mark.parametrize("names", [["a", "b"], ["a", "B "], ["a", "a "]])
def test_names_of_an_older_history_are_folded_or_refused(names):
    rows = {"who": ["a", "b"], "at": pa.array([0, 1], pa.timestamp("s")), "x": [1.0, 2.0]}
    history = History(entity="who", time="at")
    history.update(pa.table(rows))
    with np.load(io.BytesIO(history.to_bytes())) as arrays:
        content = dict(arrays)
    said = json.loads(content["said"].tobytes())
    del said["labels"]
    said["names"] = names
    content["said"] = np.frombuffer(json.dumps(said).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **content)
    if len({fold(name) for name in names}) < 2:
        with pytest.raises(FileError, match="make it again from its rows"):
            History.from_bytes(file.getvalue())
    else:
        again = History.from_bytes(file.getvalue())
        assert list(again._numbers) == [fold(name) for name in names]


@given(TEXTS)
def test_folding_again_changes_nothing(text):
    assert fold(fold(text)) == fold(text)
    assert unicodedata.is_normalized("NFC", fold(text))


@given(TEXTS)
def test_what_is_folded_is_one_key(text):
    assert key(fold(text)) == key(text)
    assert key(f" {text}\u00a0") == key(text)
