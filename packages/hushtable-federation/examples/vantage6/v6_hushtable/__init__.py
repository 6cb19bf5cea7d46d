"""What a vantage6 node can be asked to run: these two names. The rest is in hushtable_vantage6.

A caller reaches every name of this module: so there are no others.
"""

from hushtable_vantage6 import answer as partial
from hushtable_vantage6 import coordinate
from vantage6.algorithm.tools.decorators import algorithm_client

central = algorithm_client(coordinate)
del algorithm_client, coordinate

__all__ = ["central", "partial"]
