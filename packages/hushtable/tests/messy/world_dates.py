"""Dates, times, durations and places as languages and programs write them."""

import re
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from world_tables import (
    MAY_REFUSE,
    Written,
    base,
    chance,
    comma,
    day_by,
    day_in,
    delimited,
    european,
    export,
    grouped,
    moments,
    named,
    plain,
)

MONTHS = {
    "el": "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου "
    "Οκτωβρίου Νοεμβρίου Δεκεμβρίου",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "fi": "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta "
    "syyskuuta lokakuuta marraskuuta joulukuuta",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
    "listopada grudnia",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "tr": "Oca Şub Mar Nis May Haz Tem Ağu Eyl Eki Kas Ara",
}


def in_words(locale: str, pattern: str):
    """Return a function that writes a day with the month's name in a language."""
    months = MONTHS[locale].split()
    return lambda day: pattern.format(day.day, months[day.month - 1], day.year)


@export("A ministry in Spain: 15 de mayo de 2026, and 1.234,50 € behind")
def spanish_months(path: Path) -> Written:
    table = named(
        base(31, "Sevilla Madrid Bilbao Cádiz"), "fecha ciudad importe número cuota saldo"
    )
    forms = {"fecha": in_words("es", "{} de {} de {}"),
             "importe": lambda value: f"{grouped(value, '.', ',')} €",
             "cuota": comma, "saldo": comma}  # fmt: skip
    undo = {"fecha": day_in("es")} | dict.fromkeys(["importe", "cuota", "saldo"], european)
    return delimited(path, table, forms, undo, ";")


@export("A theatre in Italy: venerdì 15 maggio 2026, alle 20.30")
def italian_weekdays(path: Path) -> Written:
    table = named(base(32, "Roma Milano Torino Bari"), "data sede incasso biglietti quota scarto")
    week = ["lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"]
    minutes = np.random.default_rng(32).integers(0, 1440, len(table))
    table["ora"] = minutes * 60
    words = in_words("it", "{} {} {}")
    forms = {"data": lambda day: f"{week[day.weekday()]} {words(day)}",
             "incasso": lambda value: f"€ {grouped(value, '.', ',')}", "quota": comma,
             "scarto": comma, "ora": lambda s: f"{s // 3600}.{s // 60 % 60:02}"}  # fmt: skip

    def clock(text: str) -> int:
        hours, minutes = map(int, text.split("."))
        return hours * 3600 + minutes * 60

    undo = dict.fromkeys(["incasso", "quota", "scarto"], european)
    undo |= {"data": lambda text: day_in("it")(text.partition(" ")[2]), "ora": clock}
    other = table.assign(ora=[f"{m // 60:02}:{m % 60:02}:00" for m in minutes])
    return delimited(path, table, forms, undo, ";", also=(other,))


@export("A court in Poland: 15 maja 2026 r., the month in the genitive")
def polish_genitive(path: Path) -> Written:
    table = named(base(33, "Kraków Łódź Gdynia Żory"), "data miasto kwota liczba udział różnica")
    forms = {"data": in_words("pl", "{} {} {} r."), "kwota": comma, "udział": comma,
             "różnica": comma}  # fmt: skip
    undo = dict.fromkeys(["kwota", "udział", "różnica"], european)
    undo["data"] = lambda text: day_in("pl")(text.removesuffix(" r."))
    return delimited(path, table, forms, undo, ";")


@export("1C in Russia: 15 мая 2026 г., and 1 234,50 ₽")
def russian_dates(path: Path) -> Written:
    table = named(base(34, "Москва Казань Пермь Сочи"), "дата город сумма число доля остаток")
    forms = {"дата": in_words("ru", "{} {} {} г."), "доля": comma, "остаток": comma,
             "сумма": lambda value: f"{grouped(value, ' ', ',')} ₽"}  # fmt: skip
    undo = dict.fromkeys(["сумма", "доля", "остаток"], european)
    undo["дата"] = lambda text: day_in("ru")(text.removesuffix(" г."))
    return delimited(path, table, forms, undo, "\t")


@export("A Greek bank: 15 Μαΐου 2026, in cp1253", knows={"--encoding": "cp1253"})
def greek_months(path: Path) -> Written:
    names = "Ημερομηνία Πόλη Ποσό Πλήθος Μερίδιο Διαφορά"
    table = named(base(35, "Αθήνα Βόλος Πάτρα Χανιά"), names)
    forms = {"Ημερομηνία": in_words("el", "{} {} {}"), "Μερίδιο": comma, "Διαφορά": comma,
             "Ποσό": lambda value: f"{grouped(value, '.', ',')} €"}  # fmt: skip
    undo = dict.fromkeys(["Ποσό", "Μερίδιο", "Διαφορά"], european) | {"Ημερομηνία": day_in("el")}
    return delimited(path, table, forms, undo, ";", "cp1253")


