"""A masked campaign in NVFlare's simulator: three sites in the sum, one that refuses.

Runs where NVFlare is installed (``make test-nvflare``), each site in a process of its own. What
needs no processes is in ``test_messages.py``.
"""

import json
import re
import time
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest

from place_helpers import SCHEMA, Places

pytest.importorskip("nvflare.apis", reason="NVFlare is not installed: make test-nvflare")

from nvflare.recipe import SimEnv

from hushtable import Plan, files, load
from hushtable_federation.book.book import ALL_ROWS
from hushtable_federation.clock import now
from hushtable_federation.coordinator import round_after, tables_after
from hushtable_federation.nvflare import RoundRecipe
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum, path_of
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Result
from hushtable_federation.round import Round

pytestmark = pytest.mark.slow

INSIDE, REFUSES = ("east", "north", "south"), "west"
CLASSES = [f"hushtable_federation.nvflare.{name}" for name in ("RoundController", "SiteExecutor")]
DAY = timedelta(days=1)


class Died(BaseException):
    """No one catches it, as no one catches a SIGKILL."""


class Flare(Places):
    """Four places, and the simulator's folder, whose ``local`` all places have."""

    def __init__(self, folder):
        super().__init__(folder, (*INSIDE, REFUSES))
        policy = folder / f"{REFUSES}.policy.toml"
        policy.write_text(policy.read_text().replace("answer = true", "answer = false"))
        (folder / "rounds").mkdir()

    def run(self, name):
        """Run a round as a job; return how it went."""
        local = self.folder / f"hushtable-{name}" / "local"
        local.mkdir(parents=True)
        allowed = {"format_version": 2, "class_allow_list": CLASSES}
        (local / "resources.json").write_text(json.dumps(allowed))
        (local / "hushtable.toml").write_text(
            f'[site]\nfile = "{self.folder}/{{site}}.toml"\n'
            f'[coordinator]\nkey = "{self.folder}/lead.key"\nrounds = "{self.folder}/rounds"\n'
        )
        env = SimEnv(
            clients=list(self.names), workspace_root=str(self.folder), log_config="concise"
        )
        RoundRecipe(name, least=3, timeout=240.0).execute(
            env, server_exec_params={"server": {"task_request_interval": 0.5}}
        )
        return json.loads((self.folder / "rounds" / f"{name}.result.state.json").read_text())

    def begin(self, round_):
        """Run a round in this process until its coordinator dies, asking for masked counts."""

        def answer(name, request):
            if (name, files.unpack(request, "asked").manifest["step"]) == ("south", "masked"):
                raise Died
            return self.answer(name, request)

        transport = Memory({name: partial(answer, name) for name in self.names})
        journal = path_of(self.folder / "lead.key", round_)
        with pytest.raises(Died):
            SecureSum(round_, self.keys["lead"], transport, journal=journal).run()

    def answered(self, round_):
        """Return what each site has sent in a round, by name."""
        said = {}
        for name in self.names:
            with self.book(name) as book:
                given = book.answer(round_.round_id)
                said |= {} if given is None else {name: given.content}
        return said


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Marginals, then tables: the coordinator of the second round died once, elsewhere."""
    at = Flare(tmp_path_factory.mktemp("flare"))
    rounds = at.folder / "rounds"
    marginals = Plan.marginals(SCHEMA, epsilon=1.0, expected_rows=20_000, sites=4)
    first = Round.open(
        marginals, [at.keys[name].card for name in at.names], at.keys["lead"],
        epsilon=1.0, deadline=now() + DAY, least=3,
    )  # fmt: skip
    first.save(rounds / "marginals.hush")
    start = time.monotonic()
    states = [at.run("marginals")]
    result = Result.load(rounds / "marginals.result.hush")
    result.check_round(first)
    second = round_after(
        first, tables_after(marginals, result.counts, seed=1), at.keys["lead"], now() + DAY
    )
    second.save(rounds / "tables.hush")
    at.begin(second)
    before = at.answered(second)
    states.append(at.run("tables"))
    print(f"\na campaign of two jobs in the simulator: {time.monotonic() - start:.1f} s")
    return SimpleNamespace(at=at, rounds=(first, second), states=states, before=before)


def test_both_sums_are_exact_and_verified(campaign):
    for round_, name in zip(campaign.rounds, ("marginals", "tables"), strict=True):
        path = f"rounds/{name}.result.hush"
        campaign.at.check(round_, INSIDE, path, answers=2)
        Result.load(campaign.at.folder / path).check_round(round_)
    ledger = load(campaign.at.folder / path).ledger
    assert [spent.what for spent in ledger.behind_plan] == ["marginals"]
    assert ledger.epsilon == pytest.approx(1.0, rel=1e-3)  # the whole campaign's


def test_each_book_is_charged_once(campaign):
    for name in campaign.at.names:
        with campaign.at.book(name) as book:
            total = book.total(ALL_ROWS)
        assert total == pytest.approx(float(name in INSIDE), rel=1e-3)


def test_a_site_refuses_by_a_word_and_the_others_go_on(campaign):
    assert [state["done"] for state in campaign.states] == [True, True]
    # Whose keys count in the second round, the process decided that died: it alone heard why.
    for state, word in zip(campaign.states, (Refusal.POLICY, Refusal.SILENT), strict=True):
        assert state["nodes"] == list(INSIDE)
        refused = {REFUSES: word.value} if word == Refusal.POLICY else {}
        assert state["refused"] == refused
        assert state["lost"] == {REFUSES: f"keys: {word.value}"}
    assert "does not allow unattended answers" in (campaign.at.folder / "west.log").read_text()


def test_a_job_goes_on_from_the_journal(campaign):
    """Anyone who had answered the coordinator that died answers the next in the same bytes."""
    after = campaign.at.answered(campaign.rounds[1])
    assert set(campaign.before) == {"east", "north"}
    assert campaign.before.items() <= after.items()
    assert set(after) == set(INSIDE)


def test_nothing_of_rows_or_refusals_is_in_the_logs_of_nvflare(campaign):
    logs = [
        path.read_text()
        for path in campaign.at.folder.glob("hushtable-*/*/*")
        if path.is_file() and path.suffix in (".txt", ".json")
    ]
    assert len(logs) >= 2 * 5  # of the server and each site, in each job
    for text in logs:
        assert not re.search(r"unattended|no one is here|Traceback|\.csv", text)
