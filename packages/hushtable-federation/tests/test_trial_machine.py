"""The docs' example federation as operators have it: users, sshd, terminals and timers.

For a container at night: it makes users, changes sshd's configuration, and removes both again.
"""

import json
import random
import shlex
import shutil
import time

import pytest

from trial_machine import (
    EXAMPLE,
    PAGE,
    PARTIES,
    PLACE,
    SERVED,
    SITES,
    Machine,
    Terminals,
    commands_of,
    example_files,
    is_odd,
    run,
    why_not,
)

pytest.importorskip("opendp")
pytest.importorskip("paramiko")
pytestmark = [pytest.mark.slow, pytest.mark.serial]

#: Seconds that an operator's run may take.
MOST_SECONDS = 30 * 60


@pytest.fixture(scope="module")
def machine():
    """One with sshd, on which nothing of the page was typed yet."""
    if why := why_not():
        pytest.skip(why)
    made = Machine()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def terminals(machine, tmp_path_factory):
    """Terminals in which all was typed that is on the page, at the place of each party."""
    there, began = Terminals(tmp_path_factory.mktemp("operator")), time.monotonic()
    example_files(there.folder, f"localhost:{machine.port}")
    for path in EXAMPLE.iterdir():
        shutil.copy(path, there.folder)
        for name in PARTIES:
            if "@" in path.name:
                shutil.copy(path, there.folder / name)
    page = {block[0].removeprefix("# "): block[1:] for block in commands_of(PAGE)}
    for command in page["server"]:
        there.type(machine.reload if command == "systemctl reload ssh" else command)
    for name in PARTIES:
        for command in page["north, as root"]:
            there.type(f"cd {name} && {typed_by(name, command, machine)}")
        for command in page["north"]:
            there.type(as_user(name, typed_by(name, command, machine)))
        (there.folder / "north.pub").write_text(there.typed[-1][1].words)
        for command in page["server, for north"]:
            # The same machine is the server: the user is there already.
            added = f"usermod --append --groups hushtable {name}"
            of_name = typed_by(name, command, machine).replace(f"{name}.pub", "north.pub")
            there.type(added if command.startswith("useradd") else of_name)
    for name in SITES:  # as if the site had mailed its card
        shutil.copy(PLACE / name / f"{name}.card", PLACE / "lead")
        shutil.chown(PLACE / "lead" / f"{name}.card", "lead")
    for command in page["lead"]:
        there.type(as_user("lead", command))
    (first,) = page["each site, in a call"]
    there.type(*(as_user(name, of_party(name, first, machine)) for name in SITES))
    machine.start_timers(*PARTIES)
    while not all(list((PLACE / name).glob("*.result.hush")) for name in PARTIES):
        assert time.monotonic() - began < MOST_SECONDS, {
            name: machine.visits[name][-1] for name in PARTIES
        }
        time.sleep(1)
    for command in page["north, with the result"]:
        there.type(as_user("north", command))
    there.seconds = time.monotonic() - began
    machine.stop_timers()
    return there


def as_user(name, command):
    """Return a command as typed in the shell of a party."""
    return f"su -s /bin/sh - {name} -c {shlex.quote(command)}"


def of_party(name, command, machine):
    """Return a command of north as a party types it, with this machine as the server."""
    for old, new in (
        ("-t ed25519 files.example.org", f"-t ed25519 -p {machine.port} localhost"),
        ("files.example.org", f"localhost:{machine.port}"),
        ("//north", f"//{name}"),
        ("north.toml", f"{name}.toml"),
    ):
        command = command.replace(old, new)
    return command


def typed_by(name, command, machine):
    """Return a command that sets up north as it sets up a party."""
    if name == "lead":
        site = "north.toml north.policy.toml patients.csv"
        command = command.replace(site, "lead.toml schema.toml").replace(" --cap 3", "")
    return of_party(name, command, machine).replace("north", name)


