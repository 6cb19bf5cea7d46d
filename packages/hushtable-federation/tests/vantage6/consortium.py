"""Nodes of vantage6 in this process: each a folder and an environment, as a node gives them."""

import base64
import contextlib
import json
import os
from datetime import timedelta
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from vantage6.algorithm.tools.mock_client import MockAlgorithmClient

from hushtable import Feature, Plan, Schema
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.policy import write_policy
from hushtable_federation.round import Round

NAMES = ("east", "north", "south")
SCHEMA = Schema([Feature.numeric(name, low=-5, high=5) for name in "ab"])
CSV = ("csv", "rows.csv")


class Shared(list):
    """A list of which there is one: vantage6's mock copies its client for each call."""

    def __deepcopy__(self, memo):
        return self


class Server(MockAlgorithmClient):
    """vantage6's mock client, which calls each function in the environment of its node.

    ``lose`` takes organisation and method, and says what becomes of a run: "" (it works), "away"
    (no result) or "crashed".
    """

    def __init__(self, nodes, lose=lambda organisation, method: ""):
        empty = [[{"database": pd.DataFrame()}] for _ in nodes]
        super().__init__(empty, "v6_hushtable")
        self.nodes, self.lose, self.travelled = nodes, lose, Shared()

    class Task(MockAlgorithmClient.Task):
        def create(self, input_, organizations, **more):
            input_ = json.loads(json.dumps(input_))
            server, (one,) = self.parent, organizations
            fate = server.lose(one, input_["method"])
            if fate:
                number = len(server.tasks) + 1
                server.tasks.append({"id": number})
                server.travelled.append("")
                if fate == "crashed":
                    server.runs.append({"id": 0, "status": fate, "task": {"id": number}})
                return {"id": number}
            with mock.patch.dict(os.environ, server.nodes[one]):
                task = super().create(input_, organizations, **more)
            server.travelled.append(server.result.from_task(task["id"])[0])
            return task


class Consortium:
    """Three sites, and a coordinator at a node of its own: organisation 3."""

    def __init__(self, folder, n_rows=100):
        self.folder, self.rows = folder, {}
        self.keys = {name: Keys.generate(name) for name in (*NAMES, "lead")}
        for name, keys in self.keys.items():
            self.at(name).mkdir()
            keys.save(self.at(name, f"{name}.key"))
        for seed, name in enumerate(NAMES):
            self._site(name, seed, n_rows)
        self.nodes = [self.environment(name) for name in (*NAMES, "lead")]

    def at(self, name, *rest):
        return self.folder.joinpath(name, *rest)

    def _site(self, name, seed, n_rows):
        with Book.create(self.at(name, f"{name}.book"), self.keys[name].card, epsilon=5.0) as book:
            book.trust([self.keys["lead"].card], "coordinator")
            book.trust([self.keys[other].card for other in NAMES])
        policy = self.at(name, f"{name}.policy.toml")
        write_policy(policy, name, 5.0, 1e-6, 1)
        columns = "".join(
            f'[[feature]]\nname = "{one}"\nkind = "numeric"\nlow = -5\nhigh = 5\n' for one in "ab"
        )
        policy.write_text(policy.read_text().replace("answer = false", "answer = true") + columns)
        self.at(name, "site.toml").write_text(f'key = "{name}.key"\ndatabase = "patients"\n')
        rows = np.random.default_rng(seed).normal(size=(n_rows, 2))
        self.rows[name] = pd.DataFrame(rows, columns=["a", "b"])
        self.rows[name].to_csv(self.at(name, "rows.csv"), index=False)

    def environment(self, name, kind="csv", uri="rows.csv", **more):
        """Return what a node's algorithm finds in its environment."""
        uri = uri if "://" in uri else str(self.at(name, uri))
        database = {"PATIENTS_DATABASE_URI": uri, "PATIENTS_DATABASE_TYPE": kind}
        parameters = {f"PATIENTS_DB_PARAM_{key}": value for key, value in more.items()}
        labels = {"USER_REQUESTED_DATABASE_LABELS": "patients"}
        return {"HUSHTABLE_FOLDER": str(self.at(name))} | database | parameters | labels

    def open(self, plan=None, least=2, epsilon=1.0, **more):
        """Open a round at the coordinator; by default, one column is the context of the other."""
        plan = plan or Plan.draw(SCHEMA, n_tables=5, context=["a"], random_state=0)
        round_ = Round.open(
            plan, [self.keys[name].card for name in NAMES], self.keys["lead"], epsilon=epsilon,
            deadline=now() + timedelta(days=1), least=least, **more,
        )  # fmt: skip
        round_.save(self.at("lead", "round.hush"))
        self.configure()
        return round_

    def configure(self, **more):
        """Write what the coordinator's node is told."""
        said = {"key": "lead.key", "round": "round.hush", "timeout": 60.0} | more
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in said.items())
        self.at("lead", "coordinator.toml").write_text(lines)

    def run(self, server=None):
        """Start the task as a researcher does: a name, and nothing else."""
        server = server or Server(self.nodes)
        task = server.task.create({"method": "central"}, organizations=[3])
        return server.result.from_task(task["id"])[0]

    def check(self, round_id, result, inside=NAMES):
        """Hold a result to the books: the exact sum of those inside, each charged once."""
        parts = []
        for name in NAMES:
            with Book.open(self.at(name, f"{name}.book")) as book:
                given = book.answer(round_id)
                assert (given is not None) == (name in inside)
                if given is not None:
                    parts.append(given.sent)
        np.testing.assert_array_equal(result.counts, sum(parts))

    def spent(self, name):
        """Return epsilon in a site's book, and how many answers cost it."""
        with Book.open(self.at(name, f"{name}.book")) as book:
            return book.total(ALL_ROWS), len(book.answers())


def read(folder, text):
    """Return what a result in base64 holds."""
    from hushtable import load

    path = Path(folder, "got.hush")
    path.write_bytes(base64.b64decode(text))
    with contextlib.closing(path.open("rb")):
        return load(path)
