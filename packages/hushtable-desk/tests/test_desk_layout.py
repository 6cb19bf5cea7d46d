"""Every doubt and refusal of reading has a control on the page of its table."""

import csv
import html
import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from desk_helpers import DeskClient
from hushtable_desk.folder import TABLES

MESSY = Path(__file__).parents[2] / "hushtable" / "tests" / "messy"
CASES = tomllib.loads((MESSY / "expected.toml").read_text("utf-8"))
FILES = {path.name.split(".")[0]: path for path in sorted((MESSY / "files").iterdir())}
#: Files that the desk lists; each day, those whose layout is a question.
LISTED = [
    name if "--read" in case.get("options", "") else pytest.param(name, marks=pytest.mark.slow)
    for name, case in CASES.items()
    if FILES[name].name.lower().endswith(TABLES)
]
#: What no page may contain: options of commands, and calls of Python.
TYPED = re.compile(r"--(?:read|missing|as|drop|dates|decimal)\b|hushtable\.data|In Python|Add: ")
ENGLISH = re.compile(r"\b(the|is|are|if|and|or|of|to|add|choose|give|needs|has|holds|line)\b", re.I)
BUTTON = re.compile(r'data-say="([^"]*)" data-value="([^"]*)"(?: data-column="([^"]*)")?')
#: Packed in a way that is not read: the owner unpacks them.
PACKED = ("xz_cp850", "gz_tar")
MOST_CLICKS = 8
#: Seconds by the keystroke-level model (Card, Moran, and Newell, 1980), each with its decision.
READ, CLICK, KEY, HANDS = 1.35, 1.35 + 1.1 + 0.1, 1.35 + 0.28, 2 * 0.4


@pytest.fixture
def client(tmp_path):
    with DeskClient(tmp_path) as client:
        yield client


def opened(client, path):
    """Return the address of a copy of a file in the open folder."""
    shutil.copy(path, client.desk.folder.path)
    return f"/t/{client.key(path.name)}"


def page_of(client, at):
    page = client.get(at).text
    assert not TYPED.search(page), TYPED.search(page)
    return page


def asks(page):
    """Whether a page states a refusal, or columns to decide on."""
    return 'class="error"' in page or 'id="doubts"' in page


def buttons(page):
    return [tuple(map(html.unescape, found)) for found in BUTTON.findall(page)]


def wanted(typed):
    """Return what an owner types as the decisions of buttons: name, value, column."""
    words = iter(shlex.split(typed))
    for word in words:
        name, value = word[2:], next(words)
        if name == "read":
            name, _, value = value.partition("=")
        for one in next(csv.reader([value])) if name in ("missing", "as", "drop") else [value]:
            column, _, kind = one.rpartition("=")
            yield ("kinds", kind, column) if name == "as" else (name, one, "")


def is_button(decision, button):
    """Whether a button takes a decision; its code may be limited to a column."""
    limited = button[0] == "missing" and button[1].endswith(f":{decision[1]}")
    return button == decision or (decision[0] == "missing" and limited)


def click(client, at, button):
    name, value, column = button
    answer = client.write(f"{at}/say", name=name, value=value, column=column)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", LISTED)
def test_what_an_owner_would_type_is_a_button(client, name):
    """The options of a hard file that its owner types are buttons where the page asks."""
    at = opened(client, FILES[name])
    page = page_of(client, at)
    if lists := re.findall(r'data-list="([^"]*)"', page):
        answer = client.write(f"{at}/list", name=lists[0])
        at = answer.json()["address"]
        page = page_of(client, at)
    decisions, clicked = list(wanted(CASES[name].get("options", ""))), set()
    n_decisions = 0
    while asks(page) and name not in PACKED and n_decisions < MOST_CLICKS:
        n_decisions += 1
        offered = [one for one in buttons(page) if one not in clicked]
        fit = [one for one in offered if any(is_button(known, one) for known in decisions)]
        if not CASES[name].get("refused"):
            assert fit, f"{decisions} are not among {offered}"
        # Of a file that has no right reading, the owner takes one way after the other.
        button = (fit or offered)[0]
        clicked |= {button, (button[0], "", button[2])}
        click(client, at, button)
        decisions = [known for known in decisions if not is_button(known, button)]
        page = page_of(client, at)
    assert asks(page) == (name in PACKED)
    if name not in PACKED:
        seconds = (bool(lists) + n_decisions) * (READ + CLICK) + judged_and_exported(client, at)
        print(f"{name}: {bool(lists) + n_decisions} decisions, {seconds:.0f} s")
        assert seconds < 240


