"""Archives: one table of them is read, and nothing else happens."""

import gc
import gzip
import io
import lzma
import tarfile
import tempfile
import zipfile

import pytest

from hushtable.data.readers import FileLayout, as_reader
from hushtable.data.readers import copies as unpacking
from hushtable.errors import DataError, UsageError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

CSV = "age,ward\n30,north\n40,south\n50,north\n"
ROWS = [(30, "north"), (40, "south"), (50, "north")]


def zipped(path, files=(("export.csv", CSV),), method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in dict(files).items():
            archive.writestr(name, content)
    return path


def values(reader):
    return [(int(row["age"]), row["ward"]) for b in reader.read() for row in b.to_pylist()]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("name", ["a.zip", "a.csv", "a"])
def test_one_table_of_an_archive(tmp_path, temporary, name):
    zipped(tmp_path / name)
    reader = as_reader(tmp_path / name)
    (copy,) = temporary.iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [values(reader) for _ in range(2)] == [ROWS] * 2
    assert reader.source == str(tmp_path / name)
    assert reader.place(1) == "line 3"
    del reader
    gc.collect()
    assert not list(temporary.iterdir())


def test_what_goes_with_a_table_is_left_out_and_said(tmp_path):
    files = {"README.txt": "Read me.", "export.csv": CSV, "__MACOSX/._export.csv": "\0",
             ".DS_Store": "\0", "data/": "", "about.html": "<html>"}  # fmt: skip
    reader = as_reader(zipped(tmp_path / "a.zip", files))
    assert values(reader) == ROWS
    assert reader.found == ("left out of the archive: README.txt, about.html",)


SEVERAL = {"x/one.csv": CSV, "x/two.csv": CSV.replace("30", "31") * 2, "README.txt": "Read me."}


def test_several_tables_are_asked_about(tmp_path):
    path = zipped(tmp_path / "a.arc", SEVERAL)
    says = r"several files, \['x/one.csv', 'x/two.csv'\]: choose one with --read member=NAME"
    with pytest.raises(DataError, match=rf"{says}\nAdd: --read member=x/two.csv$"):
        as_reader(path)
    for name in ("x/one.csv", "one.csv"):
        assert values(as_reader(path, layout=FileLayout(member=name))) == ROWS
    with pytest.raises(
        DataError, match=r"does not contain 'no.csv', but \['x/one.csv', 'x/two.csv'\]"
    ):
        as_reader(path, layout=FileLayout(member="no.csv"))


def test_a_member_of_what_has_none_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    with pytest.raises(UsageError, match=r"cannot use --read member=\.\.\.: leave it out"):
        as_reader(tmp_path / "a.csv", layout=FileLayout(member="x"))
    with pytest.raises(DataError, match="does not contain 'x'"):
        as_reader(zipped(tmp_path / "a.zip"), layout=FileLayout(member="x"))


# Bad input


def test_an_encrypted_file(tmp_path):
    path = zipped(tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    content[6] |= 1  # of the file's own header, and of the list at the end
    content[content.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"export.csv is encrypted: unpack it with its password"):
        as_reader(path)


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(unpacking, "LARGE", 1 << 20)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("declared", [True, False])
def test_a_file_that_becomes_huge(tmp_path, temporary, declared):
    path = zipped(tmp_path / "a.zip", {"export.csv": "a\n" + "1\n" * (1 << 21)})
    if not declared:  # it says of itself that it is small
        content = bytearray(path.read_bytes())
        for mark, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
            at = content.index(mark) + place
            content[at : at + 4] = (1000).to_bytes(4, "little")
        path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"would unpack to more than .* GB, over 200 times|cannot be unpacked"
    ):
        as_reader(path)
    gc.collect()
    assert sum(one.stat().st_size for one in temporary.iterdir()) <= 1 << 21


def test_an_archive_that_changes_while_it_is_unpacked(tmp_path, monkeypatch):
    path = zipped(tmp_path / "a.zip")
    pour = unpacking._pour

    def slowly(*arguments):
        pour(*arguments)
        with path.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(unpacking, "_pour", slowly)
    with pytest.raises(DataError, match="changed while it was being read"):
        as_reader(path)


def test_a_name_that_no_file_may_have(tmp_path):
    name = "x" * 300 + ".c\nsv." + "y" * 300
    assert values(as_reader(zipped(tmp_path / "a.zip", {name: CSV}))) == ROWS


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("a.tar", lambda path: tarfile.open(path, "w").close(), "holds nothing|a tar archive"),
        ("a.tgz", lambda path: tarred(path), r"a tar archive, which is not read: unpack it \(tar"),
        ("a.csv", lambda path: path.write_bytes(lzma.compress(CSV.encode())), "with xz, which is"),
        ("a.csv", lambda path: path.write_bytes(gzip.compress(gzip.compress(b"a"))), "twice"),
        ("a.zip", lambda path: zipped(path, {"b.zip": zipped(path).read_bytes()}), "within anoth"),
    ],
)
def test_packed_files_that_have_to_be_unpacked(tmp_path, name, make, says):
    make(tmp_path / name)
    with pytest.raises(DataError, match=says):
        as_reader(tmp_path / name)


def tarred(path):
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("a.csv")
        entry.size = len(CSV)
        archive.addfile(entry, io.BytesIO(CSV.encode()))
