"""What a site's executor answers, what the coordinator's carrier does, and what a job holds."""

import json
import logging
import warnings
from types import SimpleNamespace

import pytest

from place_helpers import Places

pytest.importorskip("nvflare.apis", reason="NVFlare is not installed: make test-nvflare")

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask
from nvflare.apis.fl_constant import FLContextKey, ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.apis.workspace import Workspace

from hushtable import files
from hushtable.errors import RoundError, UsageError
from hushtable_federation import nvflare
from hushtable_federation.coordinator import Coordinator
from hushtable_federation.keys import Keys
from hushtable_federation.online import carriers
from hushtable_federation.protocol.messages import Message, ask
from hushtable_federation.site import Site

SOUTH = "file = '{at}/{{site}}.toml'\n"


@pytest.fixture
def site(tmp_path):
    """A site's startup kit, and an answer of its executor to bytes."""
    places, kit = Places(tmp_path), tmp_path / "kit"
    for folder in ("startup", "local"):
        (kit / folder).mkdir(parents=True)
    settings = kit / "local" / "hushtable.toml"
    settings.write_text("[site]\n" + SOUTH.format(at=tmp_path))
    context = FLContext()
    context.set_prop(FLContextKey.WORKSPACE_OBJECT, Workspace(str(kit)))
    context.set_prop(ReservedKey.IDENTITY_NAME, "south")

    def answer(request, **more):
        asked = Shareable({"content": request, **more})
        said = nvflare.SiteExecutor().execute("hushtable", asked, context, Signal())
        assert set(said) == {"content", *Shareable()}
        return said["content"]

    return SimpleNamespace(places=places, settings=settings, context=context, answer=answer)


def word(site, content):
    """Return the word in which a site refuses; nothing else is in its message."""
    message = Message.read(content, site.places.keys["south"].card)
    assert (message.step, set(message.body)) == ("refused", {"word"})
    return message.body["word"]


@pytest.mark.parametrize("request_", [b"", b"no message", 7, None, {"path": "/etc/passwd"}])
def test_no_message_is_refused_in_a_word(site, request_):
    assert word(site, site.answer(request_)) == "request"


def test_the_executor_takes_nothing_but_the_message(site):
    """A job that brings settings of its own: they are not read."""
    round_ = site.places.open()
    request = carriers.ask_hello(round_, site.places.keys["lead"])
    other = {"key": str(site.places.folder / "north.key"), "data": "/etc/passwd", "epsilon": 9.0}
    card, refused = carriers.find_caller(round_, request, site.answer(request, **other, site=other))
    assert (card.name, refused) == ("south", "")
    with pytest.raises(TypeError):
        nvflare.SiteExecutor(**other)


def test_what_the_policy_refuses(site):
    """Another column, and a coordinator whom no one knows."""
    lead = site.places.keys["lead"]
    policy = site.places.folder / "south.policy.toml"
    allowed = policy.read_text()
    policy.write_text(allowed.replace('name = "b"', 'name = "other"'))
    request = ask(site.places.open(), "keys", lead, {})
    assert word(site, site.answer(request)) == "policy"
    policy.write_text(allowed)
    site.places.keys["lead"] = Keys.generate("lead")
    round_ = site.places.open()
    assert (
        word(site, site.answer(carriers.ask_hello(round_, site.places.keys["lead"]))) == "unknown"
    )
    with site.places.book("south") as book:
        assert book.answers() == []


def spoil_rows(site):
    rows = site.places.folder / "south.csv"
    rows.write_text(rows.read_text().replace("a,", "Ann,", 1))


@pytest.mark.parametrize(
    ("spoil", "said", "log"),
    [
        (spoil_rows, "unavailable", "south.log"),
        (lambda site: site.settings.unlink(), "", "kit/local/hushtable.log"),
        (lambda site: site.settings.write_text("[site"), "", "kit/local/hushtable.log"),
        (lambda site: site.settings.write_text("[coordinator]"), "", "kit/local/hushtable.log"),
        (
            lambda site: site.settings.write_text(site.settings.read_text() + "polcy = 'a'"),
            "", "kit/local/hushtable.log",
        ),
        (
            lambda site: (site.places.folder / "south.book").unlink(),
            "", "kit/local/hushtable.log",
        ),
    ],
)  # fmt: skip
def test_what_goes_wrong_stays_at_the_site(site, caplog, recwarn, spoil, said, log):
    """NVFlare sends its server the errors that a site logs: none of these is among them."""
    request = ask(site.places.open(), "keys", site.places.keys["lead"], {})
    spoil(site)
    with caplog.at_level(logging.DEBUG):
        answer = site.answer(request)
        logging.getLogger("after").error("logged")
    assert [record.name for record in caplog.records] == ["after"]
    assert not recwarn
    assert (word(site, answer) if said else answer) == (said or b"")
    assert b"Ann" not in answer
    assert "unavailable" in (site.places.folder / log).read_text()


def test_what_libraries_log_or_warn_of_rows_is_not_in_the_log(site, caplog, recwarn, monkeypatch):
    def answer(site, request):
        logging.getLogger("hushtable.any").error("Ann Lee")
        warnings.warn("Ann Lee", UserWarning, stacklevel=1)
        raise MemoryError("Ann Lee")

    monkeypatch.setattr(Site, "answer", answer)
    assert site.answer(b"") == b""
    assert not caplog.records
    assert not recwarn


