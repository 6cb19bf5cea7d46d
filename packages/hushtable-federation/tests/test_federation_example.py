"""The example federation of the docs: its files fit together, and its commands follow no link."""

import configparser
import random
import re
import shutil
import subprocess

import pytest

from cli_helpers import do
from hushtable.data.schema import Schema
from hushtable_federation import SiteSettings
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys
from hushtable_federation.policy import load_policy
from places import ROOT

EXAMPLE, PAGE = ROOT / "docs" / "example-federation", ROOT / "docs" / "how-to" / "site.md"
PARTIES = ("lead", "north", "south", "west")
SITES = PARTIES[1:]
#: Rows of each site that are unusual: age, pulse, potassium.
ODD = ((71, 44, 9.8), (4, 212, 4.1), (96, 188, 1.6))


def cards_in(trial):
    """Return the files of the sites' cards."""
    return [trial / name / f"{name}.card" for name in SITES]


def invented_rows(name, seed):
    """Return a table of 1,000 made-up patients, three of them unusual."""
    rng, rows = random.Random(seed), []
    for _ in range(1_000 - len(ODD)):
        age = min(max(round(rng.gauss(58, 17)), 18), 95)
        rows.append((age, round(rng.gauss(76, 9)), round(rng.gauss(4.2, 0.4), 1)))
    for row in ODD:
        rows.insert(rng.randrange(len(rows)), row)
    lines = [
        f"{name}-{k:04},{age},{pulse},{salt:g}" for k, (age, pulse, salt) in enumerate(rows, 1)
    ]
    return "\n".join(["patient,age,pulse,potassium", *lines]) + "\n"


def is_odd(line):
    """Return whether a line of such a table is of an unusual patient."""
    return line.endswith(tuple(f",{pulse},{salt:g}" for _, pulse, salt in ODD))


def example_files(folder):
    """Write the example's files for each party into a folder of its name, and the others beside."""
    for seed, name in enumerate(PARTIES):
        (folder / name).mkdir(parents=True)
        like = "lead" if name == "lead" else "north"
        for file in EXAMPLE.glob(f"{like}*.toml"):
            text = file.read_text().replace(like, name)
            (folder / name / file.name.replace(like, name)).write_text(text)
        if name != "lead":
            (folder / name / "patients.csv").write_text(invented_rows(name, seed))
    shutil.copy(EXAMPLE / "schema.toml", folder / "lead")


def at_home(trial, run):
    """Set the example's parties up with a folder of rounds on this machine, as after the call.

    Returns the files of the parties, by name.
    """
    example_files(trial)
    box = trial / "round"
    box.mkdir(mode=0o700)
    settings = {name: trial / name / f"{name}.toml" for name in PARTIES}
    for name, path in settings.items():
        cap = () if name == "lead" else ("--cap", 3)
        assert run("round", "keygen", name, *cap, "--folder", path.parent).code == 0
        lines = path.read_text().splitlines()
        kept = [line for line in lines if not line.startswith(("host_key", "login", "folder"))]
        path.write_text("\n".join([*kept, f"folder = {str(box)!r}"]) + "\n")
    cards = {name: Keys.load(trial / name / f"{name}.key").card for name in PARTIES}
    for name in SITES:
        with Book.open(trial / name / f"{name}.book") as book:
            book.trust([cards["lead"]], "coordinator")
            book.trust([cards[one] for one in SITES])
    return settings


def commands_of(page):
    """Return the blocks of commands on the page, each a list of lines, without those of output."""
    found = re.findall(r"```none\n(# .*?)\n```", page.read_text(), re.DOTALL)
    return [block.splitlines() for block in found]


def test_the_page_names_each_file():
    named = re.findall(r"\(<?\.\./example-federation/([^)>]+)", PAGE.read_text())
    assert sorted(named) == sorted(path.name for path in EXAMPLE.iterdir())


def test_settings_policy_and_schema_are_those_that_the_commands_read():
    for name in ("lead", "north"):
        settings = SiteSettings.load(EXAMPLE / f"{name}.toml")
        assert settings.address.folder == f"sftp://{name}@files.example.org/round"
        assert settings.key == EXAMPLE / f"{name}.key"
    policy = load_policy(EXAMPLE / "north.policy.toml")
    assert (policy.unattended, policy.masks, policy.persons) == (True, True, "column")
    assert policy.features == Schema.from_toml(EXAMPLE / "schema.toml").features


