"""What the page on carriers says about NVFlare is true: it is followed, in the simulator."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare.apis", reason="NVFlare is not installed: make test-nvflare")


from docs_reader import ROOT, Reader
from hushtable.cli import main
from hushtable_federation.keys import Card

SITES = ("north", "south")
COLUMNS = {"age": (0, 120), "pulse": (20, 250)}
SCHEMA = "".join(
    f'[[feature]]\nname = "{name}"\nkind = "numeric"\nlow = {low}\nhigh = {high}\n\n'
    for name, (low, high) in COLUMNS.items()
)


def people_agree():
    """Make keys; let each site answer by itself, those whom its people name, about the columns."""
    for name in ("lead", *SITES):
        cap = ["--cap", "2", "--persons", "1"] if name in SITES else []
        assert main(["round", "keygen", name, *cap]) == 0
    cards = {name: Card.load(f"{name}.card").fingerprint for name in ("lead", *SITES)}
    for name in SITES:
        Path(f"{name}.toml").write_text(f'key = "{name}.key"\nrows = "{name}.csv"\n')
        policy = Path(f"{name}.policy.toml")
        text = policy.read_text().replace("answer = false", "answer = true") + SCHEMA
        text = text.replace("[coordinators]", f'[coordinators]\nlead = "{cards["lead"]}"')
        others = "".join(f'{one} = "{cards[one]}"\n' for one in SITES if one != name)
        policy.write_text(text.replace("[sites]", f"[sites]\n{others}"))


@pytest.mark.slow
def test_the_section_can_be_followed(tmp_path):
    for seed, name in enumerate(SITES):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.integers(18, 95, 400), rng.normal(75, 9, 400).round()])
        np.savetxt(tmp_path / f"{name}.csv", rows, "%g", ",", header="age,pulse", comments="")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "rounds").mkdir()
    before = {"hushtable plan draw": people_agree}
    done = Reader(ROOT / "docs/how-to/carriers.md", tmp_path, before, section="NVFlare").follow()
    assert len(done.did) == 3
