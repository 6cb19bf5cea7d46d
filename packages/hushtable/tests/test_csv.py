"""CSV files as systems export them: found out, or refused with the option that says it."""

import csv
import gzip
import io
import random
import re
from pathlib import Path

import pyarrow as pa
import pytest

from hushtable import HushTable, data
from hushtable.data.readers import FileLayout, Unasked, as_reader
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, UsageError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

ROWS = [[f"P{i:03}", f"{i * 37 % 101},{i % 10}", str(20 + i * 7 % 60)] for i in range(30)]
NAMES = ["Pat", "TSH", "Alter"]


def lines(*above, names=NAMES, rows=ROWS, below=(), delimiter=";", end="\n"):
    table = [delimiter.join(fields) for fields in ([names] if names else []) + rows]
    return end.join([*above, *table, *below, ""])


@pytest.fixture
def read(tmp_path):
    """Write a file, and return its reader."""

    def reader(content, *, name="a.csv", written="utf-8", **layout):
        content = content.encode(written) if isinstance(content, str) else content
        (tmp_path / name).write_bytes(content)
        return as_reader(tmp_path / name, layout=FileLayout(**layout))

    return reader


def values(reader):
    return [list(row.values()) for batch in reader.read() for row in batch.to_pylist()]


def refused(read, content, **layout):
    with pytest.raises(DataError) as caught:
        list(read(content, **layout).read())
    return str(caught.value)


def test_fields_are_text_as_they_stand(read):
    reader = read('a,b,c\n007,1.50,"NA"\n1e3,, x \n9007199254740993,"",N/A\n')
    assert {str(kind) for b in reader.read() for kind in b.schema.types} == {"string"}
    assert values(reader) == [
        ["007", "1.50", None],
        ["1e3", None, " x "],
        ["9007199254740993", None, None],
    ]
    assert reader.found == ()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_and_ends_of_lines(read, delimiter, end):
    rows = [[p, t if delimiter != "," else t.replace(",", "."), a] for p, t, a in ROWS]
    reader = read(lines(rows=rows, delimiter=delimiter, end=end))
    assert reader.names == tuple(NAMES)
    assert values(reader) == rows
    assert reader.found == ((f"delimiter {delimiter!r}",) if delimiter == "|" else ())
    assert [reader.place(i) for i in (0, 29)] == ["line 2", "line 31"]


def test_delimiters_in_quotation_marks_and_in_text(read):
    rows = [["a", '"x; y"', "1,2"], ["b, c, d", '"z"', "1,3"]] * 5
    assert values(read(lines(rows=rows)))[:2] == [["a", "x; y", "1,2"], ["b, c, d", "z", "1,3"]]


@pytest.mark.parametrize(("first", "delimiter"), [("sep=;", ";"), ('"sep=\t"', "\t")])
def test_first_line_of_excel_is_none_of_the_table(read, first, delimiter):
    reader = read(lines(first, delimiter=delimiter))
    assert values(reader) == ROWS
    assert reader.place(0) == "line 3"


@pytest.mark.parametrize("given", ["^", "\\t", "tab"])
def test_a_given_delimiter_wins(read, given):
    mark = "\t" if given != "^" else "^"
    reader = read(lines(names=["a;a", "b;b", "c;c"], delimiter=mark), delimiter=given)
    assert reader.names == ("a;a", "b;b", "c;c")
    assert reader.found == ()


def test_a_rare_delimiter_is_asked_for(read):
    assert "--read 'delimiter=^'" in refused(read, lines(names=["a", "b", "c"], delimiter="^"))
    assert read(lines(delimiter="^"), delimiter="^").names == tuple(NAMES)


@pytest.mark.parametrize("delimiter", ["", "ab", "\0", '"', "\n", "ä"])
def test_delimiters_that_cannot_be(read, delimiter):
    with pytest.raises(UsageError, match="needs one character"):
        read(lines(), delimiter=delimiter)


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        ("cp1252", "encoding cp1252"),
        ("latin-1", "encoding cp1252"),
        ("utf-8-sig", None),
        ("utf-16", "encoding utf-16"),
        ("utf-16-le", "encoding utf-16-le"),
        ("utf-16-be", "encoding utf-16-be"),
        ("utf-32", "encoding utf-32"),
    ],
)
def test_encodings_are_found(read, encoding, says):
    rows = [[f"Müller {i}", "5 µg/m²", "Größe"] for i in range(9)]
    reader = read(lines(names=["Name", "Dosis", "Maß"], rows=rows), written=encoding)
    assert reader.names == ("Name", "Dosis", "Maß")
    assert values(reader) == rows
    assert reader.found == ((says,) if says else ())


