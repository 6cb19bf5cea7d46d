"""A folder that moves, a full disk, odd names, and settings that this version did not write."""

import json
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from desk_helpers import DeskClient, patients
from hushtable_desk.folder import STATE


def test_a_folder_that_moves_is_named_until_it_is_back(client, at, folder):
    client.get(f"{at}/rows")
    moved = folder.rename(folder.with_name("elsewhere"))
    for page in ("/", at, "/models", "/rounds", "/t/0123456789ab"):
        assert client.get(page).status_code == 400, page
    assert f"{folder}: No such file or directory: check the path" in client.get("/").text
    assert "patients.hush: No such file" in client.refused(f"{at}/learned/save", name="x.hush")
    assert "disappeared" in client.refused(f"{at}/rows/1/verdict", verdict="fine")
    moved.rename(folder)
    assert client.write(f"{at}/rows/1/verdict", verdict="fine").status_code == 200


def test_a_full_disk_loses_nothing(client, at, folder):
    """Even if a part of a line fits: the next verdict is on a line of its own."""
    resource, table = pytest.importorskip("resource"), client.desk.table(at[3:])
    table.judging.answer(0, "outlier")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    most = len(before[folder / "patients.csv.verdicts.csv"]) + 20
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        errors = [
            client.refused(f"{at}/rows/1/verdict", verdict="fine"),
            client.refused(f"{at}/say", name="context", value="w" * most),
            client.refused(f"{at}/learned/save", name="x.hush"),
        ]
        client.write(f"{at}/fit")
        table.job.wait()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    for error in (*errors, table.job.error):
        assert "File too large: free some space" in error
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert table.said.context == ()
    assert client.write(f"{at}/rows/2/verdict", verdict="fine").status_code == 200
    client.desk.close()
    with DeskClient(folder) as again:
        assert [one.row for one in again.desk.table(at[3:]).judging.review.answers] == [0, 2]


ONE = '{"tables": {"patients.csv": %s}}'


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"visits": []}', ONE % 7, *(
        ONE % '{"said": %s}' % said
        for said in ("7", '{"colour": 1}', '{"skip_lines": "1"}', '{"kinds": {"pulse": "ordinal"}}')
    )],
)  # fmt: skip
def test_settings_that_cannot_be_read_are_kept(client, at, folder, content):
    """Those of a later version may state how a table is read: none is left out in silence."""
    (folder / STATE).write_text(content)
    with DeskClient(folder) as again:
        assert again.get("/").status_code == 200
        for answer in (again.get(at), again.write(f"{at}/say", name="missing", value="9")):
            assert answer.status_code == 400
            assert STATE in answer.text
    assert (folder / STATE).read_text() == content


def test_settings_are_kept_beside_those_of_other_tables_and_later_versions(client, folder):
    (folder / STATE).write_text('{"more": 7, "tables": {"patients.csv": {"later": [1]}}}')
    names = ["patients.csv", *(f"{k}.csv" for k in range(8))]
    for name in names[1:]:
        (folder / name).write_text("a\n1\n")
    tables = [client.desk.table(client.key(name)) for name in names]
    with ThreadPoolExecutor(9) as pool:
        list(pool.map(lambda table: table.decide("id_", ""), tables))  # by their numbers
    found = json.loads((folder / STATE).read_text())
    assert (found["more"], found["tables"]["patients.csv"]["later"]) == (7, [1])
    assert all(found["tables"][name]["said"] == {"id_": ""} for name in names)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_long_names_and_umlauts_are_names_like_others(client, folder, form):
    """Columns of 300 bytes, and letters as macOS writes them in names of files and columns."""
    long, short, file = (
        unicodedata.normalize(form, text) for text in ("ü" * 150, "Größe", "März.csv")
    )
    patients().rename(columns={"ward": long, "weight": short}).to_csv(folder / file, index=False)
    at = f"/t/{client.key(file)}"
    for name, value, column in (("context", long, ""), ("kinds", "number", short)):
        assert client.write(f"{at}/say", name=name, value=value, column=column).status_code == 200
    client.fit(file)
    assert client.write(f"{at}/rows/5/verdict", verdict="fine").status_code == 200
    page, sheet = client.get(f"{at}/rows/5").text, client.get(f"{at}/rows.csv")
    assert "Größe" in page
    assert "ü" * 150 in page
    assert f"''{quote(file[:-4])}%20unusual.csv" in sheet.headers["content-disposition"]


def test_a_hundred_thousand_columns_are_too_many(client, folder):
    lines = [",".join(f"{letter}{k}" for k in range(10**5)) for letter in "c123456789"]
    (folder / "wide.csv").write_text("\n".join(lines))
    at = f"/t/{client.key('wide.csv')}"
    for page in (client.get(at).text, client.refused(f"{at}/fit")):
        assert "has 100,000 columns: needs 65,535 or fewer" in page