@export("A Finnish sauna club: 15. toukokuuta 2026, klo 17.30")
def finnish_clock(path: Path) -> Written:
    table = named(base(36, "Espoo Turku Oulu Vaasa"), "päivä paikka summa määrä osuus lämpötila")
    minutes = np.random.default_rng(36).integers(0, 1440, len(table))
    table["kello"] = minutes * 60
    forms = {"päivä": in_words("fi", "{}. {} {}"), "osuus": comma, "lämpötila": lambda value:
             f"{comma(value)} °C".replace("-", "\N{MINUS SIGN}"), "summa": comma,
             "kello": lambda s: f"klo {s // 3600}.{s // 60 % 60:02}"}  # fmt: skip

    def clock(text: str) -> int:
        hours, minutes = map(int, text.removeprefix("klo ").split("."))
        return hours * 3600 + minutes * 60

    undo = dict.fromkeys(["summa", "osuus"], european) | {"päivä": day_in("fi"), "kello": clock}
    undo["lämpötila"] = lambda text: european(text.replace("\N{MINUS SIGN}", "-"))
    other = table.assign(kello=[f"{m // 60:02}:{m % 60:02}:00" for m in minutes])
    return delimited(path, table, forms, undo, ";", also=(other,))


@export("Logo in Turkey: 15 Ağu 2026, and %12,5 with its sign in front")
def turkish_percent(path: Path) -> Written:
    table = named(base(37, "İzmir Bursa Şile Iğdır"), "tarih şehir tutar adet oran fark")
    forms = {"tarih": in_words("tr", "{:02} {} {}"), "fark": comma,
             "tutar": lambda value: f"₺{grouped(value, '.', ',')}",
             "oran": lambda value: "%" + comma(f"{value * 100:.1f}")}  # fmt: skip
    undo = {"tarih": day_in("tr", "abbreviated"), "tutar": european, "fark": european,
            "oran": lambda text: european(text) / 100}  # fmt: skip
    return delimited(path, table, forms, undo, ";")


@export("A Japanese insurer: 2026年5月15日(金), and births as S53.2.11 or H8.5.15")
def japanese_calendar(path: Path) -> Written:
    table = named(base(38, "東京 大阪 札幌 福岡"), "日付 支店 金額 件数 割合 差額")
    table["金額"] = table["金額"].round()
    drawn = np.random.default_rng(38).integers(0, 20_000, len(table))
    table["生年月日"] = [date(1950, 1, 1) + timedelta(int(days)) for days in drawn]
    eras = ((date(1989, 1, 8), "H", 1988), (date(1926, 12, 25), "S", 1925))

    def born(day: date) -> str:
        sign, zero = next((sign, zero) for start, sign, zero in eras if day >= start)
        return f"{sign}{day.year - zero}.{day.month}.{day.day}"

    def read(text: str) -> str:
        year, month, day = map(int, text[1:].split("."))
        return date(year + {"H": 1988, "S": 1925}[text[0]], month, day).isoformat()

    forms = {"日付": lambda d: f"{d.year}年{d.month}月{d.day}日({'月火水木金土日'[d.weekday()]})",
             "金額": lambda value: f"{value:,.0f}円", "生年月日": born}  # fmt: skip
    undo = {"日付": lambda text: day_by("%Y年%m月%d日")(text.partition("(")[0]), "金額": plain,
            "件数": plain, "割合": plain, "差額": plain, "生年月日": read}  # fmt: skip
    return delimited(path, table, forms, undo)


