"""One style for the figures of the gallery: a white card, which reads in the dark theme, too."""

from typing import Any

from cycler import cycler
from matplotlib import rcParams

#: Rows, flagged rows, and two more; the first two are those of _static/site.css and of the report.
COLOURS = ["#1f6fb2", "#c2410c", "#4d7c0f", "#6b7280"]


def reset(gallery_conf: dict[str, Any], example: str) -> None:
    """Set the style before each example; sphinx-gallery calls this."""
    rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.figsize": (7.0, 4.0),
            "figure.titlesize": 12,
            "font.size": 10,
            "image.cmap": "cividis",
            "legend.frameon": False,
            "savefig.dpi": 110,
        }
    )
