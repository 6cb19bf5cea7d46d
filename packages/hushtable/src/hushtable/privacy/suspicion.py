"""From epsilon and delta to what an observer's suspicion about one person can become."""

import math
from statistics import NormalDist

from hushtable.errors import UsageError
from hushtable.privacy.budget import check_delta, check_epsilon
from hushtable.privacy.gaussian import rho_bound


def suspicion(before: float, epsilon: float, delta: float = 0.0) -> float:
    """Return what a suspicion about one person becomes at most, except with probability delta.

    The suspicion is that the person's record is among the rows; seeing the release makes it
    stronger. (epsilon, delta) bounds probabilities by a factor e^epsilon, *plus* delta. It does
    not say that the odds rise by e^epsilon at most except with probability delta: under Gaussian
    noise of exactly this cost, they rise by more with a probability of 20 delta at epsilon 1.
    Under such noise the logarithm of the factor is normal, of mean mu^2 / 2 and variance mu^2;
    the factor that is not exceeded except with probability delta is read off it.

    Parameters
    ----------
    before : float
        The suspicion before the release, a probability in (0, 1).
    epsilon : float
        Total epsilon of the release, which has Gaussian noise if delta is above 0.
    delta : float, default=0.0
        Its delta. With 0, the odds rise by e^epsilon at most, without exception.

    Returns
    -------
    float
        The suspicion after the release, a probability.

    Raises
    ------
    UsageError
        If ``before`` is no probability between 0 and 1.
    PrivacyError
        If no noise can have this epsilon and delta.

    Examples
    --------
    >>> from hushtable.privacy import suspicion
    >>> f"{suspicion(0.5, epsilon=1.0, delta=1e-6):.1%}"
    '76.0%'
    """
    if not 0.0 < before < 1.0:
        raise UsageError(f"before={before}: needs a probability above 0 and below 1, such as 0.5")
    factor = check_epsilon(epsilon)
    if delta:
        mu = math.sqrt(2.0 * rho_bound(factor, 0.0, check_delta(delta)))
        factor = 0.5 * mu**2 - mu * NormalDist().inv_cdf(delta)
    return before / (before + (1.0 - before) * math.exp(-factor))