@export("An American club: May 15th, 2026, Fri 15 May 2026, and 5:30pm")
def english_ordinals(path: Path) -> Written:
    table = base(39)
    later = np.random.default_rng(39).integers(0, 60, len(table))
    table["paid"] = [day + timedelta(int(k)) for day, k in zip(table["day"], later, strict=True)]
    minutes = np.random.default_rng(40).integers(0, 1440, len(table))
    table["at"] = minutes * 60

    def ordinal(day: date) -> str:
        last = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 * (day.day not in (11, 12, 13)), "th")
        return f"{day:%B} {day.day}{last}, {day.year}"

    def clock(seconds: int) -> str:
        hour, minute = divmod(seconds // 60, 60)
        return f"{hour % 12 or 12}:{minute:02}{'am' if hour < 12 else 'pm'}"

    def seconds(text: str) -> int:
        hour, minute = map(int, text[:-2].split(":"))
        return (hour % 12 + 12 * (text[-2:] == "pm")) * 3600 + minute * 60

    forms = {"day": ordinal, "paid": lambda day: f"{day:%a} {day.day} {day:%b} {day.year}",
             "amount": lambda value: f"${value:,.2f}", "at": clock}  # fmt: skip
    undo = {"day": lambda text: day_by("%B %d %Y")(re.sub(r"(\d)(st|nd|rd|th),", r"\1", text)),
            "paid": day_by("%a %d %b %Y"), "amount": plain, "at": seconds}  # fmt: skip
    other = table.assign(at=[f"{m // 60:02}:{m % 60:02}:00" for m in minutes])
    return delimited(path, table, forms, undo, also=(other,))


@export("A German rota: Fr, 15.05.2026, and 17.30 Uhr")
def german_weekdays(path: Path) -> Written:
    table = named(base(41, "Halle Ulm Trier Jena"), "Tag Ort Betrag Anzahl Anteil Saldo")
    minutes = np.random.default_rng(41).integers(0, 1440, len(table))
    table["Beginn"] = minutes * 60
    week = ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"]
    forms = {"Tag": lambda day: f"{week[day.weekday()]}, {day:%d.%m.%Y}", "Anteil": comma,
             "Saldo": comma, "Betrag": lambda value: grouped(value, ".", ","),
             "Beginn": lambda s: f"{s // 3600:02}.{s // 60 % 60:02} Uhr"}  # fmt: skip
    undo = dict.fromkeys(["Betrag", "Anteil", "Saldo"], european)
    undo |= {"Tag": lambda text: day_by("%d.%m.%Y")(text[4:]),
             "Beginn": lambda text: int(text[:2]) * 3600 + int(text[3:5]) * 60}  # fmt: skip
    other = table.assign(Beginn=[f"{m // 60:02}:{m % 60:02}:00" for m in minutes])
    return delimited(path, table, forms, undo, ";", also=(other,))


@export("An interface of a web shop: T and Z, an offset of each season, seconds and milliseconds")
def api_times(path: Path) -> Written:
    table = base(42)
    for at, name in enumerate(("day", "updated", "seen", "sent")):
        table[name] = [str(time) for time in moments(base(42 + at), 42 + at, 1)]

    def berlin(text: str) -> str:
        return pd.Timestamp(text, tz="UTC").tz_convert("Europe/Berlin").isoformat()

    def epoch(text: str) -> int:
        return int(pd.Timestamp(text, tz="UTC").timestamp())

    forms = {"day": lambda text: text.replace(" ", "T") + "Z", "updated": berlin,
             "seen": lambda text: str(epoch(text)),
             "sent": lambda text: f"{epoch(text)}000"}  # fmt: skip

    def utc(text: str) -> str:
        return str(pd.Timestamp(text).tz_convert("UTC").tz_localize(None))

    undo = {"day": utc, "updated": utc, "seen": lambda text: str(pd.Timestamp(int(text), unit="s")),
            "sent": lambda text: str(pd.Timestamp(int(text) // 1000, unit="s"))}  # fmt: skip
    return delimited(path, table, forms, undo)


@export("A production plan: 2026-W21-3, Q2 2026 and 05/2026")
def iso_weeks_quarters(path: Path) -> Written:
    table = base(43)
    table["due"] = [day.replace(day=1) for day in base(44)["day"]]
    quarters = [day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1) for day in base(45)["day"]]
    table["quarter"] = quarters

    def week(day: date) -> str:
        year, number, weekday = day.isocalendar()
        return f"{year}-W{number:02}-{weekday}"

    def quarter(day: date) -> str:
        return f"Q{day.month // 3 + 1} {day.year}"

    forms = {"day": week, "due": lambda day: day.strftime("%m/%Y"), "quarter": quarter}
    undo = {"day": day_by("%G-W%V-%u"), "due": day_by("%m/%Y"),
            "quarter": lambda text: f"{text[3:]}-{int(text[1]) * 3 - 2:02}-01"}  # fmt: skip
    other = table.assign(quarter=[quarter(day) for day in quarters])
    return delimited(path, table, forms, undo, also=(other,))


@export("A French race: 1 j 3 h, 2 h 15 min and 90 min; laps 1:15:30.5; breaks P1DT2H")
def durations(path: Path) -> Written:
    table = base(46)
    rng = np.random.default_rng(46)
    table["trajet"] = rng.integers(20, 3000, len(table)) * 60
    table["tour"] = rng.integers(30_000, 90_000, len(table)) / 10
    table["pause"] = rng.integers(1, 60, len(table)) * 3600

    def words(seconds: int) -> str:
        minutes = seconds // 60
        if minutes < 120:
            return f"{minutes} min"
        days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
        parts = (days, "j"), (hours, "h"), (minutes, "min")
        return " ".join(f"{number} {unit}" for number, unit in parts if number)

    def lap(seconds: float) -> str:
        tenths = round(seconds * 10)
        return f"{tenths // 36000}:{tenths // 600 % 60:02}:{tenths // 10 % 60:02}.{tenths % 10}"

    def iso(seconds: int) -> str:
        days, hours = divmod(seconds // 3600, 24)
        return "P" + f"{days}D" * (days > 0) + f"T{hours}H" * (hours > 0)

    units = {"j": 86400, "h": 3600, "min": 60}
    undo = {
        "trajet": lambda text: sum(int(a) * units[b] for a, b in re.findall(r"(\d+) (\w+)", text)),
        "tour": lambda text: pd.Timedelta(text).total_seconds(),
        "pause": lambda text: pd.Timedelta(text if "T" in text else text + "T0H").total_seconds(),
    }
    return delimited(path, table, {"trajet": words, "tour": lap, "pause": iso}, undo)


@export("A map: 48° 51' 24\" N and S beside 2.3522 W of another program")
def coordinates(path: Path) -> Written:
    table = base(47)
    rng = np.random.default_rng(47)
    table["lat"] = (rng.integers(-70 * 3600, 70 * 3600, len(table)) / 3600).round(9)
    table["lon"] = rng.uniform(-179, 179, len(table)).round(4)

    def dms(value: float) -> str:
        seconds = round(abs(value) * 3600)
        side = "N" if value >= 0 else "S"
        return f"{seconds // 3600}° {seconds // 60 % 60:02}' {seconds % 60:02}\" {side}"

    def read(text: str) -> float:
        degrees, minutes, seconds = map(int, re.findall(r"\d+", text))
        return round((degrees + minutes / 60 + seconds / 3600) * (1 if text[-1] == "N" else -1), 9)

    def degrees(value: float) -> str:
        return f"{abs(value):.4f} {'E' if value >= 0 else 'W'}"

    undo = {"lat": read, "lon": lambda text: float(text[:-2]) * (1 if text[-1] == "E" else -1)}
    return delimited(path, table, {"lat": dms, "lon": degrees}, undo)


@export("Excel saved as CSV with unformatted cells: serials in a column date", must=MAY_REFUSE)
def excel_serials(path: Path) -> Written:
    table = base(48).rename(columns={"day": "date"})
    zero = date(1899, 12, 30)
    forms = {"date": lambda day: str((day - zero).days)}
    return delimited(path, table, forms,
                     {"date": lambda text: (zero + timedelta(int(text))).isoformat()})  # fmt: skip


@export("SAP master data: 31.12.9999 for an open end, 01.01.1900 for an unknown start")
def open_ends(path: Path) -> Written:
    table = named(base(49), "gültig_ab Werk Preis Menge Anteil Abweichung")
    ends = [day + timedelta(30 + k % 90) for k, day in enumerate(table["gültig_ab"])]
    open_end, unknown = chance(49, 0.3), chance(50, 0.08)
    table["gültig_bis"] = [None if gone else day for day, gone in zip(ends, open_end, strict=True)]
    table["gültig_ab"] = table["gültig_ab"].where(~unknown, None)
    written = table.assign(
        gültig_bis=table["gültig_bis"].where(~open_end, date(9999, 12, 31)),
        gültig_ab=table["gültig_ab"].where(~unknown, date(1900, 1, 1)),
    )
    days = ["gültig_ab", "gültig_bis"]
    forms = dict.fromkeys(days, lambda day: day.strftime("%d.%m.%Y"))
    forms |= dict.fromkeys(["Preis", "Anteil", "Abweichung"], comma)

    def read(text: str) -> str | None:
        return None if text in ("31.12.9999", "01.01.1900") else day_by("%d.%m.%Y")(text)

    undo = dict.fromkeys(days, read) | dict.fromkeys(["Preis", "Anteil", "Abweichung"], european)
    made = delimited(path, written, forms, undo, ";")
    return Written(table, made.back)


@export("A registry in Naples: 15/05/26, and births as 11/02/53", must=MAY_REFUSE)
def two_digit_years(path: Path) -> Written:
    table = named(base(51), "data sede importo numero quota saldo")
    drawn = np.random.default_rng(51).integers(0, 20_000, len(table))
    table["nascita"] = [date(1940, 1, 1) + timedelta(int(days)) for days in drawn]
    forms = dict.fromkeys(["data", "nascita"], lambda day: day.strftime("%d/%m/%y"))
    undo = {
        "data": day_by("%d/%m/%y"),
        "nascita": lambda text: day_by("%d/%m/%Y")(f"{text[:6]}19{text[6:]}"),
    }
    return delimited(path, table, forms, undo)
