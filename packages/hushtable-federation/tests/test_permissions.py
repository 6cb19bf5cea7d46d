"""Who else can change or read a policy, keys, or a secret: owners and modes, also of folders."""

import os
import tempfile
from pathlib import Path

import pytest

from hushtable.errors import HushTableError
from hushtable_federation import permissions
from hushtable_federation.credentials import read_secret
from hushtable_federation.keys import Keys
from hushtable_federation.policy import load_policy, write_policy

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the system has no such modes")
is_root = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="needs root, to give files to other accounts"
)
NOBODY = 65534


def write_secret(path):
    path.write_text("five random words\n")
    path.chmod(0o600)


FILES = {
    "policy": (lambda path: write_policy(path, "north", 2.0, 1e-6), load_policy),
    "keys": (lambda path: Keys.generate("north").save(path), Keys.load),
    "secret": (write_secret, lambda path: read_secret(f"file:{path}", "login")),
}


@pytest.fixture(params=FILES)
def file(request, tmp_path):
    """A file that is fine, and the function that reads it."""
    write, read = FILES[request.param]
    path = tmp_path / "of the site" / "north.file"
    path.parent.mkdir(mode=0o755)
    write(path)
    read(path)
    return path, read


@is_root
def test_a_file_of_another_account_is_refused(file):
    path, read = file
    os.chown(path, NOBODY, NOBODY)
    for mode in (0o600, 0o400):
        path.chmod(mode)
        with pytest.raises(HushTableError, match=rf"\(nobody\) owns.*chown root.*{path.name}"):
            read(path)


@is_root
def test_a_file_in_a_folder_of_another_account_is_refused(file):
    path, read = file
    os.chown(path.parent, NOBODY, NOBODY)
    with pytest.raises(HushTableError, match=r"\(nobody\) owns the folder .*chown root"):
        read(path)


@pytest.mark.parametrize(
    ("mode", "mend"),
    [(0o777, "run chmod go-w"), (0o757, "run chmod go-w"), (0o1777, "use a folder")],
)
def test_a_file_in_a_folder_that_others_may_write_to_is_refused(file, mode, mend):
    path, read = file
    path.parent.chmod(mode)
    with pytest.raises(HushTableError, match=rf"folder \(mode {mode:o}\) and replace .*: {mend}"):
        read(path)


@pytest.mark.parametrize("alone", [True, False])
def test_a_group_may_write_to_the_folder_if_it_is_the_owner_s_alone(file, alone, monkeypatch):
    path, read = file
    path.parent.chmod(0o775)
    monkeypatch.setattr(permissions, "_is_alone", lambda user, group: alone)
    if alone:
        read(path)
        return
    with pytest.raises(HushTableError, match=r"chmod go-w"):
        read(path)


def test_a_link_counts_by_where_it_leads(file, tmp_path):
    path, read = file
    link = tmp_path / "link"
    link.symlink_to(path)
    read(link)
    path.parent.chmod(0o777)
    with pytest.raises(HushTableError, match="others may write to the folder"):
        read(link)


@is_root
def test_files_of_root_are_fine_for_a_service():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        policy = Path(name) / "north.policy.toml"
        write_policy(policy, "north", 2.0, 1e-6)
        policy.chmod(0o644)
        os.seteuid(NOBODY)
        try:
            assert load_policy(policy).total_epsilon == 2.0
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("mode", [0o640, 0o440, 0o644, 0o604, 0o660])
def test_a_secret_that_its_group_may_read_is_refused(tmp_path, mode):
    path = tmp_path / "passphrase"
    write_secret(path)
    path.chmod(mode)
    with pytest.raises(HushTableError, match=rf"\(mode {mode:o}\): run chmod 600"):
        read_secret(f"file:{path}", "passphrase")


def test_a_credential_of_systemd_has_the_mode_that_systemd_reports(tmp_path, monkeypatch):
    path = tmp_path / "passphrase"
    write_secret(path)
    path.chmod(0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_secret("file:$CREDENTIALS_DIRECTORY/passphrase", "passphrase")
    path.chmod(0o444)
    with pytest.raises(HushTableError, match="mode 444"):
        read_secret("file:$CREDENTIALS_DIRECTORY/passphrase", "passphrase")


@pytest.mark.parametrize("options", [("--cap", "2"), ()])
def test_keys_are_not_made_where_others_can_replace_them(run, tmp_path, options):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    done = run("round", "keygen", "north", "--folder", folder, *options)
    assert done.code == 1
    assert "others may write to the folder (mode 777)" in done.err
    assert list(folder.iterdir()) == []