@pytest.mark.parametrize(
    ("encoding", "word"),
    [
        ("cp850", "Größe"),
        ("cp850", "José"),
        ("mac_roman", "Größe"),
        ("cp1250", "Łódź"),
        ("cp1251", "Пациент"),
    ],
)
def test_encodings_in_doubt_are_asked_for(read, encoding, word):
    content = lines(names=[word, "TSH", "Alter"])
    assert f"{word!r} in {encoding}" in refused(read, content, written=encoding)


def test_a_given_encoding_wins(read):
    content = lines(names=["Größe", "b", "c"])
    for encoding in ("cp850", "mac_roman", "UTF-16LE"):
        reader = read(content, written=encoding, encoding=encoding)
        assert reader.names == ("Größe", "b", "c")
        assert reader.found == ()


def test_megabytes_of_another_encoding(read, tmp_path):
    rows = [["Äpfel €", str(i), "x" * 90] for i in range(20_000)]  # blocks end within characters
    for encoding in ("utf-16", "cp1252"):
        reader = read(lines(rows=rows), written=encoding)
        assert values(reader) == rows
        assert reader.place(19_999) == "line 20001"


def test_another_encoding_far_below(read):
    for line in ("Müller;1;2\n", "Müller;1\n"):  # the second has too few fields, too
        content = lines(rows=ROWS * 400).encode() + line.encode("cp1252")
        assert "line 12002 is not UTF-8" in refused(read, content)
        assert "--read encoding=cp1252" in refused(read, content)


def test_encodings_that_cannot_be(read, tmp_path):
    (tmp_path / "a.csv").write_text(lines())
    for name in ("nope", "hex", "rot13"):
        with pytest.raises(UsageError, match=f"there is no encoding '{name}'"):
            as_reader(tmp_path / "a.csv", layout=FileLayout(encoding=name))
    (tmp_path / "a.csv").write_bytes(lines(names=["ä", "b", "c"]).encode("cp1252"))
    with pytest.raises(DataError, match="its bytes are not utf-8: give a different encoding"):
        as_reader(tmp_path / "a.csv", layout=FileLayout(encoding="utf-8"))


@pytest.mark.parametrize(
    "above",
    [
        ["Laborbericht"],
        ["Laborbericht", "Exportiert am 01.02.2024, 12:00", ""],
        ["Kontonummer;DE123", "Zeitraum;01.01.2024 - 31.01.2024", ""],
        ["Bericht 2024;;", ";;"],
        ["Patient;;"],
        ["# by a system", "# of another"],
        ["-" * 40],
    ],
    ids=lambda above: above[0][:9],
)
def test_lines_above_the_header(read, above):
    reader = read(lines(*above))
    assert reader.names == tuple(NAMES)
    assert values(reader) == ROWS
    n = len(above)
    assert reader.found == (f"{n} line{'s' * (n > 1)} above the header",)
    assert reader.place(3) == f"line {n + 5}"


def test_lines_to_skip_are_taken_at_their_word(read):
    content = lines("a;b;c", "1;2;3")
    assert read(content, skip_lines=2).names == tuple(NAMES)
    assert read(content, skip_lines=0).names == ("a", "b", "c")
    with pytest.raises(DataError, match="holds no lines after line 99"):
        read(content, skip_lines=99)
    with pytest.raises(UsageError, match="-1 lines to skip: needs 0 or more"):
        read(content, skip_lines=-1)


