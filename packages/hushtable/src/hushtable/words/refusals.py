"""Sentences on files that are not read, or not before a person decides: from a kind to its words.

Options are in the form in which a person types them; a page shows buttons in their place.
"""

from typing import Any

from hushtable.errors import DataError
from hushtable.language import N_, _, numeral

_SENTENCES = {
    # Where something is.
    "line": N_("line"),
    "row": N_("row"),
    "object": N_("object"),
    "sheet": N_("%(path)s: sheet %(name)r"),
    # Files, archives and encodings.
    "no_bytes": N_("%(source)s: the file is empty"),
    "is": N_("%(source)s: is %(what)s"),
    "unknown": N_("%(source)s: holds nothing that can be read: needs text with columns, or a file "
        "whose name ends in %(endings)s or .zip%(why)s"),
    "archive_within": N_("%(source)s: an archive within another: unpack it, and give the table in "
        "it"),
    "compressed": N_("%(source)s: a %(format)s file compressed with %(codec)s: unpack it, and give "
        "the unpacked file"),
    "no_files": N_("%(source)s: the archive contains no files: pack it again, with a table in it"),
    "no_member": N_("%(source)s: does not contain %(wanted)r, but %(files)s: correct --read "
        "member=..."),
    "several_files": N_("%(source)s: contains several files, %(files)s: choose one with --read "
        "member=NAME"),
    "encrypted": N_("%(source)s: %(member)s is encrypted: unpack it with its password first"),
    "too_large": N_("%(source)s: it would unpack to more than %(size)s GB, over %(times)s times "
        "the size of the archive: if this is intended, unpack it yourself, and give the unpacked "
        "file"),
    "not_unpacked": N_("%(source)s: cannot be unpacked: %(error)s"),
    "damaged": N_("%(source)s: cannot be unpacked (%(error)s): it may be damaged, truncated, or "
        "packed with an unsupported method: get it again, or unpack it yourself"),
    "changed": N_("%(source)s: changed while it was being read: try again when it is complete"),
    "no_encoding": N_("%(source)s: neither UTF-8 nor text in a common encoding: give its encoding "
        "with --read encoding=NAME, or export it as UTF-8"),
    "encodings": N_("%(source)s: not UTF-8, and its encoding is ambiguous: which reading is right? "
        "%(readings)s. Add the encoding of the right one, such as --read encoding=%(first)s"),
    "other_encoding": N_("%(source)s: its bytes are not %(encoding)s: give a different encoding, "
        "such as --read encoding=cp1252"),
    "other_encoding_below": N_("%(source)s: after line %(line)s, there are bytes that are not "
        "%(encoding)s: give a different encoding, such as --read encoding=%(other)s"),
    "not_utf8": N_("%(source)s: line %(line)s is not UTF-8, unlike other lines: correct it; or, if "
        "the whole file has another encoding, give it, such as --read encoding=cp1252"),
    "nul": N_("%(source)s: line %(line)s holds a NUL byte, which does not occur in text: the file "
        "is damaged, or in a different encoding (--read encoding=utf-16): export it again"),
    "long_lines": N_("%(source)s: more than %(n)s MB in a line, in lines without values, or in "
        "lines to leave out at the end: delete these, or lower --read skip_footer=..."),
    "no_table": N_("%(source)s: the database has no table or view %(wanted)r: it holds %(tables)s"),
    "no_tables": N_("%(source)s: the database holds no tables: check the path"),
    "several_tables": N_("%(source)s: the database holds several tables, %(tables)s: choose one "
        "with --read member=NAME"),
    # Delimiters and lines.
    "two_delimiters": N_("%(source)s: the delimiter may be '%(one)s' or '%(other)s': add --read "
        "'delimiter=%(one)s' or --read 'delimiter=%(other)s'"),
    "rare_delimiter": N_("%(source)s: each line contains '%(one)s' equally often: if it is the "
        "delimiter, add --read 'delimiter=%(one)s'; if not, give the delimiter"),
    "quoted_lines": N_("%(source)s: whole lines are in quotation marks, each with %(one)r %(n)s "
        "times: export without quotation marks, or add --read 'delimiter=;' if each line is a "
        "single column"),
    "fixed_width": N_("%(source)s: has no delimiter, but columns of fixed width, which are not "
        "read: export with a delimiter, or convert it with the widths of the columns, for example "
        "in Excel (Text to Columns) or with pandas.read_fwf(widths=[...])"),
    "blanks": N_("%(source)s: blanks seem to be the delimiter: export with a different delimiter, "
        "or add --read 'delimiter= ' if it is always one blank, or --read 'delimiter=,' if each "
        "line is one field"),
    "other_format": N_("%(source)s: begins like HTML, XML or JSON, not like CSV: export it as CSV, "
        "or rename the file to the ending of its format"),
    "no_lines": N_("%(source)s: the file holds no lines"),
    "no_lines_left": N_("%(source)s: the file holds no lines after line %(line)s and above the "
        "last %(n)s: lower --read skip_lines=... or --read skip_footer=..."),
    "no_fields": N_("%(source)s: no line could be split into fields by %(delimiter)r, or a field "
        "is longer than 131,072 characters: export it as text with one row per line"),
    "odd_line": N_("%(source)s: line %(line)s has %(fields)s, but needs %(n_names)s (delimiter "
        "%(delimiter)r): it begins %(text)r. %(way)s"),
    "field": N_("1 field"),
    "fields": N_("%(n)s fields"),
    "unclosed": N_("A quotation mark in it may be unclosed: correct the line"),
    "more_fields": N_("Export with quotation marks around texts that hold %(delimiter)r, or with "
        "another delimiter%(above)s"),
    "fewer_fields": N_("Correct or delete it; if the file was truncated, export it again%(above)s"),
    "begins_below": N_("; if the table begins below it, add --read skip_lines=%(line)s"),
    "long_field": N_("%(source)s: a field in or below %(place)s is longer than %(n)s MB, so a "
        "quotation mark may be unclosed: correct the line, or export again"),
    "not_csv": N_("%(source)s: line %(line)s begins a row that is not valid CSV (%(error)s), so a "
        "quotation mark may be unclosed: close or delete the mark, or export again"),
    # Names, and rows that are none.
    "too_wide": N_("%(source)s: has %(n)s columns: needs %(n_most)s or fewer: export fewer, or one "
        "row for each of them"),
    "names_of_fields": N_("%(source)s: line %(number)s has %(n)s names, but most lines below it "
        "have %(n_fields)s fields (delimiter %(delimiter)r): write a name for each column, or "
        "%(by_number)s; if the delimiter also occurs within numbers or texts, export with a "
        "different delimiter, or with quotation marks"),
    "by_number": N_("add --read no_header=true and --read skip_lines=%(end)s to call them column "
        "1, column 2, ..."),
    "two_headers": N_("%(source)s: %(word)s %(number)s has %(n)s fields, but most have "
        "%(n_fields)s: which %(word)s holds the names? Add --read skip_lines=%(skipped)s if it is "
        "this one, or --read skip_lines=%(other_skipped)s if it is %(word)s %(other)s"),
    "like_row": N_("%(source)s: %(word)s %(number)s looks like a row, not like column names: "
        "confirm that it is a row (--read no_header=true%(below)s), or that it holds names "
        "(--read skip_lines=%(skipped)s)%(otherwise)s"),
    "or_delimiter": N_(", or give a different delimiter (--read delimiter=SIGN) if %(delimiter)r "
        "does not separate fields"),
    "no_name": N_("%(source)s: %(word)s %(number)s has no name for column %(column)s: write one "
        "there, or %(by_number)s; if the names are in the next %(word)s, add --read "
        "skip_lines=%(end)s"),
    "no_names": N_("%(source)s: %(word)s %(number)s has no column names: needs at least 1"),
    "twice": N_("%(source)s: column %(name)r is listed twice in %(word)s %(number)s: rename one of "
        "the two, or %(by_number)s"),
    "listed_twice": N_("%(source)s: column %(name)r is listed twice: rename one of the two"),
    "same_names": N_("%(source)s: columns %(one)s and %(other)s have the same name, %(name)r: they "
        "differ only in surrounding blanks, in invisible marks, or in how accents are composed: "
        "rename one of the two"),
    "nameless_value": N_("%(source)s: %(place)s has %(text)r in column %(column)s, which has no "
        "name and was empty so far: correct the line, or give the column a name"),
    "no_rows": N_("%(source)s has no rows: needs at least 1 row (0 samples)"),
    "no_rows_below": N_("%(source)s has no rows: there is nothing below its column names. It needs "
        "at least 1 row (0 samples)"),
    "none_left": N_("%(source)s: no column is left: leave fewer out"),
    "no_column": N_("%(source)s has no column %(lacking)s: its columns are %(names)s%(near)s"),
    "below": N_("%(source)s: %(word)ss %(number)s to %(last)s, the last, look like %(what)s below "
        "the table: the first begins %(text)r. Leave them out, or add --read skip_footer=0 if each "
        "is a row"),
    "below_last": N_("%(source)s: %(word)s %(number)s, the last, looks like %(what)s below the "
        "table: it begins %(text)r. Leave it out, or add --read skip_footer=0 if it is a row"),
    "notes": N_("totals or notes"),
    "another_table": N_("another table or notes"),
    "totals": N_("%(source)s: %(word)ss %(numbers)s%(more)s look like totals of rows above: the "
        "first begins %(text)r. Delete them, or export without subtotals; if they are rows, add "
        "--read skip_footer=0"),
    "total": N_("%(source)s: %(word)s %(numbers)s looks like a total of rows above: it begins "
        "%(text)r. Delete it, or export without subtotals; if it is a row, add --read "
        "skip_footer=0"),
    "more": N_(" and %(n)s more"),
    # Workbooks.
    "formula_error": N_("%(source)s holds a formula with an error: correct it, empty the cell, or "
        "save the workbook as .xlsx"),
    "no_workbook": N_("%(source)s: not a workbook: open it and save it as .xlsx, or rename it to "
        ".csv if it is text with a delimiter"),
    "damaged_workbook": N_("%(source)s: not a readable workbook, or a damaged one (%(error)s): "
        "open it and save it as .xlsx"),
    "password": N_("%(source)s: protected by a password: save it without one"),
    "nul_cell": N_("%(source)s: %(cell)s holds a NUL character, which does not occur in text: open "
        "it and save it as .xlsx"),
    "no_sheet": N_("%(source)s has no sheet %(wanted)r: its sheets are %(sheets)s"),
    "several_sheets": N_("%(source)s: several sheets hold values, %(sheets)s: choose one "
        "with --read sheet=NAME"),
    "empty_sheets": N_("%(source)s: no sheet that is not hidden holds values: choose one of "
        "%(sheets)s with --read sheet=NAME"),
    "no_such_row": N_("%(source)s has no row %(number)s: lower --read skip_lines=..."),
    "empty_sheet": N_("%(source)s is empty: needs a row of names, and rows of values below it"),
    "all_skipped": N_("%(source)s has %(n)s rows below the names, and --read "
        "skip_footer=%(footer)s leaves out all of them: lower it"),
    "merged": N_("%(source)s: the cells %(first)s:%(last)s are merged, and hold a single value: "
        "unmerge them, and fill in each cell"),
    "side_by_side": N_("%(source)s: there seem to be several tables side by side, in the columns "
        "%(parts)s. With the sheet, give the columns of the table to read"),
    "not_calculated": N_("%(source)s: %(cell)s holds a formula whose value was never calculated: "
        "open it in Excel or LibreOffice, and save"),
    # JSON.
    "keys_twice": N_("%(source)s: the keys %(one)s and %(other)s would both be the column "
        "%(name)r: rename one of them"),
    "key_twice": N_("%(source)s has the key %(name)r twice: rename one of the two"),
    "list": N_("%(source)s: %(name)r holds a list: needs a number, a text, true or false: flatten "
        "it (for example with pandas.json_normalize), or write one object per row (in pandas, "
        "orient='records')"),
    "mixed": N_("%(source)s: %(name)r holds a value, but an object elsewhere: flatten the objects "
        "(for example with pandas.json_normalize), or leave the column out"),
    "deep": N_("%(source)s: objects and lists are nested too deeply: flatten them"),
    "not_utf8_json": N_("%(source)s is not UTF-8: save the file as UTF-8"),
    "no_json": N_("%(source)s is not one JSON object (%(error)s): needs one complete object per "
        "line; was the file truncated?"),
    "no_object": N_("%(source)s does not hold an object: needs one per row, such as {\"age\": 42, "
        "\"ward\": \"a\"} (in pandas, orient='records')"),
    "no_objects": N_("%(source)s: the list contains no objects: needs one per row"),
    "large_object": N_("%(source)s is larger than %(n)s MB: write smaller ones"),
    "cut": N_("%(source)s: the file ends in the middle: was it truncated? Export it again"),
    "odd_json": N_("%(source)s: this is not JSON (%(error)s): export the file again"),
    "below_list": N_("%(source)s: there is text after the end of the list"),
    "one_object": N_("%(source)s: holds all rows in one object, by column or by their labels: "
        "write one object per row (in pandas, orient='records')"),
    "lists": N_("%(source)s: holds one object, with the lists %(lists)s, not rows: write one list "
        "to a file of its own, for example in Python: %(call)s"),
    "lines_of_object": N_("%(source)s: holds one object over several lines, and no list of "
        "objects: write one object per row, in a line of its own (in pandas, orient='records')"),
}  # fmt: skip

