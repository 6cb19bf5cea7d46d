"""Completion in the shell: what it offers, and the scripts that ask for it."""

import pytest

from hushtable.cli import main


@pytest.fixture
def hushtable(monkeypatch, capsys):
    """Run the command with some variables of the environment; return exit code and output."""

    def run(*arguments, **environment):
        with monkeypatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            code = main(arguments)
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def offered(hushtable):
    """Return what bash is offered for the last of some words."""

    def offered(words):
        place = str(len(words.split(" ")) - 1)
        asked = {"COMP_WORDS": words, "COMP_CWORD": place, "_HUSHTABLE_COMPLETE": "complete_bash"}
        code, out = hushtable(**asked)
        assert code == 0
        return out.split()

    return offered


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("hushtable s", ["score", "sketch"]),
        ("hushtable plan dr", ["draft", "draw"]),
        ("hushtable fit --conta", ["--contamination"]),
        ("hushtable round sy", ["sync"]),
        ("hushtable fit rows", []),  # the shell completes files itself, where nothing is offered
        ("hushtable nonsense", []),
    ],
)
def test_commands_and_options_are_completed(offered, words, some):
    assert offered(words) == some


def test_options_of_a_command_are_its_own(offered):
    options = offered("hushtable plan draw schema.toml --")
    assert {"--output", "--help"} <= set(options)
    assert "--version" not in options


@pytest.mark.parametrize(
    ("shell", "asked", "answer"),
    [
        ("zsh", "hushtable sk", '"sketch":"Count rows under a plan'),
        ("fish", "hushtable sk", "sketch\tCount rows under a plan"),
    ],
)
def test_other_shells_get_the_line_of_the_command_too(hushtable, shell, asked, answer):
    asks = {"_TYPER_COMPLETE_ARGS": asked, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert answer in hushtable(_HUSHTABLE_COMPLETE=f"complete_{shell}", **asks)[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_shown_and_installed(hushtable, shell, tmp_path):
    home = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    code, shown = hushtable("--show-completion", shell, **home)
    assert code == 0
    assert f"complete_{shell}" in shown
    code, installed = hushtable("--install-completion", shell, **home)
    assert code == 0
    assert f"{shell} completion installed" in installed
    [script] = [path for path in tmp_path.rglob("*hushtable*") if path.is_file()]
    assert script.read_text().strip() == shown.strip()
    assert hushtable("--show-completion", "tcsh", **home)[0] == 2
