"""The desk in German: a messy table on every page, without English words or numbers."""

import html
import re

import pytest

from desk_helpers import DeskClient, words
from messy_laboratory import write_laboratory

#: Words of English pages that no German text has.
ENGLISH = {
    "the", "and", "of", "with", "rows", "row", "usually", "missing", "threshold", "noise", "is",
    "has", "have", "are", "this", "that", "between", "values", "numbers", "dates", "texts", "holds",
    "different", "encoding", "identifiers", "outliers", "reviewed", "numeric", "yes", "no", "bits",
    "fitted", "leave", "made", "learned", "found", "not", "there", "beyond", "chance", "above",
}  # fmt: skip


def english(page):
    """Return the English words of a page, its pictures and labels among them."""
    labels = re.findall(r'aria-label="([^"]*)"', page)
    pictures = re.findall(r"<text[^>]*>([^<]*)", page)
    text = html.unescape(" ".join([words(page), *labels, *pictures]))
    text = re.sub(r"0 6 \* \* \*.*? -o watched", "", text)  # a command
    return {word.strip(".,:;()„“?").lower() for word in text.split()} & ENGLISH


@pytest.fixture
def client(tmp_path):
    """A desk on a table whose first column has no name, and whose last row repeats another."""
    path = tmp_path / "labor.csv"
    write_laboratory(path, 1500)
    head, *lines = path.read_bytes().split(b"\r\n")[:-1]
    lines.append(lines[0].replace(b"central", b"west"))
    path.write_bytes(b"\r\n".join([head.removeprefix(b"Case"), *lines, b""]))
    with DeskClient(tmp_path) as client:
        client.write("/settings", language="de")
        yield client


def test_no_page_has_english_words_or_numbers(client):
    at = f"/t/{client.key('labor.csv')}"
    pages = {"home": client.get("/").text, "table": client.get(at).text}
    assert "1.500 verschiedene Texte in 1.501 Zeilen" in pages["table"]
    assert "1 Zeile hat die Kennung einer früheren Zeile" in words(pages["table"])
    client.write(f"{at}/say", name="missing", value="-999")
    client.write(f"{at}/say", name="id_", value="")
    client.fit("labor.csv")
    pages["rows"] = client.get(f"{at}/rows").text
    for answer in ("outlier", "fine"):
        number = re.search(r'h1 data-number="(\d+)"', client.get(f"{at}/rows").text)[1]
        client.write(f"{at}/rows/{number}/verdict", verdict=answer)
    model = client.desk.folder.models[0].key
    for name, address in (("learned", f"{at}/learned"), ("watch", f"{at}/watch"),
                          ("models", "/models"), ("model", f"/models/{model}"),
                          ("none", "/nothing")):  # fmt: skip
        pages[name] = client.get(address).text
    left = {name: english(page) for name, page in pages.items()}
    assert {name: found for name, found in left.items() if found} == {}
    grouped = {
        name: re.findall(r"\b[1-9]\d{0,2},\d{3}\b", words(page)) for name, page in pages.items()
    }
    assert {name: found for name, found in grouped.items() if found} == {}
    assert re.search(r"\d,\d kB", pages["home"])
    assert re.search(r"\d,\d\d %", words(pages["watch"]))
    assert "Okt 2026" in pages["watch"]


def test_what_cannot_be_done_is_said_in_german(client):
    at = f"/t/{client.key('labor.csv')}"
    client.write(f"{at}/say", name="id_", value="")
    client.fit("labor.csv")
    assert "kein Urteil" in client.write(f"{at}/undo").json()["error"]
    known = client.write(f"{at}/rows/1/known").json()["error"]
    assert "„Zeilen benannt nach“" in known
    assert "--id" not in known


def test_the_table_is_in_the_language_that_is_chosen_last(client):
    at = f"/t/{client.key('labor.csv')}"
    assert "Datumsangaben" in client.get(at).text
    client.write("/settings", language="en")
    assert "1,501 dates, day first" in client.get(at).text
