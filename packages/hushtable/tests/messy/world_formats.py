"""JSON, archives, databases, pages and spreadsheets."""

import gzip
import io
import json
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pandas as pd
from world_programs import gaps, numeric
from world_tables import (
    MAY_REFUSE,
    Written,
    base,
    chance,
    comma,
    european,
    export,
    grouped,
    spelled,
    text_of,
    undone,
)

# JSON.


def records(table: pd.DataFrame) -> list[dict]:
    return json.loads(table.astype({"day": str}).to_json(orient="records", force_ascii=False))


@export("An interface on the web: records of two levels under a key, pretty-printed", "json")
def json_in_key(path: Path) -> Written:
    table = base(111, "Łódź Gdynia Kraków Żary")
    rows = [{"day": r["day"], "site": {"name": r["site"]},
             "stats": {"money": {"amount": r["amount"], "count": r["count"]},
                       "share": r["share"]}, "level": r["level"]}
            for r in records(table)]  # fmt: skip
    whole = {"status": "ok", "page": {"number": 1, "of": 1}, "data": rows}
    path.write_text(json.dumps(whole, indent=2, ensure_ascii=False), "utf-8")

    def back() -> pd.DataFrame:
        return pd.json_normalize(json.loads(path.read_text("utf-8"))["data"])

    dotted = {"site": "site.name", "amount": "stats.money.amount", "count": "stats.money.count",
              "share": "stats.share"}  # fmt: skip
    return Written(table.rename(columns=dotted), back)


@export("QGIS: GeoJSON with a point and properties in each feature", "geojson")
def geojson_points(path: Path) -> Written:
    table = base(112)
    rng = np.random.default_rng(112)
    places = pd.DataFrame({"lon": rng.uniform(5, 15, 400).round(5),
                           "lat": rng.uniform(45, 55, 400).round(5)})  # fmt: skip
    features = [{"type": "Feature", "properties": properties,
                 "geometry": {"type": "Point", "coordinates": list(place)}}
                for properties, place in zip(records(table), places.to_numpy().tolist(),
                                             strict=True)]  # fmt: skip
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    whole = {"type": "FeatureCollection", "name": "sites", "crs": crs, "features": features}
    path.write_text(json.dumps(whole))

    def back() -> pd.DataFrame:
        read = json.loads(path.read_text())["features"]
        points = pd.DataFrame([one["geometry"]["coordinates"] for one in read])
        rows = pd.DataFrame([one["properties"] for one in read])
        return rows.assign(lon=points[0], lat=points[1])

    first = pd.concat([places, table], axis=1)
    return Written(pd.concat([table, places], axis=1), back, (first,))


@export("A German interface: lines of JSON in gzip, numbers as texts with commas", "jsonl.gz")
def json_commas(path: Path) -> Written:
    table = base(113)
    forms = {"amount": lambda value: grouped(value, ".", ","),
             "share": comma, "level": comma}  # fmt: skip
    rows = spelled(table, forms).to_dict("records")
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))

    def back() -> pd.DataFrame:
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        undo = dict.fromkeys(["amount", "share", "level"], european)
        return undone(pd.DataFrame(map(json.loads, lines)), undo)

    return Written(table, back)


# Archives.


def csv_back(data: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(data))


@export("A portal for open data: a zip with the CSV, a README.txt and a folder of a Mac", "zip")
def zip_readme(path: Path) -> Written:
    table = base(114)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", "Licence: CC BY 4.0\nSee data/values.csv, monthly.\n")
        archive.writestr("data/values.csv", text_of(spelled(table, {})))
        archive.writestr("__MACOSX/data/._values.csv", b"\0\5\x16\7\0\2\0\0Mac OS X")
    return Written(table, lambda: csv_back(zipfile.ZipFile(path).read("data/values.csv")))


@export("A statistics office: a zip with two tables, of which the owner wants one", "zip",
        knows={"--member": "values.csv"})  # fmt: skip
def zip_two(path: Path) -> Written:
    table = base(115)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("codes.csv", "code,meaning\n" + "".join(f"{k},m{k}\n" for k in range(30)))
        archive.writestr("values.csv", text_of(spelled(table, {})))
    return Written(table, lambda: csv_back(zipfile.ZipFile(path).read("values.csv")))


@export("A backup job: gzip that holds a tar with one file, under the name .gz", "gz")
def gz_tar(path: Path) -> Written:
    table = base(116)
    data = text_of(spelled(table, {})).encode()
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("var/export/values.csv")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))

    def back() -> pd.DataFrame:
        with tarfile.open(path) as archive:
            return csv_back(archive.extractfile("var/export/values.csv").read())

    return Written(table, back)


@export("7-Zip on Windows: one CSV in a .7z", "7z", must=MAY_REFUSE, needs=("libarchive",))
def seven_zip(path: Path) -> Written:
    import libarchive

    table = base(117)
    data = text_of(spelled(table, {})).encode()
    with libarchive.file_writer(str(path), "7zip") as archive:
        archive.add_file_from_memory("values.csv", len(data), data)

    def back() -> pd.DataFrame:
        with libarchive.file_reader(str(path)) as archive:
            return csv_back(b"".join(b"".join(entry.get_blocks()) for entry in archive))

    return Written(table, back)


# Databases.


