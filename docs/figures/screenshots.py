"""Take the pictures of the docs that show a page: the reports, light and dark, and the social card.

    python docs/figures/screenshots.py        writes docs/figures/*.png and docs/_static/card.png

Needs Chromium. The report is that of the orders of docs/tutorials/one-table.md.
"""

import io
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from chromium import Chromium, found  # noqa: E402 (its folder is on the path only now)

CARD = """<!doctype html><html lang="en"><title>hushtable</title><style>
body {{ align-items: center; background: #14181d; color: #e8ecf0; display: flex; gap: 80px;
  font-family: system-ui, "Noto Sans", sans-serif; height: 640px; margin: 0; padding: 0 100px;
  box-sizing: border-box; width: 1280px; }}
svg {{ flex: none; width: 320px; }}
h1 {{ font-size: 104px; line-height: 1; margin: 0 0 32px; }}
p {{ color: #a9b4bf; font-size: 40px; line-height: 1.35; margin: 0; }}
</style>{mark}<div><h1>hushtable</h1>
<p>Find outliers together,<br>and pool no row.</p></div></html>"""


def report(folder: Path) -> Path:
    """Write the report of the orders, with ids and values."""
    page = (ROOT / "docs/tutorials/one-table.md").read_text("utf-8")
    orders = next(b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "orders.csv" in b)
    subprocess.run([sys.executable, "-c", orders], cwd=folder, check=True)
    for line in (
        "fit orders.csv --drop order --seed 0 -o model.hush",
        "report model.hush orders.csv --drop order --rows 5 --id order --values -o orders.html",
    ):
        command = [sys.executable, "-m", "hushtable.cli", *line.split()]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "orders.html"


def save(png: bytes, path: Path) -> None:
    """Write a picture with the colours that it needs, in a third of the bytes."""
    Image.open(io.BytesIO(png)).convert("RGB").quantize(128).save(path, optimize=True)


def main() -> None:
    """Take all pictures."""
    if found() is None:
        sys.exit("no Chromium here: apt-get install chromium")
    with TemporaryDirectory() as name, Chromium(Path(name) / "profile") as browser:
        folder = Path(name)
        orders = report(folder)
        for dark in (False, True):
            kind = "-dark" if dark else ""
            browser.show(orders, 985, dark=dark)
            save(browser.picture(height=940), HERE / f"report{kind}.png")
            browser.show(orders, 390, dark=dark)
            of_row = browser.picture("#row-2", margin=8)
            save(of_row, HERE / f"report-row{kind}.png")
        card = folder / "card.html"
        mark = (ROOT / "docs" / "_static" / "logo-dark.svg").read_text("utf-8")
        card.write_text(CARD.format(mark=mark), encoding="utf-8")
        browser.show(card, 1280, height=640)
        save(browser.picture(height=640), ROOT / "docs" / "_static" / "card.png")


if __name__ == "__main__":
    main()
