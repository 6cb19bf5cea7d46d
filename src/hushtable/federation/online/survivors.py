"""Step ``survivors``: each site signs who is in the sum, once; nobody signs two lists."""

from collections.abc import Collection

from hushtable.federation.online.state import Kept, SiteState
from hushtable.federation.refusals import Refusal, Refused


def answer(site: SiteState, body: Kept) -> tuple[bytes, Kept]:
    """Sign who is in the sum; of these, nobody's pairwise masks will be given away."""
    names = body.get("sites")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused(Refusal.REQUEST, "step 'survivors': the request is not of its form")
    site.check_enough(names, site.kept("masked")["shares"])
    said = {"sites": sorted(names)}
    return site.sign("survivors", said), said


def requests(masked: Collection[str]) -> dict[str, Kept]:
    """Show everybody who is in the sum."""
    return {name: {"sites": sorted(masked)} for name in sorted(masked)}
