"""Commands of rounds leave passwords and tokens in addresses out of their messages."""

import pytest

SECRET = "hunter2"
URLS = [
    f"https://u:{SECRET}@127.0.0.1:1/x.csv",
    f"https://127.0.0.1:1/x.csv?X-Amz-Signature={SECRET}",
    f"zip://x.csv::https://u:{SECRET}@127.0.0.1:1/x.zip",
    f"s3://AK:{SECRET}@bucket/x.csv",
    f"odbc://Driver=x;Uid=u;Pwd={SECRET}",
]
COMMANDS = {
    "status": lambda url: ("round", "status", url),
    "sync": lambda url: ("round", "sync", url, "--key", "none.key"),
    "book": lambda url: ("round", "book", url),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", URLS)
def test_no_command_repeats_a_password(run, monkeypatch, tmp_path, command, url):
    monkeypatch.chdir(tmp_path)
    for options in ((), ("--json",)):
        done = run(*COMMANDS[command](url), *options)
        assert done.code != 0
        assert SECRET not in done.out + done.err