def as_party(name, command):
    """Run a command of hushtable as a party, in its folder."""
    return run(f"su -s /bin/sh - {name} -c 'hushtable {command}'")


def facts_of(name, command):
    """Run a command with --json as a party; return its exit code and what it says."""
    done = as_party(name, f"{command} --json 2>/dev/null")
    return done.code, json.loads(done.words)


def open_round(title, *options):
    """Open a round of the plan that is there, and put it into the folder; return its id."""
    words = " ".join(options)
    made = as_party(
        "lead",
        "round open plan.hush north.card south.card west.card --key lead.key --epsilon 0.1 "
        f"--least 2 {words} "
        f"--title {title} -o {title}.hush",
    )
    assert made.code == 0, made
    code, facts = facts_of("lead", f"round sync --site lead.toml --post {title}.hush")
    assert code == 0
    (of_it,) = [one for one in facts["rounds"] if one["title"] == title]
    return of_it["round_id"]


def state_of(name, round_id):
    """Make a visit of a party, unattended; return its exit code and the state of a round."""
    code, facts = facts_of(name, f"round sync --site {name}.toml --unattended")
    (one,) = [one for one in facts["rounds"] if one["round_id"] == round_id]
    return code, one


def play(round_id, *names):
    """Let parties visit until the round is done for all of them; return their last exit codes."""
    for _ in range(12):
        states = {name: state_of(name, round_id) for name in names}
        if all(one["state"] == "done" for _, one in states.values()):
            return {name: code for name, (code, _) in states.items()}
    raise AssertionError(states)


def charges(name, round_id):
    """Return how many times a site's book charged a round."""
    code, facts = facts_of(name, f"round book {name}.book")
    assert code == 0
    return sum(one["round_id"] == round_id for one in facts["rounds"])


def result_of(name, round_id):
    """Return what ``round verify`` says of the result that a site has."""
    path = f"{round_id[:12]}.result.hush"
    code, facts = facts_of(name, f"round verify {path} --book {name}.book")
    return code, facts


# --- an operator's run ----------------------------------------------------------------------------


def test_from_the_page_to_a_verified_result(terminals, machine):
    typed = terminals.typed
    print(f"\n{len(typed)} commands typed, {terminals.seconds:.0f} seconds in all")
    for command, done in typed:
        print(f"  {done.seconds:5.1f} s  {command[:100]}")
    assert terminals.seconds < MOST_SECONDS
    _, facts = facts_of("north", "round book north.book")
    (asked,) = [one["round_id"] for one in facts["rounds"] if one["title"] == "First"]
    for name in SITES:
        code, facts = result_of(name, asked)
        assert code == 0
        assert set(facts["submissions"]) == set(SITES)
        assert charges(name, asked) == 1
        assert machine.visits[name][-1].code == 0
    written = f"{asked[:12]}.result.hush"
    assert len({(PLACE / name / written).read_bytes() for name in PARTIES}) == 1


def test_the_odd_patients_are_listed_first(terminals):
    _, scored = terminals.typed[-1]
    rows = (PLACE / "north" / "patients.csv").read_text().splitlines()[1:]
    listed = [int(line.split()[1][:-1]) for line in scored.words.splitlines() if line[:4] == "Row "]
    assert set(listed[:3]) == {k for k, row in enumerate(rows) if is_odd(row)}


def test_only_the_call_asked(terminals):
    for command, done in terminals.typed:
        first = "round sync --site" in command and "--post" not in command
        assert done.words.count("[y/N]") == 2 * first, command


