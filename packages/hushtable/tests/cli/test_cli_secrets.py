"""No message repeats the password of a URL, whichever command it was given to."""

import json

import pytest

from hushtable.errors import FileError, HushTableError, MissingExtraError, without_secrets

SECRET = "S3CR3T"
URLS = [
    f"postgresql://u:{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:{SECRET}/x@127.0.0.1:1/db",
    f"postgresql://u:{SECRET}@x@127.0.0.1:1/db",
    f"postgresql://127.0.0.1:1/db?user=u&password={SECRET}",
    f"https://{SECRET}@127.0.0.1:1/x.csv",
    f"https://127.0.0.1:1/x.csv#{SECRET}",
    f"https://127.0.0.1:1/x.csv?X-Amz-Signature={SECRET}",
    f"HTTPS://u:{SECRET}@127.0.0.1:1/*.csv",
    f"simplecache::https://u:{SECRET}@127.0.0.1:1/x.csv",
    f"zip://x.csv::https://u:{SECRET}@127.0.0.1:1/x.zip",
    f"s3://AK:{SECRET}@bucket/x.csv",
    f"github://u:{SECRET}@a:b/x.csv",
    f"odbc://Driver=x;Uid=u;Pwd={SECRET}",
    f"Driver=x;Uid=u;Pwd={SECRET}",
]
COMMANDS = {
    "output": lambda url: ("score", "rows.csv", "--model", "none.hush", "-o", url),
    "check": lambda url: ("check", url),
    "inspect": lambda url: ("inspect", url),
    "unknown option": lambda url: ("check", "rows.csv", f"--{url}"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", URLS)
def test_no_command_repeats_a_password(run, monkeypatch, tmp_path, command, url):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    for options in ((), ("--json",)):
        done = run(*COMMANDS[command](url), *options)
        assert done.code != 0
        assert SECRET not in done.out + done.err


@pytest.mark.parametrize("ending", ["", ".csv"])
def test_no_output_has_a_password_in_its_name(run, monkeypatch, tmp_path, ending):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"{i % 9},{i % 7}\n" for i in range(50)))
    for options in ((), ("--json",)):
        done = run("score", "rows.csv", "-o", f"Driver=x;Uid=u;Pwd={SECRET}{ending}", *options)
        assert done.code == 2
        assert SECRET not in done.out + done.err
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("url", URLS)
def test_no_exception_repeats_a_password(url):
    for error in (FileError(f"{url}: no"), HushTableError(url), MissingExtraError(url, "x", "y")):
        assert SECRET not in str(error) + repr(error) + json.dumps(error.args)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"cannot read 'https://u:{SECRET}@h/x.csv': 404", "cannot read 'https://h/x.csv': 404"),
        (f"https://h/x.csv?t={SECRET}: 404", "https://h/x.csv: 404"),
        (f"cannot write https:/u:{SECRET}@h/x.csv: no", "cannot write https:/h/x.csv: no"),
        (f"host=h password={SECRET} user=u", "host=h password=... user=u"),
        ("file:///home/ann@work/x.csv: no", "file:///home/ann@work/x.csv: no"),
        ("C:/ann@work/x.csv, line 3: a@b.example", "C:/ann@work/x.csv, line 3: a@b.example"),
        ("https://h:8080/x.csv: ask ann@h", "https://h:8080/x.csv: ask ann@h"),
        ("is it 3:4? a # b", "is it 3:4? a # b"),
        ("a" * 10**6 + ":/", "a" * 10**6 + ":/"),
    ],
)  # fmt: skip
def test_only_the_secret_parts_are_left_out(text, left):
    assert without_secrets(text) == left
