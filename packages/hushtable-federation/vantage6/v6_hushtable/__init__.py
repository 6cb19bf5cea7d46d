"""What a vantage6 node can be asked to run: these two names. The rest is the installed hushtable.

A caller reaches every name of this module: so there are no others.
"""

from vantage6.algorithm.tools.decorators import algorithm_client

from hushtable_federation.vantage6 import answer as partial
from hushtable_federation.vantage6 import coordinate

central = algorithm_client(coordinate)
del algorithm_client, coordinate

__all__ = ["central", "partial"]