@export("An app on a telephone: SQLite with two tables and a view", "db",
        knows={"--member": "visits"})  # fmt: skip
def sqlite_view(path: Path) -> Written:
    table = gaps(base(118), 118, "level").astype({"day": str})
    table = numeric(table, "level")
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    pd.DataFrame({"id": range(1, 9), "note": list("abcdefgh")}).to_sql(
        "notes", connection, index=False
    )
    table.to_sql("visits", connection, index=False)
    connection.execute("create view large as select * from visits where amount > 1000")
    connection.commit()
    connection.close()

    def back() -> pd.DataFrame:
        connection = sqlite3.connect(path)
        read = pd.read_sql("select * from visits", connection)
        connection.close()
        return read

    return Written(table, back)


@export("A notebook: a DuckDB file with one table", "duckdb", needs=("duckdb",))
def duckdb_file(path: Path) -> Written:
    import duckdb

    table = base(119)
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table export (day date, site varchar, amount decimal(12, 2), "
                           "count integer, share double, level double)")  # fmt: skip
        connection.executemany("insert into export values (?, ?, ?, ?, ?, ?)",
                               table.astype(object).to_numpy().tolist())  # fmt: skip

    def back() -> pd.DataFrame:
        with duckdb.connect(str(path), read_only=True) as connection:
            rows = connection.execute("select * from export").fetchall()
        return pd.DataFrame(rows, columns=table.columns)

    return Written(table, back)


# Pages and documents.


@export("An enterprise bus: XML with a namespace, attributes and elements in each record", "xml")
def xml_namespace(path: Path) -> Written:
    table = base(121)
    rows = [
        f"  <m:row day={quoteattr(str(row.day))} site={quoteattr(row.site)}>"
        f"<m:amount>{row.amount}</m:amount><m:count>{row[3]}</m:count>"
        f"<m:share>{row.share}</m:share><m:level>{row.level}</m:level></m:row>\n"
        for row in table.itertuples(index=False)
    ]
    path.write_text('<?xml version="1.0" encoding="UTF-8"?>\n'
                    '<m:rows xmlns:m="urn:example:measures:1" created="2026-05-15">\n'
                    + "".join(rows) + "</m:rows>\n")  # fmt: skip

    def back() -> pd.DataFrame:
        spaces = {"m": "urn:example:measures:1"}
        return pd.read_xml(path, xpath=".//m:row", namespaces=spaces, parser="etree")

    return Written(table, back)


def ods_cell(value) -> str:
    """Return the element of one cell."""
    if isinstance(value, str):
        kind = "office:value-type='string'"
        return f"<table:table-cell {kind}><text:p>{escape(value)}</text:p></table:table-cell>"
    if hasattr(value, "isoformat"):
        kind = f"office:value-type='date' office:date-value='{value.isoformat()}'"
        return f"<table:table-cell {kind}><text:p>{value:%d.%m.%y}</text:p></table:table-cell>"
    kind = f"office:value-type='float' office:value='{value}'"
    return f"<table:table-cell {kind}><text:p>{value}</text:p></table:table-cell>"


SPACES = "".join(
    f" xmlns:{name}='urn:oasis:names:tc:opendocument:xmlns:{name}:1.0'"
    for name in ("office", "table", "text")
)


@export("LibreOffice: runs of equal cells and rows stored once, with a number of repeats", "ods")
def ods_repeated(path: Path) -> Written:
    table = base(122).sort_values(["site", "count"], ignore_index=True)
    planned = table["count"] // 14
    table.insert(2, "planned", planned)
    table.insert(3, "worked", planned.where(~chance(122, 0.2), planned + 1))
    rows = ["<table:table-row>" + "".join(map(ods_cell, table.columns)) + "</table:table-row>"]
    for row in table.itertuples(index=False):
        cells, k = [], 0
        while k < len(row):
            n = next((m for m in range(1, len(row) - k) if row[k + m] != row[k]), len(row) - k)
            cell = ods_cell(row[k])
            if n > 1:
                cell = cell.replace(" ", f" table:number-columns-repeated='{n}' ", 1)
            cells.append(cell)
            k += n
        empty = "<table:table-cell table:number-columns-repeated='1016'/>"
        rows.append(f"<table:table-row>{''.join(cells)}{empty}</table:table-row>")
    empty = "<table:table-cell table:number-columns-repeated='1024'/>"
    rows.append(f"<table:table-row table:number-rows-repeated='1048175'>{empty}</table:table-row>")
    content = (f"<?xml version='1.0' encoding='UTF-8'?><office:document-content{SPACES} "
               "office:version='1.2'><office:body><office:spreadsheet><table:table "
               f"table:name='Data'>{''.join(rows)}</table:table></office:spreadsheet>"
               "</office:body></office:document-content>")  # fmt: skip
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = ("<manifest:manifest xmlns:manifest='urn:oasis:names:tc:opendocument:xmlns:"
                "manifest:1.0'><manifest:file-entry manifest:full-path='/' "
                f"manifest:media-type='{kind}'/><manifest:file-entry manifest:full-path="
                "'content.xml' manifest:media-type='text/xml'/></manifest:manifest>")  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", manifest)

    def back() -> pd.DataFrame:
        read = pd.read_excel(path, engine="calamine")
        return read.assign(day=[str(day)[:10] for day in read["day"]])

    return Written(table, back)
