"""Draw the figures of the concepts: one SVG each, which the pages contain inline.

    python docs/figures/concepts.py        writes docs/figures/concepts/*.svg

Text and lines have the page's own colour, and the two other colours come from
`docs/_static/site.css`, so the figures follow the page from light to dark. They are 400 units wide,
which a phone displays at about nine tenths, so no text is smaller than 14 units.
"""

from html import escape
from math import log2
from pathlib import Path
from zlib import crc32

HERE = Path(__file__).parent / "concepts"
WIDTH = 400
ROWS, FLAG = "hush-rows", "hush-flag"
MINUS = "\N{MINUS SIGN}"


class Figure:
    """Shapes on a canvas that is 400 units wide.

    ``alt`` describes the figure in words for readers who do not see it.
    """

    def __init__(self, height: float, alt: str) -> None:
        self.height, self.alt, self.parts = height, alt, []
        self.arrow = f"hush-arrow-{crc32(alt.encode()):08x}"  # several figures are on a page

    def text(self, x, y, words, *, anchor="start", colour="", bold=False, small=False):
        kind = " ".join(k for k in (colour, "bold" * bold, "small" * small) if k)
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
            f"{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{escape(words)}</text>"
        )

    def box(self, x, y, width, height, words=(), *, colour="", round=5, bold=True):
        """Draw a frame with lines of text in its middle, the first one in bold."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round}"'
            f' class="{f"box {colour}".strip()}"/>'
        )
        lines = [words] if isinstance(words, str) else words
        top = y + height / 2 - 9.5 * (len(lines) - 1) + 5
        for i, line in enumerate(lines):
            middle = x + width / 2
            self.text(middle, top + 19 * i, line, anchor="middle", bold=bold and not i, small=i > 0)

    def line(self, x1, y1, x2, y2, *, colour="", dashed=False, arrow=False, thick=False):
        flags = ("dashed" * dashed, "thick" * thick)
        kind = " ".join(k for k in ("line", colour, *flags) if k)
        end = f' marker-end="url(#{self.arrow})"' if arrow else ""
        self.parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{kind}"{end}/>')

    def dot(self, x, y, colour=FLAG, radius=5.5):
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="dot {colour}"/>')

    def grid(self, x, y, counts, *, size=(40, 28), colour=ROWS, marked=()):
        """Draw counts as cells; those that are marked are of the other colour."""
        wide, high = size
        for i, row in enumerate(counts):
            for j, count in enumerate(row):
                kind = FLAG if (i, j) in marked else colour
                place = x + wide * j, y + high * i, wide, high
                self.box(*place, str(count), colour=kind, round=0, bold=False)

    def svg(self) -> str:
        return "\n".join([
            f'<svg class="concept" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH}'
            f' {self.height:g}" role="img" aria-label="{escape(self.alt)}">',
            "<defs>"
            f'<marker id="{self.arrow}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8"'
            ' markerHeight="8" orient="auto-start-reverse">'
            '<path d="M0 0L10 5L0 10z" fill="currentColor"/></marker></defs>',
            *self.parts,
            "</svg>\n",
        ])  # fmt: skip


def schema() -> Figure:
    figure = Figure(
        206,
        "Three features and their public ranges: age from 0 to 120 years, pulse from 20 to 250, "
        "ward east or west. The values in the rows lie inside the ranges, and are not in the "
        "schema.",
    )
    for i, (name, low, high, start, end) in enumerate((
        ("age", "0", "120 years", 0.15, 0.8), ("pulse", "20", "250", 0.12, 0.5),
    )):  # fmt: skip
        y = 34 + 60 * i
        figure.text(0, y + 5, name, bold=True)
        figure.box(70, y - 9, 320, 18, colour=ROWS)
        figure.line(70 + 320 * start, y, 70 + 320 * end, y, colour=FLAG, thick=True)
        figure.text(70, y + 26, low, small=True)
        figure.text(390, y + 26, high, anchor="end", small=True)
    figure.text(0, 159, "ward", bold=True)
    figure.box(70, 139, 155, 30, "east", colour=ROWS, bold=False)
    figure.box(235, 139, 155, 30, "west", colour=ROWS, bold=False)
    figure.box(70, 188, 16, 12, colour=ROWS)
    figure.text(92, 199, "possible: public", small=True)
    figure.line(222, 194, 240, 194, colour=FLAG, thick=True)
    figure.text(248, 199, "your rows: private", small=True)
    return figure


def plan() -> Figure:
    figure = Figure(
        248,
        "Two tables divide the same square of age and pulse, each with its own cuts. A row, drawn "
        "as a point, falls into exactly one cell of each table.",
    )
    x, y = 0.68, 0.3  # the row, as a share of both ranges
    for t, (ages, pulses) in enumerate((((0.4, 0.85), (0.55,)), ((0.6,), (0.2, 0.7)))):
        left, top, side = 26 + 205 * t, 34, 165
        edges = [0, *ages, 1], [0, *pulses, 1]
        i, j = (
            max(k for k, edge in enumerate(e) if edge <= at)
            for e, at in zip(edges, (x, y), strict=True)
        )
        (a, b), (c, d) = edges[0][i : i + 2], edges[1][j : j + 2]
        figure.text(left + side / 2, 20, f"Table {t + 1}", anchor="middle", bold=True)
        figure.box(
            left + side * a, top + side * (1 - d), side * (b - a), side * (d - c),
            colour=FLAG, round=0,
        )  # fmt: skip
        for cut in edges[0]:
            figure.line(left + side * cut, top, left + side * cut, top + side, colour=ROWS)
        for cut in edges[1]:
            figure.line(
                left, top + side * (1 - cut), left + side, top + side * (1 - cut), colour=ROWS
            )
        figure.dot(left + side * x, top + side * (1 - y))
        figure.text(left + side / 2, 217, "age", anchor="middle", small=True)
    figure.text(10, 122, "pulse", anchor="middle", small=True)
    figure.parts[-1] = figure.parts[-1].replace("<text", '<text transform="rotate(-90 10 118)"')
    figure.text(200, 242, "one row: one cell in each table", anchor="middle", small=True)
    return figure


NORTH, SOUTH = ((12, 3), (40, 0)), ((9, 5), (31, 1))


def sketch() -> Figure:
    figure = Figure(
        152,
        "The counts of two sites, cell by cell, add up to the counts of all rows: 12 and 9 are 21, "
        "3 and 5 are 8, 40 and 31 are 71, 0 and 1 are 1.",
    )
    total = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(NORTH, SOUTH, strict=True)]
    for i, (name, counts) in enumerate((("north", NORTH), ("south", SOUTH), ("all rows", total))):
        left = 5 + 150 * i
        figure.text(left + 45, 20, name, anchor="middle", bold=True)
        figure.grid(left, 34, counts, size=(45, 36), colour=FLAG if i == 2 else ROWS)
        if i < 2:
            figure.text(left + 120, 76, "+="[i], anchor="middle", bold=True)
    figure.text(200, 138, "one table, four cells: equal to the bit", anchor="middle", small=True)
    return figure


def release() -> Figure:
    figure = Figure(
        262,
        "From top to bottom: a sketch with exact counts stays at the site. Noise is added to every "
        "cell, including empty ones. Below the site's border is the release: noised counts with a "
        "ledger of what they cost.",
    )
    noise = (31, -52, 8, 64)  # as large as 200 tables at epsilon 1 take
    exact = (12, 3, 40, 0)
    figure.text(0, 24, "sketch", bold=True)
    figure.text(0, 44, "stays", small=True)
    figure.grid(130, 8, [exact], size=(66, 36))
    figure.text(0, 82, "+ noise", bold=True)
    figure.text(0, 102, "in every cell", small=True)
    figure.grid(130, 68, [[f"{n:+d}".replace("-", MINUS) for n in noise]], size=(66, 36), colour="")
    figure.line(0, 130, 400, 130, dashed=True)
    figure.text(400, 124, "the site's border", anchor="end", small=True)
    figure.text(0, 166, "release", bold=True)
    figure.text(0, 186, "may leave", small=True)
    noised = [str(a + b).replace("-", MINUS) for a, b in zip(exact, noise, strict=True)]
    figure.grid(130, 150, [noised], size=(66, 36), colour=FLAG)
    figure.box(130, 200, 264, 52, ("ledger", "epsilon 1, delta 1e-6, in total"), colour=FLAG)
    return figure


def round_() -> Figure:
    figure = Figure(
        284,
        "Three sites send masked counts to a coordinator, which sees only their sum and sends the "
        "signed result back to all three.",
    )
    for i, name in enumerate(("north", "south", "west")):
        top = 28 + 78 * i
        figure.box(2, top, 122, 54, (name, "rows, sketch"), colour=ROWS)
        figure.line(128, top + 18, 268, 112 + 21 * i, arrow=True)
        figure.line(268, 122 + 21 * i, 128, top + 38, arrow=True, dashed=True, colour=FLAG)
    figure.box(272, 100, 126, 76, ("coordinator", "sees the sum,", "signs it"), colour=FLAG)
    figure.text(214, 66, "counts + noise + mask", small=True)
    figure.text(236, 236, "signed result", colour=FLAG, small=True)
    figure.text(62, 18, "sites", anchor="middle", small=True)
    figure.text(200, 278, "each site scores its own rows", anchor="middle", small=True)
    return figure


def score() -> Figure:
    cells = (("common row", (210, 180, 240), ROWS), ("rare row", (2, 1, 4), FLAG))
    figure = Figure(
        236,
        "A common row shares its cells with 210, 180, and 240 rows, and scores 7.7 bits. A rare "
        "row shares them with 2, 1, and 4, and scores 1. Low scores are abnormal.",
    )
    figure.text(206, 18, "rows in its cells", anchor="middle", small=True)
    figure.text(398, 18, "score", anchor="end", small=True)
    figure.line(20, 172, 384, 172)
    for i, (name, counts, colour) in enumerate(cells):
        top = 30 + 62 * i
        mean = sum(map(log2, counts)) / 3
        figure.text(0, top + 24, name, bold=True)
        figure.grid(125, top, [counts], size=(54, 38), colour=colour)
        figure.text(398, top + 24, f"{mean:.1f} bits", anchor="end", bold=True, colour=colour)
        figure.dot(20 + 45 * mean, 172, colour, 8)
    for bits in range(0, 9, 2):
        figure.text(20 + 45 * bits, 198, str(bits), anchor="middle", small=True)
    figure.text(20, 222, "low: abnormal", small=True)
    figure.text(384, 222, "high: common", anchor="end", small=True)
    return figure


#: Score, and what each feature takes off a typical one: of row 0 on the page, in bits.
REASONS = 7.73, (("amount 950", 5.28), ("hour 3.5", 1.08), ("country FJ", 0.39))


def reasons() -> Figure:
    low, shares = REASONS
    typical = low + sum(share for _, share in shares)
    figure = Figure(
        226,
        f"A typical row scores {typical:.2f} bits. Amount takes off 5.28, hour 1.08, and country "
        f"0.39. The rest is the row's score of {low}.",
    )

    def place(bits):
        return 395 - (typical - bits) * 27

    figure.text(395, 20, f"typical {typical:.2f}", anchor="end", bold=True)
    at = typical
    for i, (name, share) in enumerate(shares):
        top = 46 + 44 * i
        figure.line(place(at), top - 16, place(at), top + 26, dashed=True)
        figure.box(place(at - share), top - 4, share * 27, 24, colour=FLAG)
        figure.text(0, top + 13, name, bold=True)
        figure.text(
            place(at - share) - 6, top + 13, f"{MINUS}{share:.2f}", anchor="end", small=True
        )
        at -= share
    figure.line(place(at), 128, place(at), 176, dashed=True)
    figure.text(place(at), 196, f"this row {low:.2f}", anchor="middle", bold=True, colour=FLAG)
    figure.text(200, 220, "bits, lower is more abnormal", anchor="middle", small=True)
    return figure


def budget() -> Figure:
    figure = Figure(
        172,
        "A budget of epsilon 1, as a bar of rho. A first release of epsilon 0.5 takes 27% of it. "
        "The rest is worth 0.84: together they cost 1.0, not 1.34.",
    )
    share = 0.273  # of rho that epsilon 0.5 takes out of 1, at delta 1e-6
    figure.text(2, 20, "cap: epsilon 1", bold=True)
    figure.box(2, 32, 396 * share, 52, "0.5", colour=ROWS)
    figure.box(2 + 396 * share, 32, 396 * (1 - share), 52, "0.84", colour=FLAG)
    figure.text(198 * share, 106, "last year", anchor="middle", small=True)
    figure.text(198 * (1 + share), 106, "this year: the rest", anchor="middle", small=True)
    figure.text(2, 140, "together epsilon 1.0, not 1.34", bold=True)
    figure.text(2, 162, "the bar is rho, which adds up", small=True)
    return figure


FIGURES = {
    "schema": schema, "plan": plan, "sketch": sketch, "release": release,
    "round": round_, "score": score, "reasons": reasons, "budget": budget,
}  # fmt: skip


def main() -> None:
    """Write all figures."""
    HERE.mkdir(exist_ok=True)
    for name, draw in FIGURES.items():
        (HERE / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