def judged_and_exported(client, at):
    """Fit a model, judge 20 rows, and export a workbook; return the seconds that this takes."""
    table, judged = client.desk.table(at[3:]), 0
    client.fit(table.name)
    while judged < 20 and (number := table.judging.next()) is not None:
        table.judging.answer(number, "fine")
        judged += 1
    assert client.get(f"{at}/rows.xlsx").content.startswith(b"PK")
    return 4 * CLICK + judged * KEY + HANDS  # the file, the fit, the menu, the workbook


def test_refusals_are_in_the_language_of_the_page(client):
    """No refusal of a file whose layout is a question has an English word on a German page."""
    n_refused = 0
    for name in (name for name in LISTED if isinstance(name, str)):
        at = opened(client, FILES[name])
        page = client.get(at, headers={"accept-language": "de"}).text
        for words in re.findall(r'class="error">([^<]*)<', page):
            n_refused += 1
            own_words = re.sub(r"'[^']*'|\[[^]]*\]", "", html.unescape(words))
            assert not ENGLISH.search(own_words), words
    assert n_refused > 20


def test_lines_of_the_file_are_buttons_and_each_decision_can_be_taken_back(client):
    path = client.desk.folder.path / "report.csv"
    rows = "".join(f"{k};{k % 7}\n" for k in range(40))
    path.write_text(f"Report of the ward\n\nage;pulse\n{rows}Sum;117\n\n")
    at = f"/t/{client.key('report.csv')}"
    table = client.desk.table(at[3:])
    picture = table.picture
    assert [line.text for line in picture.first[:3]] == ["Report of the ward", "", "age;pulse"]
    assert picture.first[2].option == ("skip_lines", "2")
    assert picture.last[-1].text == "Sum;117"
    assert picture.last[-1].option == ("skip_footer", "1")
    assert picture.signs == ((";", 2, ("delimiter", ";")),)
    click(client, at, ("skip_lines", "2", ""))
    click(client, at, ("skip_footer", "1", ""))
    page = page_of(client, at)
    assert not asks(page)
    assert [one.name for one in table.columns] == ["age", "pulse"]
    assert table.quality.n_rows == 40
    assert "the table begins in line 3" in page
    assert "leave out the last line" in page
    assert [(one.name, one.value) for one in table.said.decisions] == [
        ("skip_lines", ""), ("skip_footer", ""),
    ]  # fmt: skip
    click(client, at, ("skip_footer", "", ""))
    assert table.said.skip_footer is None
    click(client, at, ("missing", "999", ""))
    click(client, at, ("kinds", "category", "age"))
    click(client, at, ("drop", "pulse", ""))
    for one in table.said.decisions:
        click(client, at, (one.name, one.value, one.column))
    assert table.said.decisions == []
    click(client, at, ("no_header", "true", ""))
    click(client, at, ("all", "", ""))
    assert table.said.decisions == []
    assert "?layout" in page
    assert 'class="picture"' in client.get(f"{at}?layout").text


def test_encodings_are_told_apart_by_words_of_the_file(client):
    at = opened(client, FILES["czech_koruna"])
    found = {name: words for name, words, _option in client.desk.table(at[3:]).picture.encodings}
    assert "Částka" in found["cp1250"]
    assert found["cp1252"] != found["cp1250"]
    assert len(set(found.values())) == len(found)


def test_a_list_in_a_json_file_becomes_a_file_of_its_own(client):
    folder = client.desk.folder.path
    content = {"made": "2026", "rows": [{"a": 1.5, "b": 2}, {"a": 2.5, "b": 3}] * 20, "n": 40}
    (folder / "x.json").write_text(json.dumps(content))
    (folder / "x.rows.json").write_text("{}")
    at = f"/t/{client.key('x.json')}"
    address = client.write(f"{at}/list", name="rows").json()["address"]
    assert (folder / "x.rows.json").read_text() == "{}"
    assert "40 rows, 2 columns" in client.get(address).text
    assert "holds no list" in client.write(f"{at}/list", name="made").json()["error"]


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"PK\3\4 broken", b"SQLite format 3\0 broken", b"{", b"\xff" * 99]
)
@pytest.mark.parametrize("ending", ["csv", "xlsx", "zip", "db", "json"])
def test_a_file_that_cannot_be_looked_into_has_a_page_all_the_same(client, content, ending):
    (client.desk.folder.path / f"odd.{ending}").write_bytes(content)
    assert 'class="error"' in page_of(client, f"/t/{client.key(f'odd.{ending}')}")


def test_a_hostile_file_shows_its_lines_as_text(client):
    evil = "<img src=x onerror=alert(1)>"
    path = client.desk.folder.path / "evil.csv"
    path.write_text(f'{evil};b\n"{evil}";2;3\n\x1b[31m;4\n' * 9)
    page = page_of(client, f"/t/{client.key('evil.csv')}")
    assert "<img" not in page
    assert "\x1b" not in page
