"""Numbers and money as countries and programs write them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from world_tables import (
    MAY_REFUSE,
    Written,
    base,
    comma,
    day_by,
    day_in,
    delimited,
    digits_of,
    european,
    export,
    grouped,
    lakhs,
    moments,
    named,
    plain,
    scaled,
)

NBSP, NARROW = "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@export("Tally in Hindi: digits of Devanagari, lakhs, and the rupee sign before the number")
def hindi_rupees(path: Path) -> Written:
    table = named(base(1, "दिल्ली मुंबई पुणे आगरा"), "दिनांक शहर राशि संख्या भाग शेष")
    table["राशि"] = (table["राशि"] * 90).round(2)
    table["शेष"] = (table["शेष"] * 12345.67).round(2)
    native = digits_of("०")
    forms = {
        "दिनांक": lambda day: day.strftime("%d/%m/%Y").translate(native),
        "राशि": lambda value: "₹" + lakhs(value).translate(native),
        "संख्या": lambda value: str(value).translate(native),
        "भाग": lambda value: str(value).translate(native),
        "शेष": lambda value: "-" * (value < 0) + "₹ " + lakhs(abs(value)),
    }
    undo = dict.fromkeys(list(forms)[1:], plain) | {"दिनांक": day_by("%d/%m/%Y")}
    return delimited(path, table, forms, undo)


@export("A shop in Dhaka: digits of Bengali and the taka sign")
def bengali_taka(path: Path) -> Written:
    table = named(base(2, "ঢাকা খুলনা সিলেট রংপুর"), "তারিখ শহর টাকা সংখ্যা অংশ মান")
    native = digits_of("০")
    forms = {
        "তারিখ": lambda day: day.isoformat().translate(native),
        "টাকা": lambda value: "৳ " + lakhs(value).translate(native),
        **dict.fromkeys(["সংখ্যা", "অংশ", "মান"], lambda value: str(value).translate(native)),
    }
    undo = dict.fromkeys(list(forms)[1:], plain) | {"তারিখ": day_by("%Y-%m-%d")}
    return delimited(path, table, forms, undo)


@export("A browser in Egypt (Intl.NumberFormat): Arabic signs, and marks of direction")
def arabic_riyal(path: Path) -> Written:
    table = named(base(3, "الرياض جدة مكة الدمام"), "التاريخ المدينة المبلغ العدد النسبة الفرق")
    native = digits_of("٠") | {ord(","): "\N{ARABIC THOUSANDS SEPARATOR}",
                               ord("."): "\N{ARABIC DECIMAL SEPARATOR}",
                               ord("-"): "\N{ARABIC LETTER MARK}-"}  # fmt: skip
    forms = {
        "المبلغ": lambda v: f"\u200f{v:,.2f}".translate(native) + f"{NBSP}ر.س.\u200f",
        "العدد": lambda v: str(v).translate(native),
        "النسبة": lambda v: f"{v * 100:.1f}".translate(native) + "٪\u061c",
        "الفرق": lambda v: str(v).translate(native),
    }

    def arabic(text: str) -> float:
        return plain(text.replace("ر.س.", "").replace("\u066b", "."))

    undo = dict.fromkeys(forms, arabic) | {"النسبة": lambda text: arabic(text) / 100}
    return delimited(path, table, forms, undo, ";")


@export(
    "An office in Bangkok: Thai digits and บาท behind the number", knows={"--encoding": "cp874"}
)
def thai_baht(path: Path) -> Written:
    table = named(base(4, "กรุงเทพ เชียงใหม่ ภูเก็ต ขอนแก่น"), "วันที่ สาขา ยอด จำนวน สัดส่วน ระดับ")
    native = digits_of("๐")
    forms = {
        "ยอด": lambda value: f"{value:,.2f} บาท".translate(native),
        **dict.fromkeys(["จำนวน", "สัดส่วน", "ระดับ"], lambda value: str(value).translate(native)),
    }
    return delimited(path, table, forms, dict.fromkeys(forms, plain), encoding="cp874")


@export("Abacus in Switzerland: apostrophes of both kinds, CHF on either side")
def swiss_francs(path: Path) -> Written:
    table = named(base(5, "Zürich Bern Genève Chur"), "Datum Ort Umsatz Anzahl Anteil Saldo")
    table["Saldo"] = (table["Saldo"] * 1234.5).round(2)
    forms = {
        "Datum": lambda day: day.strftime("%d.%m.%Y"),
        "Umsatz": lambda value: f"CHF {grouped(value, chr(39), '.')}",
        "Saldo": lambda value: f"{grouped(value, chr(0x2019), '.')} CHF",
        "Anteil": lambda value: f"{value:.1%}",
    }
    undo = {"Datum": day_by("%d.%m.%Y"), "Umsatz": plain, "Saldo": plain,
            "Anteil": lambda text: plain(text) / 100}  # fmt: skip
    return delimited(path, table, forms, undo, ";")


MONTHS_CZECH = "ledna února března dubna května června července srpna září října listopadu prosince"


@export("Pohoda in the Czech Republic: 1 234,50 Kč and 15. května 2026, in cp1250",
        knows={"--encoding": "cp1250"})  # fmt: skip
def czech_koruna(path: Path) -> Written:
    table = named(base(6, "Praha Brno Ostrava Plzeň"), "Datum Město Částka Počet Podíl Změna")
    months = MONTHS_CZECH.split()
    forms = {
        "Datum": lambda day: f"{day.day}. {months[day.month - 1]} {day.year}",
        "Částka": lambda value: f"{grouped(value, NBSP, ',')}{NBSP}Kč",
        "Podíl": lambda value: comma(f"{value * 100:.1f}") + f"{NBSP}%",
        "Změna": comma,
    }
    undo = {"Datum": day_in("cs"), "Částka": european, "Změna": european,
            "Podíl": lambda text: european(text) / 100}  # fmt: skip
    return delimited(path, table, forms, undo, ";", "cp1250")


MONTHS_HUNGARIAN = (
    "január február március április május június július augusztus szeptember október november "
    "december"
)


@export("Számlázz.hu in Hungary: whole forints with narrow spaces, and 2026. május 15.")
def hungarian_forint(path: Path) -> Written:
    table = named(base(7, "Budapest Győr Szeged Pécs"), "Dátum Város Összeg Darab Arány Eltérés")
    table["Összeg"] = (table["Összeg"] * 40).round()
    months = MONTHS_HUNGARIAN.split()

    def read(text: str) -> str:
        year, month, day = text.split()
        return day_in("hu")(f"{day} {month} {year.strip('.')}")

    forms = {
        "Dátum": lambda day: f"{day.year}. {months[day.month - 1]} {day.day}.",
        "Összeg": lambda value: f"{grouped(value, NARROW, ',', 0)} Ft",
        "Arány": comma,
        "Eltérés": comma,
    }
    undo = {"Dátum": read, "Összeg": european, "Arány": european, "Eltérés": european}
    return delimited(path, table, forms, undo, "\t")


@export(
    "A shop in Seoul: 원 and ￦, 2026년 5월 15일, 오후 5:30, in cp949",
    knows={"--encoding": "cp949"},
)
def korean_won(path: Path) -> Written:
    table = named(base(8, "서울 부산 대구 인천"), "날짜 지점 금액 수량 비율 차액")
    table["금액"] = (table["금액"] * 1000).round()
    table["차액"] = (table["차액"] * 12345).round()
    times = moments(table, 8)
    table["시각"] = [str(time) for time in times]

    def clock(text: str) -> str:
        day, half, hours = re.fullmatch(r"([\d.]+) (오전|오후) ([\d:]+)", text).groups()
        read = pd.to_datetime(f"{day} {hours} {'AM' if half == '오전' else 'PM'}",
                              format="%Y.%m.%d %I:%M %p")  # fmt: skip
        return str(read)

    def write(text: str) -> str:
        time = pd.Timestamp(text)
        half = "오전" if time.hour < 12 else "오후"
        return f"{time:%Y.%m.%d} {half} {time.hour % 12 or 12}:{time.minute:02}"

    forms = {
        "날짜": lambda day: f"{day.year}년 {day.month}월 {day.day}일",
        "금액": lambda value: f"{value:,.0f}원",
        # cp949 has the won sign in its full width only.
        "차액": lambda value: f"{'-' * (value < 0)}￦{abs(value):,.0f}",
        "시각": write,
    }
    undo = {"날짜": day_by("%Y년 %m월 %d일"), "금액": plain, "차액": plain, "시각": clock}
    return delimited(path, table, forms, undo, encoding="cp949")


@export("A Chinese till: 元 behind, ¥ before, and 2026/5/15 下午5:30")
def chinese_yuan(path: Path) -> Written:
    table = named(base(9, "北京 上海 广州 成都"), "日期 城市 销售额 数量 占比 差额")
    table["日期"] = [str(time) for time in moments(table, 9)]

    def write(text: str) -> str:
        time = pd.Timestamp(text)
        half = "上午" if time.hour < 12 else "下午"
        day = f"{time.year}/{time.month}/{time.day}"
        return f"{day} {half}{time.hour % 12 or 12}:{time.minute:02}"

    def read(text: str) -> str:
        text = text.replace("上午", "AM ").replace("下午", "PM ")
        return str(pd.to_datetime(text, format="%Y/%m/%d %p %I:%M"))

    forms = {
        "日期": write,
        "销售额": lambda value: f"{value:,.2f}元",
        "差额": lambda value: f"¥{value:.2f}",
        "占比": lambda value: f"{value * 100:.1f}％",
    }
    undo = {"日期": read, "销售额": plain, "差额": plain, "占比": lambda text: plain(text) / 100}
    return delimited(path, table, forms, undo, encoding="utf-8-sig")


@export("Excel in Brazil: the minus between R$ and the number")
def brazilian_real(path: Path) -> Written:
    table = named(base(10, "Bahia Ceará Paraná Goiás"), "data estado valor qtde taxa saldo")
    table["saldo"] = (table["saldo"] * 987.65).round(2)
    forms = {
        "data": lambda day: day.strftime("%d/%m/%Y"),
        **dict.fromkeys(["valor", "saldo"], lambda value: f"R$ {grouped(value, '.', ',')}"),
        "taxa": lambda value: comma(f"{value * 100:.1f}%"),
    }
    undo = {"data": day_by("%d/%m/%Y"), "valor": european, "saldo": european,
            "taxa": lambda text: european(text) / 100}  # fmt: skip
    return delimited(path, table, forms, undo, ";", "cp1252")


MONTHS_FRENCH = (
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
)


@export("Sage in France: (1 234,50) below zero, 1er mai 2026, 17h30")
def french_accounts(path: Path) -> Written:
    table = named(base(11, "Lyon Paris Nantes Brest"), "date ville débit nombre part solde")
    table["solde"] = (table["solde"] * 1234.5).round(2)
    minutes = np.random.default_rng(11).integers(0, 1440, len(table))
    table["heure"] = minutes * 60
    months = MONTHS_FRENCH.split()
    forms = {
        "date": lambda d: f"{'1er' if d.day == 1 else d.day} {months[d.month - 1]} {d.year}",
        "débit": lambda value: grouped(value, NBSP, ","),
        "part": comma,
        "solde": lambda v: f"({grouped(-v, NBSP, ',')})" if v < 0 else grouped(v, NBSP, ","),
        "heure": lambda seconds: f"{seconds // 3600:02}h{seconds // 60 % 60:02}",
    }
    undo = {
        "date": lambda text: day_in("fr")(text.replace("1er", "1")),
        "débit": european,
        "part": european,
        "solde": lambda text: european(text) * (-1 if text[0] == "(" else 1),
        "heure": lambda text: int(text[:2]) * 3600 + int(text[3:]) * 60,
    }
    clock = table.assign(heure=[f"{m // 60:02}:{m % 60:02}:00" for m in minutes])
    return delimited(path, table, forms, undo, ";", also=(clock,))


@export("A German laboratory: 1,23457E+05 of Excel, and 1,5·10³ as typed from paper")
def german_powers(path: Path) -> Written:
    table = named(base(12), "Tag Labor Keime Proben Anteil Titer")
    table["Keime"] = [float(f"{value * 100:.5E}") for value in table["Keime"]]
    spread = np.random.default_rng(12).normal(2, 1.2, len(table))
    table["Titer"] = [float(f"{10.0**power:.1E}") for power in spread]

    def excel(value: float) -> str:
        return comma(f"{value:.5E}" if value >= 100_000 else f"{value:.10g}")

    def typed(value: float) -> str:
        digits, _, power = f"{value:.1E}".partition("E")
        return f"{comma(digits)}·10{str(int(power)).translate(SUPERSCRIPTS)}"

    def read(text: str) -> float:
        digits, power = text.replace(",", ".").split("·10")
        return float(f"{digits}E{power.translate(str.maketrans('⁰¹²³⁴⁵⁶⁷⁸⁹⁻', '0123456789-'))}")

    forms = {"Tag": lambda day: day.strftime("%d.%m.%Y"), "Keime": excel, "Anteil": comma,
             "Titer": typed}  # fmt: skip
    undo = {"Tag": day_by("%d.%m.%Y"), "Keime": lambda text: float(text.replace(",", ".")),
            "Anteil": european, "Titer": read}  # fmt: skip
    return delimited(path, table, forms, undo, ";")


@export("A dashboard of advertising: $1.2K, $3.4M, $1.1B, and 3.4 × 10^-2")
def dashboard_suffixes(path: Path) -> Written:
    table = named(base(13), "day campaign spend clicks rate lift")
    spread = np.random.default_rng(13).normal(5.2, 1.4, len(table))

    def write(value: float) -> str:
        for size, sign in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
            if value >= size:
                return f"${value / size:.2f}{sign}"
        return f"${value:.2f}"

    def read(text: str) -> float:
        factor = {"K": "1e3", "M": "1e6", "B": "1e9"}.get(text[-1], "1")
        return scaled(text.strip("$KMB"), factor)

    def power(value: float) -> str:
        digits, _, exponent = f"{value:.2e}".partition("e")
        return f"{digits} × 10^{int(exponent)}"

    table["spend"] = [read(write(10.0**power)) for power in spread]
    table["rate"] = [float(f"{value / 10:.2e}") for value in table["rate"]]
    undo = {"spend": read, "rate": lambda text: float(text.replace(" × 10^", "e"))}
    return delimited(path, table, {"spend": write, "rate": power}, undo)


@export("A German press office: 12,3 Tsd. €, 1,2 Mio. €, 1,1 Mrd. €")
def german_millions(path: Path) -> Written:
    table = named(
        base(14, "Bau Handel Verkehr Energie"), "Stichtag Branche Umsatz Firmen Quote Trend"
    )
    spread = np.random.default_rng(14).normal(6, 1.3, len(table))
    words = {"Tsd.": 1e3, "Mio.": 1e6, "Mrd.": 1e9}

    def write(value: float) -> str:
        word = max((w for w in words if value >= words[w]), key=words.get, default="")
        return comma(f"{value / words.get(word, 1):.1f}") + f"{NBSP}{word}".rstrip() + f"{NBSP}€"

    def read(text: str) -> float:
        number, *word = text.replace(NBSP, " ").removesuffix(" €").split()
        return scaled(number.replace(",", "."), str(int(words.get("".join(word), 1))))

    table["Umsatz"] = [read(write(10.0**power)) for power in spread]
    forms = {"Stichtag": lambda day: day.strftime("%d.%m.%Y"), "Umsatz": write,
             "Quote": comma, "Trend": lambda value: comma(f"{value:+.1f} %")}  # fmt: skip
    undo = {"Stichtag": day_by("%d.%m.%Y"), "Umsatz": read, "Quote": european, "Trend": european}
    return delimited(path, table, forms, undo, ";")


@export("Swedish police: promille, kg before the number, 15 maj 2026 kl. 17:30")
def swedish_promille(path: Path) -> Written:
    table = named(base(15, "Lund Umeå Kalmar Visby"), "tid ort vikt antal promille avvikelse")
    months = "januari februari mars april maj juni juli augusti september oktober november december"
    table["tid"] = [str(time) for time in moments(table, 15)]

    def write(text: str) -> str:
        time = pd.Timestamp(text)
        return f"{time.day} {months.split()[time.month - 1]} {time.year} kl. {time:%H:%M}"

    def read(text: str) -> str:
        day, clock = text.split(" kl. ")
        return f"{day_in('sv')(day)} {clock}:00"

    forms = {"tid": write, "vikt": lambda value: f"kg {comma(value)}",
             "promille": lambda value: f"{comma(f'{value * 10:.2f}')} ‰",
             "avvikelse": comma}  # fmt: skip
    undo = {"tid": read, "vikt": european, "avvikelse": european,
            "promille": lambda text: european(text) / 10}  # fmt: skip
    return delimited(path, table, forms, undo, ";")


@export("A Dutch table pasted from Word: hyphens and dashes of four kinds as the minus")
def typographic_minus(path: Path) -> Written:
    table = named(base(16), "datum plaats bedrag aantal deel saldo")
    months = [
        "jan.",
        "feb.",
        "mrt.",
        "apr.",
        "mei",
        "jun.",
        "jul.",
        "aug.",
        "sep.",
        "okt.",
        "nov.",
        "dec.",
    ]
    signs = "\N{MINUS SIGN}\N{HYPHEN}\N{EN DASH}\N{NON-BREAKING HYPHEN}"
    written = iter(range(len(table)))

    def write(value: float) -> str:
        return comma(value).replace("-", signs[next(written) % 4])

    forms = {"datum": lambda day: f"{day.day} {months[day.month - 1]} {day.year}",
             "bedrag": lambda value: f"€ {grouped(value, '.', ',')}",
             "deel": comma, "saldo": write}  # fmt: skip
    undo = {
        "datum": day_in("nl", "abbreviated"),
        "bedrag": european,
        "deel": european,
        "saldo": lambda text: european(text.translate(dict.fromkeys(map(ord, signs), "-"))),
    }
    return delimited(path, table, forms, undo, ";")


@export("A physics lab: 12.3 ± 0.4, of which the first is the value", must=MAY_REFUSE)
def plus_minus(path: Path) -> Written:
    table = base(17)
    fault = np.random.default_rng(17).integers(1, 9, len(table)) / 10
    at = iter(fault)
    forms = {"level": lambda value: f"{value} ± {next(at)}"}
    return delimited(path, table, forms, {"level": lambda text: float(text.split(" ±")[0])})


@export("A survey: 12-15 hours a week, of which the middle is the value", must=MAY_REFUSE)
def ranges(path: Path) -> Written:
    table = base(18)
    table["hours"] = table.pop("level").abs().astype(int) + 1.5
    ends = table.assign(hours=table["hours"] - 1.5)
    text = table.assign(hours=[f"r{value - 1.5:.0f}-{value + 1.5:.0f}" for value in table["hours"]])
    forms = {"hours": lambda value: f"{value - 1.5:.0f}-{value + 1.5:.0f}"}
    undo = {"hours": lambda cell: sum(map(int, cell.split("-"))) / 2}
    return delimited(path, table, forms, undo, also=(ends, text))


@export("A sawmill in inches: 1 1/2, 3/4, 2", must=MAY_REFUSE)
def fractions(path: Path) -> Written:
    table = base(19)
    quarters = np.random.default_rng(19).integers(1, 60, len(table))
    quarters[7] = 900
    table["thickness"] = quarters / 4
    parts = {0: "", 1: "1/4", 2: "1/2", 3: "3/4"}

    def write(value: float) -> str:
        return f"{int(value) or ''} {parts[round(value * 4) % 4]}".strip()

    def read(text: str) -> float:
        return sum(int(a) / int(b or 1) for a, _, b in (w.partition("/") for w in text.split()))

    return delimited(path, table, {"thickness": write}, {"thickness": read})