@pytest.mark.parametrize(
    "content",
    [
        lines(names=None),
        lines(names=None, rows=[[f"{i}.5", "2", "3"] for i in range(9)], delimiter=","),
        lines(names=None, rows=[["05/15/2026", "$4.00"], ["06/01/2026", "$5.10"]], delimiter=","),
        "red,small\nblue,large\nred,large\n",
        "x,ERR,y\n" + "x,2,y\n" * 9,
        "u,NA\n" + "v,2\n" * 9,
    ],
)
def test_a_first_line_like_a_row_is_asked_about(read, content):
    says = refused(read, content)
    assert "line 1 looks like a row" in says
    assert "or that it holds names (--read skip_lines=0)" in says
    assert says.endswith("\nAdd: --read no_header=true")
    rows = list(csv.reader(io.StringIO(content), delimiter=";" if ";" in content else ","))
    without = read(content, header=False)
    assert without.names == tuple(f"column {j + 1}" for j in range(len(rows[0])))
    assert len(values(without)) == len(rows)
    for layout in ({"skip_lines": 0}, {"header": True}):
        assert read(content, **layout).names == tuple(rows[0])
        assert len(values(read(content, **layout))) == len(rows) - 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("land,2019,2020\n" + "x,5,6\n" * 9, 1),
        ("Source: Bank\n\nland,1990,1991\n" + "x,5.5,6\ny,4.5,7\n" * 9, 3),
    ],
)
def test_no_option_makes_a_row_of_years_that_may_be_names(read, content, line):
    says = refused(read, content)
    assert f"line {line} looks like a row" in says
    assert "Add:" not in says
    assert "land | 19" in says or "land | 20" in says


@pytest.mark.parametrize(
    "content", ["Wert\n" + "5,8\n4,5\n" * 9, "a,b\n" + "8,4,8,8\n3,1,3,4\n" * 9]
)
def test_no_option_cuts_numbers_at_their_decimal_commas(read, content):
    says = refused(read, content)
    assert "if ',' does not separate fields" in says
    assert "Add:" not in says


def test_a_file_in_two_encodings_is_refused(read):
    """As cp1252, é would become two letters in the lines that are UTF-8."""
    content = b"name,x\n" + "Caf\u00e9,1\n".encode() * 9 + "Caf\u00e9,2\n".encode("cp1252")
    assert "line 11 is not UTF-8, unlike other lines" in refused(read, content)
    assert read(content, encoding="cp1252").names == ("name", "x")


def test_a_table_above_another_is_asked_about(read):
    above, below = "id,a\n" + "1,6.5\n2,3.5\n" * 4, "name,b,c\n" + "x,1,2.5\ny,2,4.5\n" * 9
    assert "line 1 has 2 fields, but most have 3" in refused(read, f"{above}\n{below}")
    assert len(values(read(f"{above}\n{below}", skip_lines=9))) == 18
    assert read(f"Station,7\nHeight,52.5\nYear,2026\nDepth,3\n{below}").names == ("name", "b", "c")


def test_a_name_above_numbers_is_not_made_a_value_by_one_that_rows_repeat(read):
    says = refused(read, "age;yes\n" + "42;yes\n43;no\n" * 20)
    assert "line 1 looks like a row" in says
    assert says.endswith("\n  age | yes\n  42 | yes\n  43 | no")


@pytest.mark.parametrize(
    "content",
    [
        ",price\n0,1.5\n1,2.5\n2,1.5\n",
        '"","x"\n' + "".join(f'"{i}",{i % 3}.7\n' for i in range(30)),
        ",capital\nFrance,Paris\nSpain,Madrid\n",
        "Report of 2026\n\n,price\nATS,1.5\nBEF,2.5\n",
        ",0,1,2\na,7,8,9\nb,5,5,5\n",
        ",n,married\n" + "1,5,married\n2,6,divorced\n" * 9,
        ",y,ap,week\n" + "1,y,p,0\n2,n,a,2\n" * 9,
    ],
)
def test_the_names_above_an_index(read, content):
    """pandas and R write an empty first name: a line above a filled column is the names."""
    reader = read(content)
    head = content.rpartition("\n\n")[2].splitlines()
    assert reader.names == ("column 1", *head[0].replace('"', "").split(",")[1:])
    assert len(values(reader)) == len(head) - 1
    assert "column 1 has no name: called 'column 1'" in reader.found