def test_units_are_units(tmp_path):
    for path in EXAMPLE.glob("*@.*"):
        unit = configparser.RawConfigParser(strict=True)
        unit.read(path)
        assert {"Service", "Timer"} & set(unit.sections())
    if analyze := shutil.which("systemd-analyze"):
        program = shutil.which("true")
        for path in EXAMPLE.glob("*@.*"):
            text = path.read_text().replace("/usr/local/bin/hushtable ", f"{program} ")
            (tmp_path / path.name.replace("@", "@north")).write_text(text)
        units = sorted(tmp_path.iterdir())
        done = subprocess.run(
            [analyze, "verify", "--man=no", *units], capture_output=True, text=True, check=False
        )
        assert not [line for line in done.stderr.splitlines() if "hushtable" in line], done.stderr


def test_sshd_accepts_its_configuration(tmp_path):
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    keygen = shutil.which("ssh-keygen")
    if sshd is None or keygen is None:
        pytest.skip("needs OpenSSH's server")
    key, file = tmp_path / "host", tmp_path / "sshd_config"
    subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    text = (EXAMPLE / "sshd_hushtable.conf").read_text()
    for more, right in (("", True), ("    PermitNothing yes\n", False)):
        file.write_text(f"HostKey {key}\n{text}{more}")
        done = subprocess.run([sshd, "-t", "-f", file], capture_output=True, text=True, check=False)
        # Where sshd has never run, it also misses a folder of its own.
        faults = [one for one in done.stderr.splitlines() if "privilege separation" not in one]
        assert (faults == []) is right, done.stderr


def test_a_link_in_the_place_of_a_folder_gives_nothing_away(tmp_path):
    """A party that has SFTP alone could own what another party's name points to."""
    (line,) = [one for block in commands_of(PAGE) for one in block if "chown north:hush" in one]
    (tmp_path / "round").mkdir()
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    chowned = tmp_path / "chowned"
    script = line.replace("/srv/hushtable", str(tmp_path)).replace("chown", f"touch {chowned} #")
    (tmp_path / "round" / "north").symlink_to(target)
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=False).returncode != 0
    assert not chowned.exists()
    assert target.stat().st_mode & 0o7777 == 0o700
    (tmp_path / "round" / "north").unlink()
    subprocess.run(["sh", "-c", script], check=True)
    assert chowned.exists()
    assert (tmp_path / "round" / "north").stat().st_mode & 0o7777 == 0o2750


def test_no_command_of_root_writes_into_a_folder_of_a_party():
    """``install -d -o`` and ``chown`` follow links, and a party can make some in its folders."""
    for block in commands_of(PAGE):
        for line in block:
            assert not re.search(r"install -d .*-o |chown -R|chmod|>>? */", line), line
            for found in re.finditer(r"chown \S+ (\S+)", line):
                made = [one for one in block if re.search(rf"mkdir -m \d+ {found[1]}\b", one)]
                assert made, line


def test_a_round_with_the_example_files(tmp_path, run):
    """In one folder of this machine, by the example's own settings, policies and schema."""
    trial = tmp_path / "trial"
    settings = at_home(trial, run)
    key = ("--key", trial / "lead" / "lead.key")
    for name in PARTIES:  # timers run from the start on, and have nothing to do
        early = run("round", "sync", "--site", settings[name], "--unattended")
        assert early.code == 0
        assert "State: waiting; exit code 0." in early.out
        assert run("round", "sync", "--site", settings[name]).code == 2
    schema, plan, asked = trial / "lead" / "schema.toml", tmp_path / "p.hush", tmp_path / "r.hush"
    do("plan", "draw", schema, "--epsilon", 1, "--expected-rows", 3000, "-o", plan)
    do("round", "open", plan, *cards_in(trial), *key, "--epsilon", 1, "--least", 2, "-o", asked)
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
    assert all(map(is_odd, found))
    for name in SITES:
        with Book.open(trial / name / f"{name}.book") as book:
            assert len(book.answers()) == 1


@pytest.mark.parametrize("more", [("trial", "--sites", "a,b"), ("--help",), ()])
def test_the_old_command_names_what_replaces_it(run, more):
    done = run("round", "kit", *more)
    assert done.code == 2
    assert "round kit was removed: adapt the example files of docs/how-to/site.md" in done.err
