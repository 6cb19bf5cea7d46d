"""Run each command of the first screen of README.md in a fresh clone, as a newcomer does.

    python3 .ci/first_screen.py

`make test` is left to the run that calls this script; `make desk` runs until the desk answers. A
table mine.csv is supplied. The clone has what was committed.
"""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import HTTPCookieProcessor, build_opener

ROOT = Path(__file__).parents[1]
#: Variables of this run; a newcomer has none of them.
OURS = ("HUSHTABLE_DATA", "MAKEFLAGS", "NUMBA_CACHE_DIR", "PYTHONPATH", "VIRTUAL_ENV")
GETADDRINFO = socket.getaddrinfo


def resolved(host: str, *rest: object, **named: object) -> list[tuple[object, ...]]:
    """Return the addresses of a host; browsers resolve names below localhost themselves."""
    return GETADDRINFO("127.0.0.1" if host.endswith(".localhost") else host, *rest, **named)


def commands() -> list[str]:
    """Return the commands before the first heading of a section, without their comments."""
    screen = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", screen, re.MULTILINE | re.DOTALL)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]


def write_rows(path: Path) -> None:
    """Write 1,000 rows, the last one unusual."""
    rng = random.Random(0)
    rows = [f"{rng.uniform(18, 95):.1f},{rng.gauss(75, 9):.0f}" for _ in range(999)]
    path.write_text("\n".join(["age,pulse", *rows, "37.0,210"]) + "\n")


def desk(clone: Path, env: dict[str, str]) -> None:
    """Open the desk and its sample table with a browser's cookies; end it."""
    # A browser that opens nothing, and lines that come at once.
    env = env | {"BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        ["make", "desk"], cwd=clone, env=env, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = (re.search(r"http://\S+", line) for line in process.stdout)
        address = next(found[0] for found in lines if found)
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        # Anything but 200 is an error of urllib's.
        opened = browser.open(address, timeout=60).read().decode()
        table = urljoin(address, re.findall(r'href="(/t/[^"]+)"', opened)[0])
        if "weather.csv" not in browser.open(table, timeout=60).read().decode():
            sys.exit(f"the desk at {table} does not show weather.csv")
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


def main() -> None:
    """Run all."""
    socket.getaddrinfo = resolved
    env = {name: value for name, value in os.environ.items() if name not in OURS}
    found = commands()
    assert {"make demo", "make test", "make desk"} <= {*found}, found
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "hushtable"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        write_rows(clone / "mine.csv")
        for command in found:
            print(f"$ {command}", flush=True)
            if command == "make desk":
                desk(clone, env)
            elif command != "make test":
                subprocess.run(command, shell=True, cwd=clone, env=env, check=True)
        assert (clone / "top.xlsx").stat().st_size > 0
    print("Every command of the first screen ran.")


if __name__ == "__main__":
    main()
