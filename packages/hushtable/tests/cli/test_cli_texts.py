"""``hushtable fit`` on columns of text: which it asks about, and what then."""

import pytest

from hushtable import HushTable, load


@pytest.fixture
def csv(tmp_path):
    """Thirty rows: a number, a column with few texts, and two with one for each row."""
    lines = [f"{i % 9},{'ab'[i % 2]},P{i},{i} of them" for i in range(30)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(['x,kind,id,"a, note"', *lines]) + "\n")
    return path


def test_doubtful_columns_are_refused_with_ways_out_that_work(run, refused, csv, tmp_path):
    out = tmp_path / "m.hush"
    says = [
        "id and a, note: 30 different texts in 30 rows: identifiers, names or free text\n",
        """Add: --drop 'id,"a, note"'\n""",
    ]
    message = refused("fit", csv, "-o", out, says=says)
    assert "kind" not in message
    assert "P17" not in message
    assert run("fit", csv, "-o", out, "--drop", 'id,"a, note"').code == 0
    assert load(out).plan_.schema.names == ["x", "kind"]
    assert run("fit", csv, "-o", out, "--as", 'id=category,"a, note=category"').code == 0
    assert load(out).plan_.schema.names == ["x", "kind", "id", "a, note"]
    assert run("fit", csv, "-o", out, "--as", 'id=category,"a, note=id"').code == 0
    assert load(out).plan_.schema.names == ["x", "kind", "id"]


def test_what_was_chosen_already_stays_so(refused, csv, tmp_path):
    fit = ["fit", csv, "-o", tmp_path / "m.hush"]
    refused(*fit, "--drop", "x", says="""Add: --drop 'x,id,"a, note"'\n""")
    refused(*fit, "--as", "id=category", says="""Add: --drop '"a, note"'\n""")
    refused(*fit, "--columns", "id,x", says="Add: --drop id\n")


def test_in_python_all_texts_are_taken_with_a_warning(csv):
    with pytest.warns(UserWarning, match=r"\['id', 'a, note'\] look like identifiers"):
        detector = HushTable(n_tables=5).fit(csv)
    assert len(detector.plan_.schema.features[2].categories) == 30


def test_columns_with_too_many_texts_are_named_together(refused, tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"a{i},{i % 9},b{i}" for i in range(10_001)]
    path.write_text("\n".join(["one,x,two", *lines]) + "\n")
    says = ["one and two: more than 10,000 different texts", "--drop one,two\n"]
    refused("fit", path, "-o", tmp_path / "m.hush", says=says)


def test_models_without_text_or_without_numbers(run, csv, tmp_path):
    out = tmp_path / "m.hush"
    said = run("fit", csv, "--columns", "x", "-o", out).out
    assert "values of your rows (the lowest and highest value of 1 column) and exact" in said
    said = run("fit", csv, "--columns", "kind", "-o", out).out
    assert "It contains values of your rows (texts of kind (2)) and exact counts." in said
