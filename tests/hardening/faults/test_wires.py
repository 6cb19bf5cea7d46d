"""A site whose wire is cut, or that is slow, in a real network of its own, over TCP."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hushtable_federation.protocol.messages import STEPS

HERE = Path(__file__).parent


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fate", "step"),
    [
        ("cut", "keys"),
        ("slow", "keys"),
        ("cut", "shares"),
        ("slow", "shares"),
        ("cut", "masked"),
        ("slow", "masked"),
        ("cut", "unmask"),
        ("slow", "unmask"),
    ],
)
def test_a_site_that_cannot_be_reached(tmp_path, fate, step):
    if shutil.which("ip") is None or run("unshare", "-n", "ip", "link").returncode:
        pytest.skip("no network of its own can be made here (unshare -n, ip)")
    done = run("unshare", "-n", sys.executable, HERE / "wires.py", tmp_path, fate, step)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["exact"] is True
    # Who masked is in the sum, even if gone in the steps after.
    gone = STEPS.index(step) <= STEPS.index("masked")
    assert said["inside"] == ["north", "south"] + ([] if gone else ["west"])
    assert said["lost"] == {"west": f"{step}: silent"}
    print(f"west {fate} in step {step}: the exact sum of {len(said['inside'])} sites")
