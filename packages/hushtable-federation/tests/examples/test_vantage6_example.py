"""Masked rounds over vantage6's mock client: ``make test-vantage6``."""

import base64
import json
import os
from unittest import mock

import pytest

pytest.importorskip(
    "vantage6.algorithm.tools", reason="vantage6's tools are not installed: make test-vantage6"
)

import pandas as pd
import v6_hushtable
from vantage6.algorithm.tools.mock_client import MockAlgorithmClient

from hushtable import files
from hushtable.errors import FileError, HushTableError
from hushtable_federation.online import carriers
from place_helpers import Places

NAMES = ("east", "north", "south")


class Shared(list):
    """A list of which there is one: vantage6's mock copies its client for each call."""

    def __deepcopy__(self, memo):
        return self


class Server(MockAlgorithmClient):
    """vantage6's mock client, which calls each function in the environment of its node.

    ``lose`` takes an organisation and a method, and returns "", "away" or "crashed".
    """

    def __init__(self, nodes, lose=lambda organisation, method: ""):
        super().__init__([[{"database": pd.DataFrame()}] for _ in nodes], "v6_hushtable")
        self.nodes, self.lose, self.travelled = nodes, lose, Shared()

    class Task(MockAlgorithmClient.Task):
        def create(self, input_, organizations, **more):
            server, (one,) = self.parent, organizations
            fate = server.lose(one, input_["method"])
            if fate:
                number = len(server.tasks) + 1
                server.tasks.append({"id": number})
                if fate == "crashed":
                    server.runs.append({"id": 0, "status": fate, "task": {"id": number}})
                return {"id": number}
            with mock.patch.dict(os.environ, server.nodes[one]):
                task = super().create(json.loads(json.dumps(input_)), organizations, **more)
            server.travelled.append(server.result.from_task(task["id"])[0])
            return task


class Consortium(Places):
    """Sites, and a coordinator at a node of its own: organisation 3."""

    def __init__(self, folder):
        super().__init__(folder, NAMES)
        self.nodes = []
        for name in (*NAMES, "lead"):
            (folder / f"of_{name}").mkdir()
            self.nodes.append({"HUSHTABLE_FOLDER": str(folder / f"of_{name}")})
            lines = [f'key = "{folder / name}.key"']
            lines += [f'rows = "{folder / name}.csv"'] if name != "lead" else []
            (folder / f"of_{name}" / "site.toml").write_text("\n".join(lines))

    def run(self, lose=lambda organisation, method: "", timeout=60.0):
        """Start the task as a researcher does; return its report, and what travelled."""
        lines = [f'key = "{self.folder}/lead.key"', f'round = "{self.folder}/round.hush"']
        lines.append(f"timeout = {timeout}")
        (self.folder / "of_lead" / "coordinator.toml").write_text("\n".join(lines))
        server = Server(self.nodes, lose)
        task = server.task.create({"method": "central"}, organizations=[3])
        return server.result.from_task(task["id"])[0], server.travelled


@pytest.fixture
def consortium(tmp_path, monkeypatch):
    monkeypatch.setattr(carriers, "_LOOK", 0.01)
    monkeypatch.setattr(carriers, "_PAUSE", 0.2)
    return Consortium(tmp_path)


@pytest.mark.parametrize("fate", ["", "crashed", "away"])
def test_a_round_is_the_sum_also_if_a_run_is_lost(consortium, fate):
    round_, fates = consortium.open(least=3), iter([""] * 5 + [fate])
    run, _ = consortium.run(lambda one, method: next(fates, "") if method == "partial" else "")
    assert run["done"], run
    (consortium.folder / "got.hush").write_bytes(base64.b64decode(run["result"]))
    consortium.check(round_, result="got.hush")
    again, _ = consortium.run()
    assert again["result"] == run["result"]


def test_nothing_of_an_error_travels(consortium, capfd):
    rows = consortium.folder / "south.csv"
    rows.write_text(rows.read_text().replace("a,", "Ann,", 1))
    (consortium.folder / "of_north" / "site.toml").unlink()
    consortium.open(least=2)
    run, travelled = consortium.run(timeout=2.0)
    assert not run["done"]
    assert "Ann" not in json.dumps(run)
    assert not any("Ann" in str(base64.b64decode(one)) for one in travelled if isinstance(one, str))
    assert "Ann" not in "".join(capfd.readouterr())
    assert (consortium.folder / "of_north" / "vantage6.log").exists()
    for name in NAMES:
        with consortium.book(name) as book:
            assert book.answers() == []


def test_two_tasks_at_a_time_are_refused(consortium):
    consortium.open()
    consortium.run()
    path = consortium.folder / "of_lead" / "coordinator.toml"
    with files.locked(path), pytest.raises(FileError):
        consortium.run()
    path.unlink()
    with pytest.raises(HushTableError, match="type folder with the label hushtable"):
        Server(consortium.nodes).task.create({"method": "central"}, organizations=[3])


def test_callers_reach_two_names_only():
    assert sorted(name for name in vars(v6_hushtable) if name[0] != "_") == ["central", "partial"]
