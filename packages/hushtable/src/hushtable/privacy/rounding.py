"""Rounding of costs that people read and sign: always up."""

from decimal import ROUND_CEILING, Context

#: What adding up in floating point can make of a cost; caps allow for as much.
_FLOATING = 1e-9


def rounded_up(number: float, digits: int = 3) -> float:
    """Round a cost up to significant digits: what is signed must not be less than what is true.

    A billionth above a rounded number counts as that number: 1 that was added up from parts.
    Every epsilon, delta, rho and share of a cap that is printed goes through here.
    """
    exact = Context(digits, ROUND_CEILING)
    return float(exact.create_decimal(repr(number * (1.0 - _FLOATING))))
