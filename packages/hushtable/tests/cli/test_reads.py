"""How rows are read: said once, to ``fit``, and kept in the model for later files."""

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from hushtable import load
from hushtable.cli import main
from hushtable.data import read

READ = {"missing": ["ERR"], "kinds": {"CRP": "number"}, "drop": ["Fall"]}


@pytest.fixture(scope="module")
def labor(tmp_path_factory):
    """Return a folder with an export, and a model of it."""
    folder = tmp_path_factory.mktemp("labor")
    rng = np.random.default_rng(0)
    lines = ["Fall;TSH;CRP"]
    for i, (tsh, crp) in enumerate(rng.lognormal(0, 1, (200, 2)).tolist()):
        lines.append(f"F{i};{tsh:.2f};{'<0,5' if crp < 0.5 else f'{crp:.2f}'}".replace(".", ","))
    lines[17] = "F16;ERR;1,20"
    (folder / "labor.csv").write_text("\n".join(lines) + "\n")
    said = [
        "--missing",
        "ERR",
        "--as",
        "CRP=number",
        "--drop",
        "Fall",
        "--tables",
        "20",
        "--seed",
        "0",
    ]
    assert main(["fit", f"{folder}/labor.csv", *said, "-o", f"{folder}/m.hush"]) == 0
    return folder


def test_options_of_fit_are_kept_for_later_files(labor, capsys):
    file, model = labor / "labor.csv", labor / "m.hush"
    assert main(["score", str(file), "--model", str(model), "-o", f"{labor}/s.csv"]) == 0
    assert "CRP" not in capsys.readouterr().out  # nothing is missing there
    scores = pyarrow.csv.read_csv(labor / "s.csv")["score"].to_numpy()
    expected = load(model).score_samples(read(file, **READ))
    assert np.array_equal(scores, expected)


# --- how files are laid out -----------------------------------------------------------------------

PLACES = ["\u0141\u00f3d\u017a", "Gda\u0144sk", "\u017bary", "Wroc\u0142aw"]


def polish(path, *, encoding="cp1250", delimiter=",", header=True, above=0):
    """Write visits with the names of Polish towns."""
    rng = np.random.default_rng(3)
    rows = [["place", "n"]] * header
    rows += [[PLACES[i % 4], f"{x:.2f}"] for i, x in enumerate(rng.normal(9, 2, 200))]
    text = "a note\n" * above + "".join(delimiter.join(row) + "\n" for row in rows)
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ({}, ["--read", "encoding=cp1250"]),
        ({"delimiter": "~"}, ["--read", "encoding=cp1250", "--read", "delimiter=~"]),
        ({"header": False}, ["--read", "encoding=cp1250", "--read", "no_header=true"]),
        ({"above": 3}, ["--read", "encoding=cp1250", "--read", "skip_lines=3"]),
        ({"encoding": "utf-16-le"}, ["--read", "encoding=utf-16-le"]),
    ],
)
def test_the_layout_given_to_fit_holds_for_later_files(how, options, tmp_path, capsys):
    file, model = polish(tmp_path / "a.csv", **how), str(tmp_path / "m.hush")
    fit = ["fit", str(file), *options, "--tables", "9", "--seed", "0", "-o", model]
    assert main(fit) == 0
    for at, more in enumerate([[], options]):
        out = f"{tmp_path}/{at}.csv"
        code = main(["score", str(file), "--model", model, *more, "-o", out])
        assert code == 0, capsys.readouterr().err
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    assert load(model).plan_.schema.features[0].categories == tuple(sorted(PLACES))
    # The same in Python; and a later export in UTF-8 is no other.
    scores = load(model).score_samples(str(file))
    later = polish(tmp_path / "b.csv", **how | {"encoding": "utf-8"})
    np.testing.assert_array_equal(load(model).score_samples(str(later)), scores)
    # What is said of a later file comes first.
    polish(tmp_path / "c.csv", **how | {"encoding": "iso-8859-2"})
    again = ["score", f"{tmp_path}/c.csv", "--model", model, "--read", "encoding=iso-8859-2"]
    assert main([*again, "-o", f"{tmp_path}/2.csv"]) == 0
    assert (tmp_path / "2.csv").read_bytes() == (tmp_path / "0.csv").read_bytes()


def test_a_file_of_another_format_has_no_use_for_the_layout(tmp_path):
    file, model = polish(tmp_path / "a.csv"), str(tmp_path / "m.hush")
    assert main(["fit", str(file), "--read", "encoding=cp1250", "--tables", "9", "-o", model]) == 0
    table = pyarrow.csv.read_csv(polish(tmp_path / "b.csv", encoding="utf-8"))
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet")
    expected = load(model).score_samples(str(file))
    np.testing.assert_array_equal(load(model).score_samples(f"{tmp_path}/b.parquet"), expected)


# --- options that are entries, or gone ------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("review a.csv --drop x", "is now an entry of --read: --read drop=..."),
        ("drift a.hush a.csv --missing ERR", "is now an entry of --read: --read missing=..."),
        ("fit a.csv --keep-text x", "--as COLUMN=category keeps the texts of a column"),
        ("plan check a.toml a.csv --table", "hushtable check DATA shows how each column is read"),
        ("drift a.hush a.csv --threads 2", "it uses all cores that the process may use"),
        ("fit a.csv --threads 2", "it uses all cores that the process may use"),
        ("plan draw a.toml --relations r.hush", "hushtable fit --relations finds"),
        ("plan relations m.hush", "relations are found where the rows are"),
        ("plan verdicts m.hush", "learn at each site (hushtable learn)"),
        ("score a.csv --only-counted", "leave rows of new contexts out"),
        ("plan draw a.toml --apart 12", "the second and the third number of --horizon T,K,A"),
        ("score a.csv --count 3", "--contamination N flags the N rows with the lowest scores"),
    ],
)
def test_options_of_earlier_versions_are_refused_with_what_replaces_them(words, says, capsys):
    assert main(words.split()) == 2
    assert says in capsys.readouterr().err
