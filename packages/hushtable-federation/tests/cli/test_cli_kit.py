"""``hushtable round kit``: what it writes fits together, and it never writes over anything."""

import configparser
import shutil
import subprocess

import pytest

from cli_helpers import contents, do
from hushtable.data.schema import Schema
from hushtable_federation import SiteSettings
from hushtable_federation.book.book import Book
from hushtable_federation.policy import load_policy
from trial_machine import PARTIES, at_home, commands_of


@pytest.fixture
def trial(tmp_path, run):
    done = run("round", "kit", tmp_path / "trial", "--sites", "north,south,west")
    assert done.code == 0
    assert "Nothing was run" in done.out
    return tmp_path / "trial"


def test_every_party_has_its_own_files(trial, run, tmp_path):
    given = run("round", "kit", tmp_path / "other", "--sites", "a, b", "--json").json
    assert (given["sites"], given["coordinator"]) == (["a", "b"], "lead")
    assert set(given["files"]) == set(contents(tmp_path / "other"))
    assert {path.name for path in trial.iterdir() if path.is_dir()} == set(PARTIES)
    for name in PARTIES:
        files = {path.name for path in (trial / name).iterdir()}
        rows = {"schema.toml"} if name == "lead" else {"patients.csv", f"{name}.policy.toml"}
        units = {f"hushtable-round-{name}.{kind}" for kind in ("service", "timer")}
        assert files == rows | units | {"install.sh", "crontab", f"{name}.toml"}


def test_no_mark_is_left_and_the_same_names_give_the_same_files(trial, tmp_path):
    do("round", "kit", tmp_path / "again", "--sites", "north,south,west")
    assert contents(tmp_path / "again") == contents(trial)
    for name, content in contents(trial).items():
        words = content.decode()
        marks = [word for word in words.split("@")[1::2] if word.isupper()]
        assert not marks, name


def test_settings_and_policies_are_those_that_the_commands_read(trial):
    for name in PARTIES:
        settings = SiteSettings.load(trial / name / f"{name}.toml")
        assert settings.address.folder == f"sftp://{name}@localhost/round"
        assert settings.key == trial / name / f"{name}.key"
    schema = Schema.from_toml(trial / "lead" / "schema.toml")
    for name in PARTIES[1:]:
        policy = load_policy(trial / name / f"{name}.policy.toml")
        assert policy.unattended
        assert policy.masks
        assert policy.persons == "column"
        assert [one.name for one in policy.features] == [one.name for one in schema.features]


def test_three_odd_patients_a_site(trial):
    for name in PARTIES[1:]:
        lines = (trial / name / "patients.csv").read_text().splitlines()
        assert lines[0] == "patient,age,pulse,potassium"
        assert len(lines) == 1001
        assert len({line.split(",")[0] for line in lines}) == 1001
        odd = [line for line in lines if line.endswith((",44,9.8", ",212,4.1", ",188,1.6"))]
        assert len(odd) == 3


def test_a_round_with_what_the_kit_wrote(trial, run, tmp_path):
    """In one folder of this machine, by the kit's own settings, policies and rows."""
    settings = at_home(trial, run)
    key = ("--key", trial / "lead" / "lead.key")
    for name in PARTIES:  # timers run from the start on, and have nothing to do
        early = run("round", "sync", "--site", settings[name], "--unattended")
        assert early.code == 0
        assert "State: waiting; exit code 0." in early.out
        assert run("round", "sync", "--site", settings[name]).code == 2
    schema, plan, asked = trial / "lead" / "schema.toml", tmp_path / "p.hush", tmp_path / "r.hush"
    do("plan", "draw", schema, "--epsilon", 1, "--expected-rows", 3000, "-o", plan)
    verified = trial / "lead" / "lead.verified"
    do("round", "open", plan, verified, *key, "--epsilon", 1, "--least", 2, "-o", asked)
    do("round", "sync", "--site", settings["lead"], "--post", asked)
    for _ in range(6):  # until it is done
        states = {
            name: run("round", "sync", "--site", path, "--unattended", "--json").json
            for name, path in settings.items()
        }
        if all(one["rounds"][0]["state"] == "done" for one in states.values()):
            break
    else:
        pytest.fail(str(states))
    (result,) = (trial / "north").glob("*.result.hush")
    scores = tmp_path / "scores.csv"
    rows = trial / "north" / "patients.csv"
    top = run("score", rows, "--drop", "patient", "--model", result, "--top", 3, "--json",
              "-o", scores).json  # fmt: skip
    found = [rows.read_text().splitlines()[1 + one["row"]] for one in top["top"]]
    assert sum(line.endswith((",44,9.8", ",212,4.1", ",188,1.6")) for line in found) == 3
    for name in PARTIES[1:]:
        with Book.open(trial / name / f"{name}.book") as book:
            assert len(book.answers()) == 1


