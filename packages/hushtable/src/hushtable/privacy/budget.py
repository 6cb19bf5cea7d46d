"""From a budget to a scale of noise: which budgets protect, and the noise that one buys."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hushtable.errors import PrivacyError, UsageError
from hushtable.privacy.composition import Spent
from hushtable.privacy.gaussian import rho_bound
from hushtable.privacy.mechanisms import DEFAULT, MAX_SCALE, Cost, Mechanism, Sensitivity, named
from hushtable.privacy.rounding import rounded_up
from hushtable.privacy.zcdp import epsilon_from_rho, rho_from_epsilon

__all__ = ["Cost", "Sensitivity", "Spent", "epsilon_from_rho", "rho_from_epsilon"]

#: Above it, a guarantee says nothing: e^20 is half a thousand million.
MAX_EPSILON = 20.0
#: Delta at most where no public number of rows sets the bound.
MAX_DELTA = 1e-5

_NOTHING = Cost(0.0, 0.0, 0.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_epsilon(epsilon: Any) -> float:
    """Return epsilon if it is one that protects; raises `PrivacyError` otherwise."""
    if not _is_number(epsilon):
        raise PrivacyError(f"epsilon={epsilon!r}: needs a number above 0, such as 1.0")
    if not 0.0 < epsilon <= MAX_EPSILON:
        raise PrivacyError(
            f"epsilon={epsilon}: needs a number above 0 and at most {MAX_EPSILON:g} (0.1 to 1 is "
            "strong protection; beyond, a factor of e^epsilon protects nobody)"
        )
    return float(epsilon)


def check_delta(delta: Any) -> float:
    """Return delta if it is a probability in (0, 1); raises `PrivacyError` otherwise."""
    if not _is_number(delta):
        raise PrivacyError(f"delta={delta!r}: needs a number above 0, such as 1e-6")
    if not 0.0 < delta < 1.0:
        raise PrivacyError(f"delta={delta}: needs a probability above 0 and below 1, such as 1e-6")
    return float(delta)


def check_public_delta(delta: Any, expected_rows: int | None) -> float:
    """Return delta if it is small enough by public numbers; raises `PrivacyError` otherwise.

    A delta above 1/n allows to publish a row as it is. The n is never that of the rows counted:
    neighbouring data differ in it, and a refusal would separate them. It is the public guess that
    the plan was laid out for; where that is None, `MAX_DELTA` is the bound.
    """
    number = check_delta(delta)
    if expected_rows is None:
        if number > MAX_DELTA:
            raise PrivacyError(
                f"delta={number:g} is above {MAX_DELTA:g}, the most under a plan that was laid out "
                "for no number of rows: give a smaller one, such as 1e-6, or draw the plan with "
                "epsilon and expected_rows"
            )
    elif number * expected_rows > 1.0:
        raise PrivacyError(
            f"delta={number:g} is above 1/n for the {expected_rows:,} rows expected: with it, "
            "publishing some row as it is would count as private; needs a smaller one, such as "
            "1e-6 or below"
        )
    return number


def check_share(share: Any) -> float | None:
    """Return a share of a budget, None for all that is left; raises `UsageError` otherwise."""
    if share is None:
        return None
    if not _is_number(share) or not 0.0 < share <= 1.0:
        raise UsageError(f"share={share!r}: needs a share of the budget above 0 and at most 1")
    return float(share)


def check_pure(cost: Cost, delta: float) -> None:
    """Raise `PrivacyError` if a delta of 0 is claimed where some noise needs one."""
    if delta == 0.0 and math.isinf(cost.pure):
        raise PrivacyError(
            "a pure epsilon cannot follow a release with Gaussian noise, which has a delta: use "
            f"mechanism={DEFAULT!r}"
        )


def calibrated_scale(
    mechanism: str,
    sensitivity: Sensitivity,
    *,
    epsilon: float,
    delta: float = 0.0,
    before: Cost = _NOTHING,
    share: float | None = None,
) -> float:
    """Return the scale, rounded up to six digits, for a total of at most (epsilon, delta).

    The total is over this release and what came ``before`` on the same rows; delta is 0 for
    Laplace noise. ``share``, in (0, 1], is that of the total which this release may cost; None is
    all that is left. Raises `PrivacyError` if the budget is exhausted, or so small that no noise
    is large enough.
    """
    noise = named(mechanism)
    if (fixed := noise.fixed_scale(epsilon)) is not None:
        return fixed
    wanted = _wanted(noise, sensitivity, epsilon, delta, before, share)
    exact = noise.scale(sensitivity, wanted) if wanted > 0.0 else math.inf
    if exact <= MAX_SCALE:
        scale = _least_scale(
            lambda scale: (before + noise.cost(sensitivity, scale)).epsilon(delta) <= epsilon,
            _rounded_up(exact),
        )
        if scale <= MAX_SCALE:
            return scale
    raise PrivacyError(
        f"epsilon={epsilon:g}"
        + (f" with share={share:g}" if share else "")
        + f" and rows_per_person={sensitivity.rows_per_person} needs noise beyond 2^40 on every "
        "count, and nothing would be seen through it: raise epsilon"
    )


def _wanted(
    noise: Mechanism,
    sensitivity: Sensitivity,
    epsilon: float,
    delta: float,
    before: Cost,
    share: float | None,
) -> float:
    """Return what a release may cost, in its currency; raises `PrivacyError` if nothing is left."""
    check_pure(before, delta)
    total, most = _budget(noise, sensitivity, epsilon, delta, before)
    spent = noise.spent(before)
    left = total - spent
    wanted = left if share is None else share * most
    # What is left by the rounding of scales is nothing to release with, and what they exceed a
    # share by nothing to refuse over: the loop in `calibrated_scale` has the last word.
    rounding = 1e-4 * total
    if spent > 0.0 and (left <= rounding or wanted > left + rounding + max(0.0, most - total)):
        at = "" if noise.pure else f" (delta={delta:g})"
        this = f", and this one is to cost {share:.1%} of the budget" if share else ""
        raise PrivacyError(
            f"the budget of epsilon={epsilon:g}{at} is exhausted: earlier releases on these rows "
            f"come to epsilon {rounded_up(before.epsilon(delta)):g}{this}: raise epsilon, or "
            "release nothing more about these rows"
        )
    return min(wanted, left)


def _budget(
    noise: Mechanism, sensitivity: Sensitivity, epsilon: float, delta: float, before: Cost
) -> tuple[float, float]:
    """Return what all may cost after what came before, and what if nothing had been spent.

    They differ where earlier Gaussian noise, being discrete, costs more than its rho.
    """
    if noise.pure:
        return epsilon, epsilon
    by_zcdp, most = rho_from_epsilon(epsilon, delta), rho_bound(epsilon, 0.0, delta)
    if not noise.gaussian or math.isinf(before.spread):
        return by_zcdp, by_zcdp
    # Where the whole would be too coarse to be Gaussian, later shares may have to go by zCDP.
    coarse = most > 0.0 and math.isinf(sensitivity.gaussian_cost(most).spread)
    return rho_bound(epsilon, before.spread, delta), by_zcdp if coarse else most


def _least_scale(fits: Callable[[float], bool], scale: float) -> float:
    """Return the least scale that fits from this one on, rounded up to six digits; or one beyond.

    A scale that is a rounding error too small needs one step; where noise that is discrete costs
    more than its rho, a bisection comes near.
    """
    if not fits(scale) and not fits(_rounded_up(scale * (1.0 + 1e-6))):
        low, high = scale, 2.0 * scale
        while not fits(high) and high <= MAX_SCALE:
            low, high = high, 2.0 * high
        while high > low * (1.0 + 1e-7):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        scale = _rounded_up(high)
    while not fits(scale) and scale <= MAX_SCALE:
        scale = _rounded_up(scale * (1.0 + 1e-6))
    return scale


def part_scale(scale: float, parts: int) -> float:
    """Return the scale of the noise of one of several sites that share a noise.

    ``scale`` is that of the Gaussian noise that the bound needs, which counts on so many parts.
    It is at least 2: only from there on is a sum of discrete Gaussians, to all digits that count,
    a discrete Gaussian.
    """
    return max(2.0, _rounded_up(scale / math.sqrt(parts)))


def _rounded_up(x: float) -> float:
    """Round up to six significant digits."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 5)
    return float(f"{math.ceil(x / unit) * unit:.6g}")