# --- at the coordinator -------------------------------------------------------------------------


class Server:
    """NVFlare's server as far as a controller sees it: tasks go in, results come out."""

    def __init__(self, answer):
        self.answer, self.sent = answer, []

    def send(self, task, fl_ctx, targets):
        self.sent.append((task, targets))
        self.answer(task, *targets)

    def get_engine(self):
        return self

    def get_clients(self):
        return [Client(f"client of {name}", "") for name in ("east", "north", "south")]


def give(task, client, result):
    """Hand in a client's result, as the server does."""
    given = ClientTask(Client(client, ""), task)
    given.result = result
    task.result_received_cb(given, None)
    task.task_done_cb(task, None)


@pytest.mark.parametrize("wrong", ["code", "no bytes"])
def test_a_round_whose_results_fail_once_in_each_step(tmp_path, monkeypatch, wrong):
    monkeypatch.setattr(carriers, "_LOOK", 0.01)
    monkeypatch.setattr(carriers, "_PAUSE", 0.1)
    places, failed = Places(tmp_path), set()
    round_ = places.open(least=3)

    def answer(task, client):
        name, request = client.removeprefix("client of "), task.data["content"]
        step = files.unpack(request, "asked").manifest["step"]
        result = Shareable({"content": places.answer(name, request)})
        if (name, step) not in failed:
            failed.add((name, step))
            error = make_reply(ReturnCode.EXECUTION_EXCEPTION)
            result = error if wrong == "code" else Shareable({"content": "words"})
        give(task, client, result)

    server = Server(answer)
    clients = nvflare._Clients(server, server, Signal(), 60.0)
    lead = Coordinator.open(tmp_path / "lead.key")
    state = lead.run(clients, tmp_path / "round.hush", tmp_path / "result.hush", timeout=60.0)
    assert state["done"], state
    assert len(failed) == 3 * 6  # hello, four steps, and the end
    places.check(round_)


def test_a_task_that_stands_is_not_sent_twice(tmp_path):
    server = Server(lambda task, client: None)
    clients = nvflare._Clients(server, server, Signal(), 7.2)
    sent = clients.push("south", b"a")
    assert sent
    assert clients.push("south", b"a") is None
    assert clients.push("south", b"b")
    task, targets = server.sent[0]
    assert (task.timeout, targets) == (8, ["south"])
    task.task_done_cb(task, None)  # its time is over
    assert clients.push("south", b"a")
    give(task, "south", Shareable({"content": b"late"}))
    assert list(clients.pull([])) == [(sent, b"late")]

    def away(task, client):
        raise ValueError("no such client")

    server.answer = away
    for _ in range(2):  # it does not stand, and so is sent again
        with pytest.raises(ValueError, match="no such client"):
            clients.push("north", b"a")


def test_a_job_that_is_stopped_ends_the_round():
    abort = Signal()
    abort.trigger(True)
    with pytest.raises(RoundError, match="run it again to continue from here"):
        nvflare._Clients(None, None, abort, 60.0).nodes()


def test_a_job_holds_names_and_nothing_else(tmp_path):
    nvflare.RoundRecipe("spring", least=3, timeout=30.0).export(str(tmp_path))
    job = tmp_path / "hushtable-spring"
    found = {str(path.relative_to(job)) for path in job.rglob("*") if path.is_file()}
    config = "app/config/config_fed_{}.json"
    assert found == {"meta.json", config.format("server"), config.format("client")}
    server, client = (
        json.loads((job / config.format(side)).read_text()) for side in ("server", "client")
    )
    assert server["workflows"][0]["args"] == {"round_name": "spring", "timeout": 30.0}
    assert client["executors"][0]["executor"] == {
        "path": "hushtable_federation.nvflare.SiteExecutor", "args": {},
    }  # fmt: skip
    assert not any(server[what] or client[what] for what in ("components", "task_result_filters"))


@pytest.mark.parametrize(
    "name", ["", "../lead", "/etc/passwd", "a/b", ".hidden", "a\nb", "a" * 101]
)
def test_a_name_that_is_a_path_is_refused(name):
    with pytest.raises(UsageError, match="is not a name"):
        nvflare.RoundRecipe(name, least=2)
    with pytest.raises(UsageError, match="is not a name"):
        nvflare.RoundController(name)._run(Signal(), FLContext())


def test_a_round_that_cannot_be_run_is_a_job_that_failed(site, monkeypatch):
    """No table of a coordinator here; then no such round."""
    said = []
    controller = nvflare.RoundController("spring")
    monkeypatch.setattr(controller, "system_panic", lambda words, fl_ctx: said.append(words))
    controller.control_flow(Signal(), site.context)
    at = site.places.folder
    with site.settings.open("a") as file:
        file.write(f"[coordinator]\nkey = '{at}/lead.key'\nrounds = '{at}'\n")
    controller.control_flow(Signal(), site.context)
    assert "[coordinator]" in said[0]
    assert "spring.hush" in said[1]
