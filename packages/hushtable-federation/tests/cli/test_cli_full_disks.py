"""``hushtable round sync`` on a disk that is full, and as a user without rights, in real life."""

import os
import shutil
import subprocess
import sys

import pytest

from cli_helpers import SCHEMA, do, say, trust, write_rows
from hushtable.cli import main
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import intact

SITES = "north", "south"
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root, who may mount a small disk"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two sites and a coordinator, each with a folder of its own, and a folder with one round."""
    here = tmp_path_factory.mktemp("disks")
    (here / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", here / "schema.toml", "--tables", 5, "--seed", 1, "-o", here / "plan.hush")
    (here / "box").mkdir()
    for seed, name in enumerate((*SITES, "lead")):
        cap = () if name == "lead" else ("--cap", 3, "--persons", "1")
        (here / name).mkdir()
        do("round", "keygen", name, *cap, "--folder", here / name)
        write_rows(here / f"{name}.csv", 200, seed)
        rows = {} if name == "lead" else {"rows": f"../{name}.csv"}
        say(here / name, name, folder="../box", **rows)
        shutil.copy(here / name / f"{name}.card", here)
    do("round", "open", here / "plan.hush", *(here / f"{site}.card" for site in SITES), "--key",
       here / "lead" / "lead.key", "--epsilon", 1, "--least", 2, "-o",
       here / "May.hush")  # fmt: skip
    do("round", "sync", "--site", here / "lead" / "lead.toml", "--post", here / "May.hush")
    return here


@pytest.fixture
def here(made, tmp_path):
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    return folder


def visit(here, name):
    """Have a party visit; return the exit code."""
    file = here / name / f"{name}.toml"
    cards = () if name == "lead" else ("--yes", *trust(here, "lead", *SITES))
    return main([str(word) for word in ("round", "sync", "--site", file, *cards)])


class Disk:
    """A disk of 1 MB in place of a folder, with what is in it."""

    def __init__(self, folder):
        self.folder = folder
        kept = folder.with_name(f"{folder.name}.kept")
        folder.rename(kept)
        folder.mkdir()
        options = "size=1m,mode=0755"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder])
        if done.returncode:
            pytest.skip("no disk can be mounted here")
        shutil.copytree(kept, folder, dirs_exist_ok=True)

    def fill(self):
        with (self.folder / ".filler").open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def empty(self):
        (self.folder / ".filler").unlink()


@pytest.fixture
def small(here):
    """Put a folder on a small disk."""
    disks = []

    def small(name):
        disks.append(Disk(here / name))
        return disks[-1]

    yield small
    for disk in disks:
        subprocess.run(["umount", disk.folder], check=True)


def half_written(here):
    """Return the files in the folder of the round that are not what their name says."""
    return [
        path.name
        for path in (here / "box").iterdir()
        if not path.name.startswith(".") and not intact(path.name, path.read_bytes())
    ]


@pytest.mark.parametrize(
    "full",
    [
        "north",
        pytest.param("lead", marks=pytest.mark.slow),
        pytest.param("box", marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_at_each_party(here, small, capsys, caplog, full):
    """Every visit fails while the disk is full; then the round ends as if nothing had been."""
    disk = small(full)
    codes = set()
    for _ in range(8):
        disk.fill()
        for name in (*SITES, "lead") if full == "box" else (full,):
            code = visit(here, name)
            said = capsys.readouterr()
            assert code in (0, 1), said
            assert code == 0 or "space" in said.err + caplog.text, said.err
            codes.add(code)
            assert half_written(here) == []
            assert "Traceback" not in said.err
        disk.empty()
        states = [visit(here, name) for name in (*SITES, "lead")]
        assert set(states) == {0}, capsys.readouterr().err
        if "is here" in capsys.readouterr().out and list((here / "north").glob("*.result.hush")):
            break
    assert 1 in codes, "the disk was never full"
    results = [next((here / name).glob("*.result.hush")) for name in (*SITES, "lead")]
    assert len({path.read_bytes() for path in results}) == 1
    for name in SITES:
        with Book.open(here / name / f"{name}.book") as book:
            assert len(book.answers()) == 1
    assert half_written(here) == []


def without_privilege(here, name):
    """Have a party visit as a user to whom the modes of files apply."""
    code = "import sys; from hushtable.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["round", "sync", "--site", here / name / f"{name}.toml", "--yes"]
    words += trust(here, "lead", *SITES)
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    return subprocess.run(
        [*drop, sys.executable, "-c", code, *map(str, words)],
        capture_output=True, text=True, cwd=here,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "mode", "says"),
    [
        ("box", 0o500, "ask the administrator of the folder"),
        ("box", 0o300, "ask the administrator of the folder"),
        ("north/north.key", 0o000, "north.key"),
        ("north.csv", 0o000, "north.csv"),
    ],
)
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_rights_that_are_too_narrow(here, path, mode, says):
    for name in SITES:
        assert name == "north" or visit(here, name) == 0
    before = (here / path).stat().st_mode
    (here / path).chmod(mode)
    done = without_privilege(here, "north")
    assert done.returncode == 1, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    (here / path).chmod(before)
    done = without_privilege(here, "north")
    assert done.returncode == 0, done.stderr
    with Book.open(here / "north" / "north.book") as book:
        assert len(book.answers()) == 1
