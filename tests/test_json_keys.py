"""What machines read with --json: a key may be added, and none goes."""

import json
from pathlib import Path

KEYS = Path(__file__).with_name("json_keys.json")


def commands(site, here):
    """Return a command line for each entry, of commands that need no extra."""
    rows, plan = site / "rows.csv", site / "plan.hush"
    sketches = site / "a.sketch.hush", site / "b.sketch.hush"
    return {
        "fit": ("fit", rows, "-o", here / "m.hush"),
        "score": ("score", rows, "--model", site / "model.hush", "-o", here / "s.csv"),
        "score --explain": (
            "score", rows, "--model", site / "model.hush", "--explain", "-o", here / "e.csv"
        ),
        "score --top": (
            "score", rows, "--model", site / "model.hush", "--top", 3, "-o", here / "t.csv"
        ),
        "learn": (
            "learn", site / "model.hush", site / "verdicts.csv", "--rows", rows,
            "-o", here / "l.hush",
        ),
        "plan draft": ("plan", "draft", rows, "-o", here / "draft.toml"),
        "plan check": ("plan", "check", site / "schema.toml", rows),
        "plan draw": ("plan", "draw", site / "schema.toml", "-o", here / "p.hush"),
        "plan marginals": ("plan", "marginals", site / "schema.toml", "-o", here / "q.hush"),
        "sketch": ("sketch", rows, "--plan", plan, "-o", here / "k.hush"),
        "merge": ("merge", *sketches, "-o", here / "all.hush"),
        "export": ("export", site / "model.hush", "-o", here / "m.json"),
        "inspect a plan": ("inspect", plan),
        "inspect a sketch": ("inspect", sketches[0]),
        "inspect a model": ("inspect", site / "model.hush"),
        "an error": ("inspect", rows),
    }  # fmt: skip


def test_no_key_goes(site, tmp_path, run):
    frozen = json.loads(KEYS.read_text())
    for name, arguments in commands(site, tmp_path).items():
        printed = run(*arguments, "--json")
        assert set(frozen.pop(name)) <= set(printed.json), (name, printed.err)
    assert frozen == {}
