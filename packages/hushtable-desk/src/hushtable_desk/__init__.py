"""The desk: unusual rows in a browser on this machine, with their reasons, to be judged.

`hushtable desk` starts it. On the public API of the other packages; they know nothing of it.
"""

__all__ = ["Desk", "build_app"]

from hushtable_desk.app import build_app
from hushtable_desk.desk import Desk
