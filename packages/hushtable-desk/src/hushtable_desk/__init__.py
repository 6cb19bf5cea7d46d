"""The desk: judge unusual rows, with their reasons, in a browser on this machine.

`hushtable desk` starts it. It uses the public API of the other packages, which do not depend on it.
Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_desk.app import build_app
    from hushtable_desk.desk import Desk
    from hushtable_desk.security import Access

__all__ = ["Access", "Desk", "build_app"]

#: As `hushtable.cli.app.COMMANDS`.
COMMANDS = """
desk            cli                Review unusual rows in a browser, and judge them.
"""

__getattr__, __dir__ = exports(__name__, {"Access": "security", "Desk": "desk", "build_app": "app"})