def test_a_line_above_the_names_is_not_the_names(read):
    assert read(",Report\nname,value\na,1\nb,2\n").names == ("name", "value")
    assert "line 2 looks like a row" in refused(read, ",a\n1,b\n,c\n2,d\n1,e\n")  # no index


def test_numbers_above_an_index_are_asked_about(read):
    says = refused(read, ",1940,1950\n" + "food,22,44\nfuel,3,15\n" * 9)
    assert "line 1 looks like a row" in says
    assert says.endswith("\nAdd: --read skip_lines=0")


def test_a_name_that_is_also_a_value(read):
    """Words above several columns of numbers are names, even if one of them comes again."""
    content = "id,age,hours,kids,married\n" + "1,39,2940,2,married\n2,35,2040,2,single\n" * 9
    assert read(content).names == ("id", "age", "hours", "kids", "married")


def test_no_header_below_other_lines(read):
    content = lines("Bericht", names=None)
    assert refused(read, content).endswith("\nAdd: --read no_header=true --read skip_lines=1")
    assert values(read(content, header=False, skip_lines=1)) == ROWS
    assert "add --read skip_lines=1" in refused(read, content, header=False)


def test_names_that_are_numbers_of_columns(read):
    assert read("0,1,2\n1.5,2,3\n2,3,4\n").names == ("0", "1", "2")


@pytest.mark.parametrize("names", [NAMES, [*NAMES, ""]], ids=["rows", "both"])
def test_a_delimiter_at_each_end(read, names):
    content = lines(names=names, rows=[[*row, ""] for row in ROWS])
    reader = read(content)
    assert reader.names == tuple(NAMES)
    assert values(reader) == ROWS
    assert reader.found[-1] == "column 4 without name and values left out"
    assert values(reader.select(["TSH"])) == [[row[1]] for row in ROWS]
    # Not silently: a value there, far below.
    says = refused(
        read, lines(names=names, rows=[[*row, ""] for row in ROWS * 400] + [list("abcd")])
    )
    assert "line 12002 has 'd' in column 4, which has no name" in says


def test_names_that_are_missing_or_twice(read):
    reader = read(lines(names=["", "TSH", "Alter"]))
    assert reader.names == ("column 1", "TSH", "Alter")
    assert reader.found[-1] == "column 1 has no name: called 'column 1'"
    says = refused(read, lines(names=["a", "", "c"]))
    assert "line 1 has no name for column 2" in says
    assert "--read no_header=true and --read skip_lines=1" in says
    content = lines(names=["a", "b", "a"])
    says = refused(read, content)
    assert "column 'a' is listed twice in line 1" in says
    assert "--read no_header=true and --read skip_lines=1" in says
    assert values(read(content, header=False, skip_lines=1)) == ROWS


def test_names_of_all_but_the_first_column(read):
    says = refused(read, lines(names=["TSH", "Alter"]))  # as R writes
    assert "--read skip_lines=0 if it is this one, or --read skip_lines=1 if it is line 2" in says


def test_fewer_names_than_fields(read):
    content = lines(
        names=["Pat", "TSH"], rows=[[p, *t.split(",")] for p, t, _ in ROWS], delimiter=","
    )
    assert "line 1 has 2 names, but most lines below it have 3 fields" in refused(
        read, content, skip_lines=0
    )
    assert "which line holds the names" in refused(read, content)


def test_columns_separated_by_blanks(read):
    content = lines(rows=[[a, b.replace(",", "."), c] for a, b, c in ROWS], delimiter=" ")
    assert refused(read, content).endswith("\nAdd: --read 'delimiter= '")
    assert read(content, delimiter=" ").names == tuple(NAMES)
    assert "a different delimiter (--read delimiter=SIGN)" in refused(read, "TSH\n" + "1,5\n" * 9)
    assert values(read("TSH\n" + "1,5\n" * 9, delimiter=";")) == [["1,5"]] * 9


