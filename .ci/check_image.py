"""Use an image of the Containerfile like a site: no network, a read-only root, no privileges.

    python .ci/check_image.py -- podman run --rm --network none --read-only --tmpfs /tmp \\
        --cap-drop all --volume {work}:/work --entrypoint {program} localhost/hushtable

``{work}`` becomes a folder with a table, and ``{program}`` the program; its arguments are added.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: Prints from inside: the user, whether the root is writable, and whether there is a network.
LOOK = """
import json, os, socket
def fails(call):
    try:
        call()
    except OSError:
        return True
    return False
names = [name for _, name in socket.if_nameindex()]
folders = ("/opt", "/etc", "/usr")
print(json.dumps({
    "user": os.getuid(),
    "read-only root": all(fails(lambda: open(f"{folder}/x", "w")) for folder in folders),
    "interfaces": [name for name in names if name != "lo"],
    "no installer": fails(lambda: os.stat("/opt/hushtable/bin/pip")),
}))
"""
SITE = [
    ["hushtable", "--version"],
    ["hushtable", "demo"],
    ["hushtable", "fit", "rows.csv", "-o", "model.hush"],
    ["hushtable", "score", "rows.csv", "--model", "model.hush", "--top", "5", "-o", "top.html"],
    ["hushtable", "report", "model.hush", "rows.csv", "-o", "report.html"],
    ["python", "-c", "import os; os.mkdir('site')"],  # others cannot change keys there
    ["hushtable", "round", "keygen", "north", "--cap", "2", "--persons", "1", "--folder", "site"],
]
#: Files that these commands leave in the folder and below.
WRITTEN = {"model.hush", "top.html", "report.html", "north.key", "north.card", "north.book"}


def check(run: Sequence[str], work: Path) -> None:
    """Run a site's commands in a folder that everyone may write to, and check its files."""
    work.chmod(0o777)
    rows = "\n".join(f"{60 + i % 17},{36 + i % 13 / 10},{'fm'[i % 2]}" for i in range(500))
    (work / "rows.csv").write_text(f"pulse,temperature,sex\n{rows}\n200,36.5,f\n")

    def inside(*command: str) -> str:
        words = {"{work}": str(work), "{program}": command[0]}
        filled = [_filled(word, words) for word in run]
        done = subprocess.run(
            [*filled, *command[1:]], check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    seen = json.loads(inside("python", "-c", LOOK))
    assert seen.pop("user") > 0, "it runs as root"
    assert seen == {"read-only root": True, "interfaces": [], "no installer": True}, seen
    for command in SITE:
        inside(*command)
    missing = WRITTEN - {path.name for path in work.rglob("*")}
    assert not missing, f"not written: {missing}"
    print(f"A site can work with it: {len(SITE)} commands, as nobody, offline, on a read-only root")


def _filled(word: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(name, value)
    return word


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "run", nargs="+", metavar="WORD", help="the command that runs an image, after --"
    )
    with tempfile.TemporaryDirectory() as folder:
        check(parser.parse_args().run, Path(folder))
