"""Gaps between scores in words: how much more company a typical row has than an odd one."""

from hushtable.scores.scorer import Scorer

#: Below how many times as much, and how to say it. All is rounded down.
_WORDS = (
    (1.1, "about as much"),
    (1.25, "at least a tenth more"),
    (1.5, "at least a quarter more"),
    (2.0, "at least half again as much"),
    (3.0, "at least twice as much"),
)
_COUNTED = ("three", "four", "five", "six", "seven", "eight", "nine")


def tells_company(scorer: Scorer) -> bool:
    """Whether a gap between two scores says how much more company the higher one has.

    A score is then the mean of the logarithms of a row's counts, exact ones. ACE's scores are no
    logarithms; those of a second pass add two up; and of counts with noise the small ones, which
    are what matters here, say little one by one.
    """
    plan = scorer.plan
    logarithm = plan.score.unit == "bits" and plan.first_counts is None
    return logarithm and scorer.sketch.noise_sd == 0.0


def company_words(bits: float) -> str:
    """Return how much company a typical row has beside one that scores ``bits`` lower.

    Company is the number of rows in a row's cells. Smoothing, which adds the same to every count,
    makes gaps smaller than those of the counts, so that "at least" holds.
    """
    times = 2.0 ** min(bits, 60.0)
    for below, words in _WORDS:
        if times < below:
            return f"{words} company"
    whole = int(times)
    counted = _COUNTED[whole - 3] if whole < 10 else f"{whole:,}"
    return f"at least {counted} times as much company"
