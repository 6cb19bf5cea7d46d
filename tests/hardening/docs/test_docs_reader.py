"""The reader notices what is wrong with a page."""

import pytest

from docs_reader import Reader

FALSE = {
    "output": "```python\nprint(1)\n```\n```text\n2\n```\n",
    "code": "```python\nraise AssertionError\n```\n",
    "command": "```sh\nhushtable inspect nothing.hush\n```\n",
    "refusal": "```sh\nhushtable --version    # refused\n```\n",
    "option": "```sh\nhushtable bench adbench --nonsense 1\n```\n",
    "program": "```sh\nnobody --knows\n```\n",
    "extra": "```sh\npip install 'hushtable[nonsense]'\n```\n",
    "target": "```sh\nmake nonsense\n```\n",
    "script": "```sh\n.venv/bin/python benchmarks/nonsense.py\n```\n",
}


@pytest.mark.parametrize("wrong", FALSE)
def test_a_false_page_is_noticed(wrong, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(FALSE[wrong])
    with pytest.raises(AssertionError):
        Reader(page, tmp_path).follow()


def test_a_true_page_is_followed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```text\n# a.txt\nsome text\n```\n"
        "```sh\ncp a.txt b.txt\nhushtable inspect b.txt    # refused\n```\n"
        "```text\nhushtable: error: ...\n```\n"
        "```python\nfrom pathlib import Path\nprint(Path('b.txt').read_text(), 3.14159)\n```\n"
        "```text\nsome text\n3.1...\n```\n"
    )
    assert len(Reader(page, tmp_path).follow().did) == 2