#: Kinds of files that cannot be read as tables, and what to do instead.
REFUSED = {
    ".7z": N_("a 7-Zip archive: unpack it (7z x), or pack the file as .zip"),
    ".rar": N_("a RAR archive: unpack it, or pack the file as .zip"),
    ".xz": N_("compressed with xz, which is not read: unpack it (xz -dk), and give the file"),
    ".gz": N_("compressed twice: unpack it (gzip -dk), and give the file"),
    **dict.fromkeys(
        (".tar", ".tgz", ".tbz2", ".txz"),
        N_("a tar archive, which is not read: unpack it (tar -xf), and give the table in it"),
    ),
    ".xml": N_("an XML file, which is not read: export the table as CSV or JSON, or open it in "
        "Excel, and save it as .xlsx"),
    ".pdf": N_("a PDF, which has no columns: export the table as CSV or as a workbook"),
    ".docx": N_("a document, not a table: save its table as CSV or as a workbook"),
    ".mdb": N_("an Access database: export the table in Access as CSV or as a workbook"),
    ".h5": N_("an HDF5 file: read it in Python (pandas.read_hdf, h5py), and save the table as CSV"),
    ".pkl": N_("a pickle, which could run any code: save the table as CSV or Parquet"),
    ".npy": N_("a NumPy array: load it in Python (numpy.load), and give the array"),
    ".mt940": N_("an MT940 bank statement, not a table: export the transactions as CSV"),
    ".mht": N_("a web page saved as one file (MHTML): open it in Excel, and save it as .xlsx"),
    ".arff": N_("an ARFF file, which is not read: save it as CSV (in Weka: Save as, CSV)"),
    **dict.fromkeys(
        (".html", ".htm"),
        N_("a web page, which is not read: export its table as CSV or as a workbook where the "
            "page comes from"),
    ),
    **dict.fromkeys(
        (".rds", ".rda", ".rdata"),
        N_("an R data file, which is not read: in R, save the data frame as CSV (write.csv) or as "
            "Parquet (arrow::write_parquet)"),
    ),
}  # fmt: skip


def refusal(kind: str, /, **facts: Any) -> str:
    """Return why a file is refused, and what to do, in the language of now.

    Facts named ``n`` or ``n_...`` are counts, and written as such; other numbers are those of
    lines. ``word`` is what the file has: "line" or "row".
    """
    values = {
        name: numeral(value) if name == "n" or name.startswith("n_") else value
        for name, value in facts.items()
    }
    return _(_SENTENCES[kind], **values | {"word": _(facts.get("word", ""))})


def refused(kind: str, /, add: str = "", **facts: object) -> DataError:
    """Return the error of a refused file: the sentence of `refusal`, and what to ``add``."""
    return DataError(refusal(kind, **facts) + (add and f"\nAdd: {add}"))
