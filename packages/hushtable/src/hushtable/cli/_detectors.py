"""The choices of ``--detector``: the registered draws, as the command line spells them."""

from enum import StrEnum
from typing import TYPE_CHECKING

from hushtable.plans.draws import detectors


class _Spelled(StrEnum):
    @property
    def draw(self) -> str:
        """The detector's name in plans."""
        return self.value.replace("-", "_")


if TYPE_CHECKING:
    Detector = _Spelled
else:
    Detector = _Spelled("Detector", [(n.upper(), n.replace("_", "-")) for n in detectors()])

HUSHTABLE = Detector("hushtable")