@pytest.mark.parametrize(
    ("below", "says"),
    [
        ("P99;1", "line 32 has 2 fields, but needs 3.*if the file was truncated, export it again"),
        ("P99;1;2;a", "line 32 has 4 fields, but needs 3.*quotation marks around texts"),
        ("Total 30 rows", "(?s)line 32 has 1 field, but needs 3.*skip_footer=1"),
        ("Summe;;123", "(?s)line 32, the last, looks like totals.*'Summe;;123'.*skip_footer=1"),
        (";;\nGesamt:;1234,5;", "line 33, the last, looks like totals"),
        ("P99;1\0;2", "line 32 holds a NUL byte"),
    ],
)
def test_lines_that_are_no_rows(read, below, says):
    content = lines(below=[below]).encode()
    for layout in ({}, {"name": "a.csv.gz"}):
        assert re.search(
            says, refused(read, gzip.compress(content) if layout else content, **layout)
        )


def test_names_that_come_again(read):
    again = lines(*lines(rows=ROWS * 300).splitlines())
    assert values(read(again)) == ROWS * 301
    assert read(again).found == ("line 9002 repeats the names, and is left out",)
    assert read(again).place(9000) == "line 9003"
    assert len(values(read(lines(below=["Pat;1;2"]), skip_lines=0))) == 31


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('"a,b"\n' + '"1,2"\n' * 5, "whole lines are in quotation marks, each with ',' 1 times"),
        ('"a,b"\n"1,2"\n', "whole lines are in quotation marks, each with ',' 1 times"),
        ("A1;x1\nA2;x2\nA3;x3\n", "line 1 looks like a row"),
    ],
)
def test_files_that_are_no_tables_of_fields(read, content, says):
    assert re.search(says, refused(read, content))


def test_a_column_of_sentences_is_one_column(read):
    for sentences in (['"one"', '"a, b"'], ['"one, two"', '"a, b, c"'], ['"one"', '"two"']):
        assert [len(row) for row in values(read("\n".join(sentences)))] == [1]
    assert read('"one, two"\n').names == ("one, two",)


def test_the_last_sign_of_old_files_is_no_row(read):
    assert values(read(lines() + "\x1a")) == ROWS


@pytest.mark.parametrize("content", ["a,b\n", "a,b", "a;b\r\n\r\n", "sep=;\na;b\n", "\ufeffa,b\n"])
def test_a_file_of_names_alone_is_refused_in_plain_words(read, content):
    with pytest.raises(
        DataError, match=r"a\.csv has no rows: there is nothing below its column names"
    ):
        HushTable().fit(read(content))


def named(detector, later, name):
    """Return what finds the column ``name`` of a model in later rows, or refuses it."""
    return [
        lambda: detector.score_samples(later),
        lambda: open_rows(later, detector.plan_.schema),
        lambda: data.read(later.source, columns=[name]),
        lambda: as_reader(str(Path(later.source).with_name("*.csv"))),
    ]


@pytest.mark.parametrize(
    ("name", "given", "how"),
    [
        ("unit price", "unit\u00a0price", "blanks or invisible marks"),
        ("unit", "un\u200bit", "blanks or invisible marks"),
        ("Gr\u00f6\u00dfe", "GROSSE", "case, accents or look-alike letters"),
        ("a b", "a  b", "blanks or invisible marks"),
    ],
)
def test_names_that_look_alike_are_told_apart_in_words(read, name, given, how):
    rows = "".join(f"{i % 7}.5,{i % 5}\n" for i in range(40))
    detector = HushTable(n_tables=5, random_state=0).fit(read(f"{name},n\n{rows}"))
    later = read(f"{given},n\n{rows}", name="b.csv")
    says = re.escape(f"{given!a} differs from {name!a} only in {how}: ")
    calls = named(detector, later, name)
    for call in calls:
        written = re.escape(f"write {given!a}") if call is calls[2] else "rename the column"
        with pytest.raises(DataError, match=says + written):
            call()


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        (["\u0179r\u00f3d\u0142o", "z\u0142"], "cp1250"),
        (["P\u0159\u00edli\u0161", "\u017elu\u0165ou\u010dk\u00fd"], "iso-8859-2"),
        (["\u00dcnal", "\u015eahin", "A\u011fr\u0131"], "cp1254"),
        (["\u017dilina"], "cp1250"),
    ],
)
def test_the_example_of_an_encoding_is_one_of_the_readings(read, words, encoding):
    content = "a,b\n" + "".join(f"{word},1\n" for word in words) * 20
    message = refused(read, content, written=encoding)
    readings = re.findall(r"' in ([\w-]+)", message)
    [example] = re.findall(r"--read encoding=([\w-]+)", message)
    assert example in readings


