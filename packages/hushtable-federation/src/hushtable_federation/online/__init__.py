"""Masked rounds over a transport, one file a step.

They are `hello`, `keys`, `shares`, `masked`, `survivors` and `unmask`, as in Bonawitz et al.,
*Practical Secure Aggregation for Privacy-Preserving Machine Learning* (2017), figure 4; each file
has both sides: ``answer``, at a site, and what the coordinator asks and checks. `site` and
`secure_sum` lead through the steps; a `transport` carries them, `memory` within one process. May
import all of `hushtable_federation` but `flower`, `nvflare` and `vantage6`. Tested by
``tests/test_online.py``, and by attacks.
"""

from hushtable_federation.online.site import OnlineSite

__all__ = ["OnlineSite"]
