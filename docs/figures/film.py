"""Make the film and the pictures of the desk from what a test sees in a browser.

    python docs/figures/film.py        writes docs/figures/desk.gif and docs/figures/desk-*.png

A test takes the desk from a messy file to twenty judged rows, and keeps a picture of each step.
Needs Chromium.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

HERE = Path(__file__).parent
TEST = HERE.parents[1] / "packages" / "hushtable-desk" / "tests" / "test_desk_in_browser.py"
SIZE = (1280, 860)
#: Milliseconds that a step stays; a verdict takes less. The film ends, so that nothing moves for
#: longer than a reader looks.
STEP, VERDICT, END = 2200, 550, 4000


def frame(path: Path) -> Image.Image:
    """Return a picture on white paper of the film's size."""
    picture = Image.open(path).convert("RGB")
    paper = Image.new("RGB", SIZE, "white")
    paper.paste(picture.crop((0, 0, *SIZE)) if picture.height > SIZE[1] else picture)
    return paper.resize((896, 602), Image.Resampling.LANCZOS)


def main() -> None:
    """Take the pictures, and join them."""
    with TemporaryDirectory() as name:
        taken = Path(name)
        command = [sys.executable, "-m", "pytest", "-q", "-n0", str(TEST), "-k", "messy_file"]
        subprocess.run(command, check=True, env=os.environ | {"HUSHTABLE_DESK_PICTURES": name})
        for picture in sorted(taken.glob("desk-*.png")):
            reduced = Image.open(picture).convert("RGB").quantize(128)
            reduced.save(HERE / picture.name, optimize=True)
        verdicts = sorted(taken.glob("film-*.png"))[:12]
        # The first frame is what a page shows before anything moves.
        names = ("desk-rows", "desk-folder", "desk-table", "desk-rows")
        scenes = [(taken / f"{one}.png", STEP) for one in names]
        scenes += [(path, VERDICT) for path in verdicts]
        scenes += [(taken / f"{one}.png", STEP) for one in ("desk-judged", "desk-learned")]
        palette = frame(taken / "desk-rows.png").quantize(96)
        still = Image.Dither.NONE  # one palette, so that a frame holds what changed alone
        frames = [frame(path).quantize(palette=palette, dither=still) for path, _ in scenes]
        times = [time for _, time in scenes[:-1]] + [END]
        # Without a loop it plays once, and rests on the last frame.
        frames[0].save(
            HERE / "desk.gif",
            save_all=True,
            append_images=frames[1:],
            duration=times,
            optimize=True,
        )


if __name__ == "__main__":
    main()