def test_quotation_marks_that_do_not_close(read):
    more = lines(names=None).splitlines()[:3]
    for below, says in [
        (["P77;1;\"2", *more, "P78;1;\"2", *more], "line 32 begins a row that is not valid CSV"),
        (["P77;1;\"2", *more], "line 32 begins a row that is not valid CSV .*may be unclosed"),
        (['"P77;1;2', *more], "line 32 has 1 field.*A quotation mark in it may be unclosed"),
        (['P77;1;"2', *more * 400_000], "in or below line \\d+ is longer than 3 MB"),
    ]:  # fmt: skip
        with pytest.raises(DataError, match=says):
            list(read(lines(below=below)).select(["Pat"]).read())
    reader = read(lines(below=['P77;1;"two\nlines; of text"', "P78;1;2"]))
    assert values(reader)[-2:] == [["P77", "1", "two\nlines; of text"], ["P78", "1", "2"]]
    assert reader.place(31) == "line 34"


def test_places_are_lines_of_the_file(read):
    content = 'Titel\n\na;"b\nb";c\r\n\n1;"x\ny";2\n\n\n3;4;5\r\n6;"";7'
    reader = read(content, skip_lines=2)
    assert reader.names == ("a", "b\nb", "c")
    assert values(reader) == [["1", "x\ny", "2"], ["3", "4", "5"], ["6", None, "7"]]
    assert [reader.place(i) for i in range(3)] == ["lines 6 to 7", "line 10", "line 11"]


@pytest.mark.parametrize("seed", range(40))
def test_rows_and_places_are_those_of_pythons_reader(read, seed):
    rng = random.Random(seed)
    end, mark, width = rng.choice(["\n", "\r\n", "\r"]), rng.choice(",;\t"), rng.randrange(2, 5)
    parts = ["x", '"', "ä", end, " ", "7"] if seed % 2 else ["x", mark, "ä", "7"]
    content, expected, places = io.StringIO(newline=""), [], []
    writer = csv.writer(content, delimiter=mark, lineterminator=end)
    writer.writerow([f"n{j}" for j in range(width)])
    for _ in range(rng.randrange(1, 60)):
        content.write(end * rng.choice([0, 0, 0, 1, 2]))
        first = len(list(io.StringIO(content.getvalue(), newline=""))) + 1
        row = ["".join(rng.choices(parts, k=rng.randrange(5))) for _ in range(width)]
        row[0] = f"r{row[0]}"  # a line of dashes or blanks is no row
        writer.writerow(row)
        last = len(list(io.StringIO(content.getvalue(), newline="")))
        places.append(f"line {first}" if first == last else f"lines {first} to {last}")
        expected.append([value or None for value in row])
    encoding = rng.choice(["utf-8", "cp1252", "utf-16"])
    reader = read(content.getvalue(), written=encoding, encoding=encoding, skip_lines=0)
    assert values(reader) == expected
    assert [reader.place(i) for i in range(len(places))] == places


def test_places_in_a_folder_name_the_file(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(lines("Titel"))
    reader = as_reader(tmp_path)
    assert reader.place(29) == f"line 32 of {tmp_path / 'a.csv'}"
    assert reader.place(30) == f"line 3 of {tmp_path / 'b.csv'}"
    assert reader.found == ("1 line above the header",)
    assert as_reader(tmp_path / "a.csv").select(["TSH"]).place(0) == "line 3"


def test_places_of_rows_in_memory():
    assert as_reader(pa.table({"a": [1.0]})).place(0) == "row 0"


@pytest.mark.parametrize("change", ["grows", "is cut"])
def test_a_file_that_changes_while_it_is_read(read, tmp_path, change):
    reader = read(lines(rows=ROWS * 10_000))
    passing = reader.read()
    next(passing)
    size = (tmp_path / "a.csv").stat().st_size
    with open(tmp_path / "a.csv", "r+") as file:
        file.truncate(size - 3 if change == "is cut" else size + 3)
    with pytest.raises(
        DataError, match="changed while it was being read: try again when it is complete"
    ):
        list(passing)
    with pytest.raises(DataError, match="changed while it was being read"):
        list(reader.read())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a" * 10**6, "a field is longer than 131,072 characters"),
        (",".join(map(str, range(10**5))) + "\n" + "1," * (10**5 - 1) + "1\n", "100,000 columns"),
    ],
)
def test_files_beyond_all_bounds_are_refused_in_words(read, content, says):
    assert says in refused(read, content)


