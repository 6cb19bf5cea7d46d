"""Runs commands of hushtable in children of its own, under the shim: ``server.py``.

Everything is imported once; each command is then a fork, a tenth of a second, and dies alone.
Reads a line of JSON for each command, answers with one. See `faults.Server`.
"""

import contextlib
import ctypes
import json
import os
import sys
import time

import numpy as np
import opendp.prelude  # noqa: F401 (here and below: imported before the first fork)
import pyarrow.csv
import pyarrow.parquet  # noqa: F401

import hushtable.describe.plan
import hushtable.privacy.mechanisms
import hushtable.scores.scorer  # noqa: F401
from hushtable import HushTable
from hushtable.cli import main
from hushtable.cli.app import app

for _group in (app(), *(one for one in app().commands.values() if hasattr(one, "commands"))):
    for _command in _group.commands.values():
        if hasattr(_command, "load"):
            _command.load()

shim = ctypes.CDLL(os.environ["LD_PRELOAD"])


def child(asked: dict) -> None:
    """Run a command in the child; ends the process."""
    out = os.open(asked["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    trace = os.open(asked["trace"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    if asked["clock"]:
        shim.fault_clock(ctypes.c_long(asked["clock"]))
    if "seconds" in asked:  # two processes are to begin at the same moment
        time.sleep(max(0.0, asked["seconds"] - time.time()))
    cores = sorted(os.sched_getaffinity(0))
    # One thread, so that changes come in the same order: commands use all cores that they may use.
    os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})
    shim.fault_arm(asked["kill_at"], asked["full_from"], trace)
    code = 70
    with contextlib.suppress(SystemExit):
        code = main(asked["command"])
    sys.stdout.flush()
    os._exit(code)


def warm_up() -> None:
    """Have the kernels loaded, in this one thread."""
    import pyarrow as pa

    rows = pa.table({"a": np.arange(60.0), "b": ["x", "y"] * 30})
    HushTable(n_tables=5, random_state=0).fit(rows).score_samples(rows)


if __name__ == "__main__":
    warm_up()
    for line in sys.stdin:
        batch = json.loads(line)
        pids = []
        for asked in batch:
            pid = os.fork()
            if pid == 0:
                child(asked)
            pids.append(pid)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        print(json.dumps(statuses), flush=True)
