"""Logins and secrets by reference: where they are read, and what is refused."""

import pytest

from hushtable.errors import FileError, MissingExtraError
from hushtable_federation import SiteSettings
from hushtable_federation.credentials import FolderAddress, read_secret


def test_an_environment_and_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGIN", "s3cret")
    assert read_secret("env:LOGIN", "login") == "s3cret"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "login").write_text("s3cret\n")
    (tmp_path / "login").chmod(0o400)
    assert read_secret("file:$CREDENTIALS_DIRECTORY/login", "login") == "s3cret"


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("env:NOT_THERE", "no environment variable NOT_THERE"),
        ("file:nowhere", "No such file"),
        ("file:$NOT_THERE/login", "variable is not set"),
        ("s3cret", "not a reference to a secret"),
        ("s3cret:x", "not a reference to a secret"),
        ("agent", "not a reference to a secret"),
    ],
)
def test_what_is_refused(reference, says):
    with pytest.raises(FileError, match=says) as caught:
        read_secret(reference, "login")
    assert "s3cret" not in str(caught.value)


def test_an_empty_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGIN", "")
    with pytest.raises(FileError, match="env:LOGIN is empty"):
        read_secret("env:LOGIN", "login")


def test_a_keyring(monkeypatch):
    keyring = pytest.importorskip("keyring")
    kept = {("clinic", "hushtable"): "s3cret"}

    class Kept(keyring.backend.KeyringBackend):
        priority = 1

        def get_password(self, service, username):
            return kept.get((service, username))

        def set_password(self, service, username, password):
            raise NotImplementedError

        def delete_password(self, service, username):
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(Kept())
    try:
        assert read_secret("keyring:clinic", "login") == "s3cret"
        with pytest.raises(FileError, match="keyring set other hushtable"):
            read_secret("keyring:other", "login")
        from keyring.backends.fail import Keyring

        keyring.set_keyring(Keyring())
        with pytest.raises(FileError, match="cannot be read"):
            read_secret("keyring:clinic", "login")
    finally:
        keyring.set_keyring(before)
    monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    with pytest.raises(MissingExtraError, match="keyring"):
        read_secret("keyring:clinic", "login")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ('folder = "sftp://ann:s3cret@host/round"', "line 2: folder has a password in its URL"),
        ('folder = "sftp://ann:s3/cret@host/round"', "line 2: folder has a password in its URL"),
        ('folder = "sftp://h"\nlogin = "s3cret"', "line 3: login is not a reference"),
        ('login = "agent"', "login needs folder"),
        ('host_key = "SHA256:x"', "host_key needs folder"),
    ],
)
def test_no_secret_in_a_file(tmp_path, entries, says):
    (tmp_path / "north.toml").write_text(f'key = "north.key"\n{entries}\n')
    with pytest.raises(FileError, match=says) as caught:
        SiteSettings.load(tmp_path / "north.toml")
    assert "s3cret" not in str(caught.value)


def test_entries_of_a_far_folder(tmp_path):
    (tmp_path / "north.toml").write_text(
        'key = "north.key"\nfolder = "sftp://ann@host:2222/a@b"\nhost_key = "hosts"\n'
        'login = "key:id"\n'
    )
    found = SiteSettings.load(tmp_path / "north.toml")
    assert found.address.folder == "sftp://ann@host:2222/a@b"
    assert found.address.host_key == str(tmp_path / "hosts")
    assert found.address.login == f"key:{tmp_path}/id"


def test_words_are_no_paths(tmp_path):
    (tmp_path / "north.toml").write_text(
        'key = "north.key"\nfolder = "round"\nhost_key = "SHA256:x"\n'
        'login = "file:$CREDENTIALS_DIRECTORY/x"\n'
    )
    found = SiteSettings.load(tmp_path / "north.toml")
    assert found.address.folder == str(tmp_path / "round")
    assert found.address.host_key == "SHA256:x"
    assert found.address.login == "file:$CREDENTIALS_DIRECTORY/x"


def test_a_key_for_a_login_that_others_may_read_or_that_is_not_there(tmp_path):
    path = tmp_path / "id_ed25519"
    reached = FolderAddress("sftp://north@server/round", "", f"key:{path}")
    with pytest.raises(FileError, match=r"No such file.*chmod 600"):
        reached.options()
    path.write_text("s3cret")
    path.chmod(0o644)
    with pytest.raises(FileError, match=r"mode 644.*run chmod 600") as caught:
        reached.options()
    assert "s3cret" not in str(caught.value)
    path.chmod(0o600)
    assert reached.options()[0]["key_filename"] == str(path)