def test_one_field_of_a_million_characters_is_a_text(read):
    text = "x" * 10**6
    assert values(read(f"a,b\n1,2\n3,{text}\n5,6\n")) == [["1", "2"], ["3", text], ["5", "6"]]


@pytest.mark.parametrize("content", ["a,b\n,\n,\n", "a,b\nNA,\n,NA\n"])
def test_a_file_of_missing_values_alone(read, content):
    assert values(read(content, name="a.csv")) in ([], [[None, None]] * 2)
    with pytest.raises(DataError, match=r"all its values are missing|no rows"):
        HushTable().fit(read(content))


def test_files_of_a_pattern_may_have_different_dialects(read, tmp_path):
    read("a;b\n" + "1,5;x\n2,5;y\n" * 9, name="2.csv")
    read("a,b\n" + "1.5,x\n2.5,y\n" * 9, name="1.csv", encoding="utf-8")
    both = as_reader(str(tmp_path / "*.csv"))
    assert values(both) == [["1.5", "x"], ["2.5", "y"]] * 9 + [["1,5", "x"], ["2,5", "y"]] * 9
    with pytest.raises(DataError, match=r"a: .*(?:'1,5'|decimal)"):  # a number has one sign
        HushTable().fit(both)


def test_files_without_rows(read):
    assert values(read("a,b,c\n")) == []
    assert values(read("a,b,c\n\n\n")) == []
    assert "holds no lines" in refused(read, "\n \n\n")
    assert "holds a NUL byte" in refused(read, b"\x00\x01\x02\x03")


@pytest.mark.slow
def test_names_beyond_the_first_lines_read(read):
    names = [f"a rather long name of column {j}" for j in range(9_000)]
    reader = read(lines(names=names, rows=[["1"] * 9_000] * 3))
    assert reader.names == tuple(names)
    assert len(values(reader)) == 3


def test_remarks_among_rows_are_refused(read):
    says = refused(read, "a,b\n1,2\n# calibrated\n3,4\n#5,6\n7,8\n")
    assert "line 3 has 1 field, but needs 2" in says


@pytest.mark.parametrize(
    ("line", "words"),
    [("| --- | ---: |", "line 2 (dashes) left out"), ("| [s] | (m) |", "line 2 (units")],
)
def test_dashes_and_units_below_the_names_are_no_row(line, words, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text(f"| a | b |\n{line}\n| 1 | 2 |\n| 3 | 4 |\n", encoding="utf-8")
    rows = as_reader(path)
    assert any(one.startswith(words) for one in rows.found)
    assert sum(len(batch) for batch in rows.read()) == 2
    assert rows.place(0) == "line 3"


def test_numbers_in_brackets_below_the_names_are_a_row(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n(1),(2)\n3,4\n", encoding="utf-8")
    assert sum(len(batch) for batch in as_reader(path).read()) == 2


def test_what_stands_below_the_names_decides_nothing_where_nobody_is_asked(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n[s],[m]\n1,2\n", encoding="utf-8")
    rows = as_reader(path, layout=FileLayout(unasked=Unasked(["a", "b"])))
    assert sum(len(batch) for batch in rows.read()) == 2


def test_a_dict_may_lack_a_key():
    fit = HushTable(n_tables=5, random_state=0).fit([{"a": i % 7, "b": i % 3} for i in range(60)])
    assert fit.score_samples([{"a": 1}]) == fit.score_samples([{"a": 1, "b": None}])


def test_rows_of_some_columns_are_no_notes_below_the_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,a,b,c\n" + "".join(f"p{i},{i},{i},{i}\n" for i in range(40)))
    assert sum(map(len, as_reader(path).select(["b"]).read())) == 40
