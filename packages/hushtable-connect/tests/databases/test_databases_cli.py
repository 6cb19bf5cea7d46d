"""Databases from the command line."""

import pytest

from hushtable.cli import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a model and its plan's schema."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "rows.csv").write_text("x\n" + "\n".join(str(x % 9) for x in range(50)) + "\n")
    (folder / "s.toml").write_text('[[feature]]\nname = "x"\nkind = "numeric"\nlow = 0\nhigh = 9\n')
    assert main(["fit", f"{folder}/rows.csv", "-o", f"{folder}/m.hush"]) == 0
    assert main(["plan", "draw", f"{folder}/s.toml", "-o", f"{folder}/p.hush"]) == 0
    return folder


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "fit {} -o m.hush", "fit {} -o m.hush --json", "plan draft {} -o s.toml",
        "sketch {} --plan {made}/p.hush -o s.hush", "score {} --model {made}/m.hush -o scores.csv",
        "score {} --model {made}/m.hush -o folder/", "plan check {made}/s.toml {}",
        "report {made}/m.hush {} -o r.html",
    ],
)  # fmt: skip
def test_a_password_is_never_printed(tmp_path, monkeypatch, capsys, made, command, debug):
    monkeypatch.chdir(tmp_path)
    if debug:
        monkeypatch.setenv("HUSHTABLE_DEBUG", "1")
    url = "postgresql://u:Hush99@127.0.0.1:1/d?sslpassword=Hush99"
    assert main(command.format(url, made=made).split()) in (1, 2)
    said = capsys.readouterr()
    assert "127.0.0.1:1/d" in said.err
    assert "Hush99" not in said.out + said.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