def test_the_page_types_fifteen_commands_at_most(trial):
    typed = [line for block in commands_of((trial / "README.md").read_text()) for line in block]
    assert 1 + len(typed) <= 15  # with round kit itself
    assert all(line.startswith(("sh ", "su ")) for line in typed)


def test_scripts_are_shell_and_units_are_units(trial):
    sh = shutil.which("sh")
    if sh is None:
        pytest.skip("needs sh")
    for script in trial.rglob("*.sh"):
        subprocess.run([sh, "-n", script], check=True)
        if shellcheck := shutil.which("shellcheck"):
            subprocess.run([shellcheck, script], check=True)
    for path in [*trial.rglob("*.service"), *trial.rglob("*.timer")]:
        unit = configparser.RawConfigParser(strict=True)
        unit.read(path)
        assert {"Service", "Timer"} & set(unit.sections())


def test_units_as_systemd_reads_them(trial, tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze")
    program = tmp_path / "hushtable"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    units = []
    for path in [*trial.rglob("*.service"), *trial.rglob("*.timer")]:
        text = path.read_text().replace("ExecStart=hushtable ", f"ExecStart={program} ")
        units.append(tmp_path / path.name)
        units[-1].write_text(text)
    done = subprocess.run(
        [analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert not [line for line in done.stderr.splitlines() if "hushtable" in line], done.stderr


def test_the_compose_file_names_what_the_kit_wrote(trial):
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((trial / "compose.yaml").read_text())["services"]
    assert set(services) == {"sftp", *PARTIES}
    for name in PARTIES:
        one = services[name]
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
        (mount,) = one["volumes"]
        assert (trial / mount.partition(":")[0]).is_dir()
        assert f"--site {name}.toml --unattended" in one["command"][-1]
    shell = services["sftp"]["command"][-1].replace("$$", "$")
    if sh := shutil.which("sh"):
        subprocess.run([sh, "-n", "-c", shell], check=True)


def test_no_secret_is_in_it(trial):
    for name, content in contents(trial).items():
        assert b"PRIVATE KEY" not in content, name
        assert not name.endswith((".key", ".book", ".pub")), name


# --- what is refused ------------------------------------------------------------------------------


def test_a_second_kit_in_the_same_folder_is_refused(trial, refused):
    words = refused("round", "kit", trial, "--sites", "a,b")
    assert "a kit is there already, so nothing was changed" in words


def test_a_folder_with_files_is_refused(tmp_path, run):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    done = run("round", "kit", tmp_path / "mine", "--sites", "a,b")
    assert done.code == 1
    assert "'notes.txt' and other files are there already, so nothing was changed" in done.err
    done = run("round", "kit", tmp_path / "mine" / "notes.txt", "--sites", "a,b")
    assert done.code == 1
    assert "is a file: name a new folder" in done.err
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "empty").mkdir()
    do("round", "kit", tmp_path / "empty", "--sites", "a,b")
    assert (tmp_path / "empty" / "README.md").exists()


def test_of_a_kit_that_cannot_be_written_nothing_stays(tmp_path, run, monkeypatch):
    def full(self, *_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    done = run("round", "kit", tmp_path / "trial", "--sites", "a,b")
    assert done.code == 1
    assert "No space left on device" in done.err
    assert "the files written so far were removed" in " ".join(done.err.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sites", "north"), "needs two or more names"),
        (("--sites", "north,north"), "north appears twice"),
        (("--sites", "lead,north"), "lead appears twice"),
        (("--sites", "north,"), "name ''"),
        (("--sites", "north,../etc"), "name '../etc'"),
        (("--sites", "north,South"), "name 'South'"),
        (("--sites", "north,a b"), "name 'a b'"),
        (("--sites", "north,$(id)"), "name '$(id)'"),
        (("--sites", f"north,{'a' * 32}"), "small letters"),
        (("--sites", "north,süd"), "name 's\\xfcd'"),
        (("--sites", "a,b", "--coordinator", "Lead"), "name 'Lead'"),
        (("--sites", "a,b", "--server", "host;id"), "--server 'host;id'"),
        (("--sites", "a,b", "--server", "host:0"), "--server 'host:0'"),
        (("--sites", "a,b", "--server", "host:65536"), "--server 'host:65536'"),
        (("--sites", "a,b", "--server", "sftp://host"), "needs a host or host:port"),
        (("--sites", "a,b", "--server", ""), "--server ''"),
    ],
)
def test_names_that_cannot_be_used_everywhere(tmp_path, run, options, words):
    done = run("round", "kit", tmp_path / "trial", *options)
    assert done.code == 2
    assert words in " ".join(done.err.split())
    assert not list(tmp_path.iterdir())