def test_users_of_the_server_can_do_nothing_but_transfer_files(terminals, machine):
    there = f"-p {machine.port} -i .ssh/id_ed25519 -o BatchMode=yes north@localhost"
    shell = run(f"su -s /bin/sh - north -c 'ssh {there} id'")
    assert "uid=" not in shell.words
    assert "This service allows sftp connections only" in shell.words
    tunnel = run(f"su -s /bin/sh - north -c 'ssh -W localhost:{machine.port} {there}'")
    assert tunnel.code != 0
    batch = f"-b - -P {machine.port} -i .ssh/id_ed25519 north@localhost"
    listing = run(f"su -s /bin/sh - north -c 'echo ls / | sftp {batch}'")
    assert set(listing.words.split()) >= {"/round"}
    assert "/etc" not in listing.words
    for link in ("ln -s / round/link", "ln round round/link"):
        refused = run(f"su -s /bin/sh - north -c 'echo {link} | sftp {batch}'")
        assert refused.code != 0
        assert "denied" in refused.words, refused
    assert not (SERVED / "round" / "link").exists(follow_symlinks=False)


# --- a site away, and one killed ------------------------------------------------------------------


@pytest.mark.parametrize("how", ["dropped", "after half of the time", "after the deadline"])
def test_one_site_away(terminals, machine, how):
    asked = open_round(how.replace(" ", "-"), *(["--days 0.02"] if how != "dropped" else []))
    first = ("west",) if how == "after the deadline" else ()
    for name in (*first, "north", "south", "north")[: 4 if first else 2]:
        code, one = state_of(name, asked)
        assert one["state"] == "waiting"
    if how == "dropped":
        folder = facts_of("lead", "round sync --site lead.toml --unattended")[1]["folder"]
        far = folder.replace("sftp://", "sftp://lead@")
        done = as_party(
            "lead", f"round amend {far} --key lead.key --drop west --which {asked[:12]}"
        )
        assert done.code == 0, done
    elif how == "after half of the time":
        machine.pass_time(16)  # of 29 minutes, and west has never called
        for name in ("lead", "north", "south"):
            assert state_of(name, asked)[1]["state"] == "waiting"
    else:
        machine.pass_time(30)  # 29 until the deadline, and the counts of west are not there
        waits = as_party("lead", "round sync --site lead.toml --unattended")
        assert (waits.code, "continues at" in waits.words) == (0, True)
        machine.pass_time(15)  # what is allowed for clocks that differ
    codes = play(asked, "lead", "north", "south")
    assert (codes["north"], codes["south"]) == (0, 0)
    for name in ("north", "south"):
        code, facts = result_of(name, asked)
        assert code == 0
        assert set(facts["submissions"]) == {"north", "south"}
        assert charges(name, asked) == 1
    code, one = state_of("west", asked)
    assert code == 3
    assert "without this site" in " ".join(one["words"])
    assert charges("west", asked) == 0
    assert state_of("west", asked)[0] == 0  # said once


def test_one_site_killed_over_sftp(terminals, machine):
    rng, killed = random.Random(20), []
    usual = min(machine.visit("south").seconds for _ in range(3))
    asked = open_round("killed")
    for _ in range(4):
        for _ in range(3):
            moment = rng.uniform(0.3, 1.0) * usual
            killed += [moment] * (machine.visit("south", kill_after=moment).code == -9)
        for name in ("north", "west", "lead"):
            assert machine.visit(name).code == 0
    print("\nkilled after " + ", ".join(f"{moment:.1f}" for moment in killed) + " s")
    assert len(killed) >= 4
    assert set(play(asked, *PARTIES).values()) == {0}
    for name in SITES:
        code, facts = result_of(name, asked)
        assert code == 0
        assert set(facts["submissions"]) == set(SITES)
        assert charges(name, asked) == 1
    parts = [p for p in (SERVED / "round").rglob("*") if p.is_file() and ".part" in p.name]
    assert len(parts) <= len(killed)  # hidden, and in no one's way


# --- bad input ------------------------------------------------------------------------------------


def test_a_key_that_its_own_user_may_not_read(terminals):
    path = PLACE / "north" / "north.key"
    path.chmod(0o000)
    done = as_party("north", "round sync --site north.toml --unattended")
    path.chmod(0o600)
    assert done.code == 1, done
    assert "may not read these keys" in done.words
    assert "chmod 600" in done.words
