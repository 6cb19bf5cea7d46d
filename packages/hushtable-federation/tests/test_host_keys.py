"""Rows and rounds by SFTP: only from servers whose keys are known."""

import contextlib
import os
import socket
import subprocess
import threading

import pytest

from hushtable import far
from hushtable.data.readers import as_reader
from hushtable.errors import DataError, FileError
from hushtable_federation.credentials import FolderAddress
from hushtable_federation.folder.mailbox import Store, name_of

paramiko = pytest.importorskip("paramiko")

ROUND = "0123456789abcdef" * 4
CONTENT = b"good day"


class Files(paramiko.SFTPServerInterface):
    """The files of a folder, as much of them as a round needs."""

    root = ""

    def _path(self, path):
        return f"{self.root}/{path.lstrip('/')}"

    def list_folder(self, path):
        found = []
        for name in os.listdir(self._path(path)):
            found.append(self.stat(f"{path}/{name}"))
            found[-1].filename = name
        return found

    def stat(self, path):
        try:
            return paramiko.SFTPAttributes.from_stat(os.stat(self._path(path)))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    lstat = stat

    def open(self, path, flags, attributes):
        handle = paramiko.SFTPHandle(flags)
        how = "r+b" if flags & (os.O_WRONLY | os.O_RDWR) else "rb"
        if flags & os.O_CREAT:
            open(self._path(path), "ab").close()
        try:
            file = open(self._path(path), how)  # noqa: SIM115 - the handle closes it
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        handle.readfile = handle.writefile = file
        handle.stat = lambda: paramiko.SFTPAttributes.from_stat(os.fstat(file.fileno()))
        return handle

    def rename(self, old, new):
        os.rename(self._path(old), self._path(new))
        return paramiko.SFTP_OK

    posix_rename = rename

    def remove(self, path):
        os.remove(self._path(path))
        return paramiko.SFTP_OK


class Login(paramiko.ServerInterface):
    """Takes every password, and notes them."""

    def __init__(self, seen):
        self.seen = seen

    def check_auth_password(self, username, password):
        self.seen.append(password)
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username):
        return "password"

    def check_channel_request(self, kind, number):
        return paramiko.OPEN_SUCCEEDED


class Server:
    """An SFTP server on this machine; ``key`` may be changed."""

    def __init__(self, folder):
        self.key, self.passwords, self._transports = new_key(), [], []
        self._files = type("Here", (Files,), {"root": str(folder)})
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"sftp://ann:secret@127.0.0.1:{self.port}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                transport = paramiko.Transport(client)
                self._transports.append(transport)
                transport.add_server_key(self.key)
                transport.set_subsystem_handler("sftp", paramiko.SFTPServer, self._files)
                # With an event it comes back at once: one client that goes keeps no other waiting.
                transport.start_server(threading.Event(), Login(self.passwords))

    def close(self):
        self._socket.close()
        for transport in self._transports:
            transport.close()

    @property
    def name(self):
        return f"[127.0.0.1]:{self.port}"

    @property
    def fingerprint(self):
        """As ``ssh-keygen -l`` prints it, where there is one."""
        return self.key.fingerprint


def new_key():
    return paramiko.ECDSAKey.generate()


