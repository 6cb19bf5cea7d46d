"""How rows are read: said once, to ``fit``, and kept in the model for later files."""

import numpy as np
import pyarrow.csv
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


@pytest.mark.parametrize("further", [[], ["--decimal", ","], ["--missing", "n.b."]])
def test_ids_beside_rows_that_are_read_again(labor, further):
    top = labor / "top.csv"
    command = [
        "score",
        f"{labor}/labor.csv",
        "--model",
        f"{labor}/m.hush",
        "--id",
        "Fall",
        *further,
    ]
    assert main([*command, "--top", "3", "-o", str(top)]) == 0
    table = pyarrow.csv.read_csv(top)
    assert [f"F{row}" for row in table["row"].to_pylist()] == table["Fall"].to_pylist()


def test_texts_are_kept_beside_columns_that_are_left_out(tmp_path, capsys):
    rows = [f"Fall {i};Name {i} {i};{i % 7}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["Fall;Name;x", *rows]))
    command = ["fit", f"{tmp_path}/a.csv", "--drop", "Fall", "-o", f"{tmp_path}/m.hush"]
    assert main(command) == 1
    assert "Add: --drop Fall,Name" in capsys.readouterr().err
    assert main([*command, "--keep-text", "Nme"]) == 1
    assert "no column ['Nme']" in capsys.readouterr().err
    assert main([*command, "--keep-text", "Name"]) == 0
    assert load(tmp_path / "m.hush").plan_.schema.names == ["Name", "x"]
