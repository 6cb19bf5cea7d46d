"""Run each command of the first screen of README.md in a fresh clone, as a newcomer does.

`make test` is left to the run that calls this script; `make desk` runs until it shows the sample
table. A table mine.csv is supplied. The clone has what was committed.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import HTTPCookieProcessor, Request, build_opener

ROOT = Path(__file__).parents[1]
#: Variables of this run; a newcomer has none of them.
OURS = ("HUSHTABLE_DATA", "MAKEFLAGS", "NUMBA_CACHE_DIR", "PYTHONPATH", "VIRTUAL_ENV")


def open_desk(clone: Path, env: dict[str, str]) -> None:
    """Start the desk, open its first page, and end it."""
    # A browser that opens nothing, and lines that come at once.
    env = env | {"BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    alone = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    process = subprocess.Popen(["make", "desk"], cwd=clone, env=env, **alone)
    try:
        lines = (re.search(r"http://([^/]+)(\S+)", line) for line in process.stdout or ())
        host, path = next(found.groups() for found in lines if found)
        # Browsers resolve names below localhost themselves.
        page = Request(f"http://127.0.0.1:{host.split(':')[1]}{path}", headers={"Host": host})
        opened = build_opener(HTTPCookieProcessor()).open(page, timeout=60)
        if b'href="/t/' not in opened.read():
            sys.exit(f"the desk at {host} does not list the sample table")
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


def main() -> None:
    """Run the commands of the README before its first section."""
    env = {name: value for name, value in os.environ.items() if name not in OURS}
    screen = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", screen, re.MULTILINE | re.DOTALL)
    commands = [line.partition("  #")[0].strip() for line in "".join(blocks).splitlines()]
    assert {"make demo", "make test", "make desk"} <= {*commands}, commands
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "hushtable"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        rows = "\n".join(f"{18 + i % 77},{60 + i % 31}" for i in range(999))
        (clone / "mine.csv").write_text(f"age,pulse\n{rows}\n37,210\n")
        for command in commands:
            print(f"$ {command}", flush=True)
            if command == "make desk":
                open_desk(clone, env)
            elif command != "make test":
                subprocess.run(command, shell=True, cwd=clone, env=env, check=True)
        assert (clone / "top.xlsx").stat().st_size > 0


if __name__ == "__main__":
    main()
