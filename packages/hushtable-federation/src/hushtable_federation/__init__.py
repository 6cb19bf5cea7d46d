"""Rounds of several organisations, secure sums, and the site's book.

`Site` and `Coordinator` are the main entry points; the other public names are their parts. All load
on first use. Tests are in this package, in ``tests/hardening`` (attacks and fuzzing), and in
a separate folder for NVFlare; examples for Flower and vantage6 are beside the package.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports, removed

if TYPE_CHECKING:
    from hushtable_federation.book import Book
    from hushtable_federation.comparison import Comparison
    from hushtable_federation.coordinator import Coordinator
    from hushtable_federation.home import HomeModel
    from hushtable_federation.keys import Card, Keys
    from hushtable_federation.online.secure_sum import SecureSum
    from hushtable_federation.online.site import OnlineSite
    from hushtable_federation.policy import Approval, Policy, load_policy
    from hushtable_federation.reply import Reply
    from hushtable_federation.result import Collection, Result
    from hushtable_federation.round import Round
    from hushtable_federation.settings import SiteSettings
    from hushtable_federation.site import Site
    from hushtable_federation.submission import Submission
    from hushtable_federation.terms import Terms

_HOMES = {
    "Approval": "policy", "Book": "book", "Card": "keys", "Collection": "result",
    "Comparison": "comparison", "Coordinator": "coordinator", "HomeModel": "home", "Keys": "keys",
    "OnlineSite": "online.site", "Policy": "policy",
    "Reply": "reply", "Result": "result", "Round": "round", "SecureSum": "online.secure_sum",
    "Site": "site", "SiteSettings": "settings", "Submission": "submission", "Terms": "terms",
    "load_policy": "policy",
}  # fmt: skip
__all__ = [
    "Approval",
    "Book",
    "Card",
    "Collection",
    "Comparison",
    "Coordinator",
    "HomeModel",
    "Keys",
    "OnlineSite",
    "Policy",
    "Reply",
    "Result",
    "Round",
    "SecureSum",
    "Site",
    "SiteSettings",
    "Submission",
    "Terms",
    "load_policy",
]  # fmt: skip

__getattr__, __dir__ = exports(__name__, _HOMES)
removed(
    {
        "hushtable_federation.flower": "it is hushtable_flower, which pip installs from the folder "
        "examples/flower of the source distribution of hushtable-federation",
        "hushtable_federation.plots": (
            "HomeModel.scores(X) holds the numbers (share_here, beyond, kinds); three lines of "
            "matplotlib draw them: docs/project/coming-from-rc1.md"
        ),
    }
)