@pytest.fixture
def known(tmp_path, monkeypatch):
    """The file of known servers of someone who has none yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(far, "_OF_ALL_USERS", str(tmp_path / "of_all"))
    path = tmp_path / "home" / ".ssh" / "known_hosts"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir(mode=0o700)
    (folder / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    made = Server(folder)
    yield made
    made.close()


def line(server, key):
    return f"{server.name} {key.get_name()} {key.get_base64()}\n"


def refused(server):
    """Return what is said to rows and to rounds, which is the same, without their secrets."""
    words = []
    for error, use in (
        (FileError, lambda: Store.open(server.url)),
        (DataError, lambda: list(as_reader(f"{server.url}rows.csv").read())),
    ):
        with pytest.raises(error) as caught:
            use()
        words.append(str(caught.value).partition(": ")[2])
    assert words[0] == words[1]
    assert server.passwords == [], "the password went to a server that may be another one"
    assert "secret" not in words[0]
    return words[0]


def test_an_unknown_key_is_refused_with_its_fingerprint(server, known):
    words = refused(server)
    assert server.fingerprint in words
    assert "is not known here" in words
    assert f"sftp -P {server.port} 127.0.0.1" in words
    assert not known.exists(), "it was noted"


def test_a_key_that_changed_is_refused_with_both_fingerprints(server, known):
    before = new_key()
    known.write_text(line(server, before))
    words = refused(server)
    assert server.fingerprint in words
    assert before.fingerprint in words
    assert f"ssh-keygen -R '{server.name}'" in words


@pytest.mark.parametrize("variant", ["another kind", "another port", "another host"])
def test_what_does_not_make_a_key_known(server, known, variant):
    other = paramiko.RSAKey.generate(2048)
    known.write_text({
        "another kind": line(server, other),
        "another port": line(server, server.key).replace(str(server.port), "22"),
        "another host": line(server, server.key).replace("127.0.0.1", "127.0.0.2"),
    }[variant])  # fmt: skip
    words = refused(server)
    assert server.fingerprint in words
    assert (other.fingerprint in words) == (variant == "another kind")


def test_a_damaged_line_is_named(server, known):
    known.write_text(line(server, server.key)[:-30])
    assert "a line that cannot be read: remove '[127.0.0.1]" in refused(server)


@pytest.mark.parametrize("where", ["own", "of all users", "hashed"])
def test_a_known_key_is_taken(server, known, where):
    name = server.name
    if where == "hashed":
        name = paramiko.HostKeys.hash_host(name)
    path = far._OF_ALL_USERS if where == "of all users" else known
    with open(path, "w") as file:
        file.write(line(server, server.key).replace(server.name, name))
    store = Store.open(server.url)
    file = name_of(ROUND, "keys", "north", CONTENT)
    assert store.add(file, CONTENT)
    assert store.names() == [file]
    assert store.read(file) == CONTENT
    assert sum(batch.num_rows for batch in as_reader(f"{server.url}rows.csv").read()) == 2
    assert set(server.passwords) == {"secret"}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o2770])
def test_a_folder_of_rounds_that_others_may_replace_is_refused(server, known, tmp_path, mode):
    known.write_text(line(server, server.key))
    (tmp_path / "served").chmod(mode)
    with pytest.raises(FileError, match=rf"mode {mode:o}.*chmod 3770"):
        Store.open(server.url)
    (tmp_path / "served").chmod(mode | 0o1000)  # where each removes only what is theirs
    assert Store.open(server.url).names() == []


def test_it_is_checked_again_with_each_connection(server, known):
    known.write_text(line(server, server.key))
    Store.open(server.url)
    server.passwords.clear()
    before, server.key = server.key, new_key()
    with pytest.raises(FileError) as caught:
        Store.open(server.url)
    assert before.fingerprint in str(caught.value)
    assert server.passwords == []


def test_no_chain_goes_around_the_check(server, known):
    for url in (f"simplecache::{server.url}rows.csv", f"filecache::{server.url}rows.csv"):
        with pytest.raises(DataError, match="several URLs in one"):
            list(as_reader(url).read())
    assert server.passwords == []


def test_fingerprints_are_those_of_openssh(tmp_path):
    key = new_key()
    (tmp_path / "key.pub").write_text(f"{key.get_name()} {key.get_base64()}\n")
    try:
        printed = subprocess.run(
            ["ssh-keygen", "-l", "-f", tmp_path / "key.pub"], capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("needs ssh-keygen")
    assert far._fingerprint(key).split()[1] in printed.stdout


def address_of(server, host_key="", login="env:LOGIN"):
    """Return how the folder is reached, by a URL without a password."""
    return FolderAddress(f"sftp://ann@127.0.0.1:{server.port}/", host_key, login)


def store_of(address):
    return Store.open(address.folder, address=address)


@pytest.fixture
def login(monkeypatch):
    monkeypatch.setenv("LOGIN", "secret")


def test_a_fingerprint_makes_a_key_known(server, known, login):
    store = store_of(address_of(server, server.fingerprint.split()[-1]))
    file = name_of(ROUND, "keys", "north", CONTENT)
    assert store.add(file, CONTENT)
    assert store.read(file) == CONTENT
    assert server.passwords == ["secret"]


def test_another_fingerprint_is_refused_with_both(server, known, login):
    known.write_text(line(server, server.key))  # what the user knows does not count beside it
    named = new_key().fingerprint.split()[-1]
    with pytest.raises(FileError) as caught:
        store_of(address_of(server, named))
    assert server.fingerprint.split()[-1] in str(caught.value)
    assert named in str(caught.value)
    assert server.passwords == []


def test_a_file_of_host_keys(server, known, login, tmp_path):
    hosts, before = tmp_path / "hosts", new_key()
    hosts.write_text(line(server, server.key))
    assert store_of(address_of(server, str(hosts))).names() == []
    hosts.write_text(line(server, before))
    with pytest.raises(FileError) as caught:
        store_of(address_of(server, str(hosts)))
    assert before.fingerprint in str(caught.value)
    assert server.fingerprint in str(caught.value)
    assert f"replace its line in {hosts}" in str(caught.value)
    hosts.write_text("")
    with pytest.raises(FileError, match="has none for this server"):
        store_of(address_of(server, str(hosts)))
    hosts.unlink()
    with pytest.raises(FileError, match="cannot be read"):
        store_of(address_of(server, str(hosts)))
    assert server.passwords == ["secret"]


def test_without_a_fingerprint_the_key_has_to_be_known(server, known, login):
    with pytest.raises(FileError, match="is not known here"):
        store_of(address_of(server))
    assert server.passwords == []


def test_a_login_is_for_the_folder_of_the_file_alone(server, known, login, tmp_path):
    known.write_text(line(server, server.key))
    address = address_of(server)
    with pytest.raises(FileError):
        Store.open(f"{address.folder}other", address=address)
    assert server.passwords == []


@pytest.mark.parametrize(
    ("url", "host_key", "login_", "says"),
    [
        ("s3://bucket/x", "", "agent", "is only for sftp"),
        ("s3://bucket/x", "SHA256:x", "", "host_key is only for sftp"),
        ("s3://bucket/x", "", "env:LOGIN", "ACCESS_KEY:SECRET_KEY"),
        ("abfs://x/y", "", "env:LOGIN", "set the environment variables"),
    ],
)
def test_what_does_not_fit_a_url(login, url, host_key, login_, says):
    with pytest.raises(FileError, match=says) as caught:
        FolderAddress(url, host_key, login_).options()
    assert "'secret'" not in str(caught.value)


def test_options_of_other_places(monkeypatch):
    monkeypatch.setenv("LOGIN", "id:secret")
    options, secret = FolderAddress("s3://bucket/x", "", "env:LOGIN").options()
    assert (options, secret) == ({"key": "id", "secret": "secret"}, "secret")
    options, secret = FolderAddress("webdavs://ann@host/x", "", "env:LOGIN").options()
    assert (options, secret) == ({"auth": ("ann", "id:secret")}, "id:secret")
