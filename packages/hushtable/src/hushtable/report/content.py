"""Gather the facts of a report from a file of counts, and from what goes with it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from importlib.metadata import version
from operator import add

import numpy as np

from hushtable.counts.base import Counts
from hushtable.describe import describe_ledger
from hushtable.describe.ledger import ledger_lines, ledger_rows
from hushtable.describe.plan import (
    dependence,
    listed,
    n_tables,
    values_of_rows,
    verdicts,
)
from hushtable.errors import RoundError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.plots import NoiseDisplay
from hushtable.privacy.accounting import rounded_up
from hushtable.report.features import Features, Histogram, features_of, histograms
from hushtable.report.rows import Scores


@dataclass(frozen=True)
class ReportedSite:
    """One of the sites, and whether what it sent is there."""

    name: str  # of the site, or of its file
    standing: str  # whether what it sent is in the sum
    rows: int | None  # that it counted; None where that cannot be seen
    fingerprint: str = ""  # of its keys, in a round


@dataclass(frozen=True)
class Check:
    """Something that was looked at, and whether it holds."""

    holds: bool
    words: str


@dataclass(frozen=True)
class Sites:
    """The sites behind a sum."""

    sites: Sequence[ReportedSite]  # all that were asked
    exact: bool  # whether their rows are exact counts; otherwise estimates from noised ones
    checks: Sequence[Check]  # of the sum
    terms: Mapping[str, str]  # of the round, if there was one
    asked: Sequence[str] = ()  # of each site by the round, in sentences that an officer signs
    refused: Sequence[tuple[str, str]] = ()  # files that do not count, and why
    repeated: Sequence[tuple[str, str]] = ()  # files that came again, and of which site

    @property
    def n_in(self) -> int:
        """Number of sites in the sum."""
        return sum(site.standing == "in" for site in self.sites)

    @property
    def missing(self) -> list[str]:
        """Names of the sites that are not in the sum."""
        return [site.name for site in self.sites if site.standing != "in"]

    @property
    def hidden(self) -> bool:
        """Whether the rows of some sites cannot be seen."""
        return any(site.standing == "in" and site.rows is None for site in self.sites)

    @property
    def headers(self) -> list[str]:
        """Of `table_rows`: numbers in the last column, unless they are hidden."""
        rows = "rows" if self.exact else "rows, estimated"
        fingerprint = ["fingerprint"] if self.terms else []
        return ["site", "part", *fingerprint, *([] if self.hidden else [rows])]

    @property
    def text_columns(self) -> int:
        """Number of columns that hold text; numbers follow."""
        return len(self.headers) - (not self.hidden)

    @property
    def table_rows(self) -> list[list[str]]:
        """A table row for each site."""
        table = []
        for site in self.sites:
            row = [site.name, site.standing]
            if self.terms:
                row.append(site.fingerprint)
            if not self.hidden:
                row.append("" if site.rows is None else f"{site.rows:,}")
            table.append(row)
        return table


def same_sum(equal: bool, name: str, what: str) -> Check:
    """Return the check whether what was sent adds up to a file."""
    if equal:
        return Check(True, f"The sum of the {what} is {name}, to the bit.")
    return Check(False, f"The sum of the {what} is not {name}: it was made of others.")


def sites_of_parts(parts: Mapping[str, Counts], total: Counts, name: str) -> Sites:
    """Return the sites whose sketches or releases, by name, were merged, and check their sum.

    ``name`` is that of the sum.
    """
    if not parts:
        raise RoundError("no parts were given: name what the sites sent")
    if any(part.kind != total.kind for part in parts.values()):
        raise UsageError(
            f"{name} and its parts are not of one kind: sketches add to a sketch, releases to a "
            "release"
        )
    again = reduce(add, parts.values())
    rows = [ReportedSite(part, "in", counted.n_rows) for part, counted in parts.items()]
    equal = again.plan_id == total.plan_id and np.array_equal(again.counts, total.counts)
    checks = [same_sum(bool(equal), name, "parts")]
    return Sites(rows, total.ledger is None, checks, {})


@dataclass(frozen=True)
class Subject:
    """A file that a report is about, or counts by themselves."""

    name: str
    kind: str  # sketch, release, local, detector or sealed
    counts: Counts
    size: str = ""  # of the file, for people; empty if there is none

    @property
    def plan(self) -> Plan | None:
        """The plan that was counted under; None where the hash functions are hidden."""
        return None if self.counts.hidden else self.counts.plan


@dataclass(frozen=True)
class Privacy:
    """The section for a privacy officer."""

    words: list[str]  # the ledger in sentences that somebody can sign
    lines: dict[str, str]  # what the ledger adds up to
    releases: list[list[str]]  # what it counts, under `LEDGER_HEADERS`
    left: list[str]  # what left the site
    stayed: list[str]  # what did not
    noise: NoiseDisplay  # the counts beside their noise
    decoded: bool = False  # whether the counts were decoded from those of several periods

    @property
    def noise_words(self) -> str:
        """The figure of the counts and their noise, in words."""
        counts = self.noise.counts
        which = "decoded from what left" if self.decoded else "that left"
        return (
            f"The {len(counts):,} counts {which}, from the largest, {int(counts[0]):,}, to the "
            f"smallest, {int(counts[-1]):,}. The band is twice the noise, whose standard "
            f"deviation is {self.noise.noise_sd:,.4g}: {self.noise.standing_out:.1%} of the counts "
            "are above it, and if all cells were empty 2.3% would be."
        )


@dataclass(frozen=True)
class Report:
    """Everything that the page shows; a section is None where it does not apply."""

    model: Subject
    title: str
    made: str  # when
    version: str  # by which version
    about: dict[str, str]  # what the file holds
    reasons_to_stay: list[str]  # why the report must not leave the site; empty if it may
    scores: Scores | None
    features: Features | None
    histograms: list[Histogram]  # of the first features, from marginals
    shown: bool  # whether ranges and categories are shown
    privacy: Privacy | None
    sites: Sites | None
    left_out: list[str]  # what the report has no section about, and why

    @property
    def sections(self) -> list[str]:
        """Names of the sections that it has."""
        return [one for one in ("scores", "features", "privacy", "sites") if getattr(self, one)]

    @property
    def glance(self) -> dict[str, str]:
        """The few numbers that matter first."""
        ledger, scores, sites = self.model.counts.ledger, self.scores, self.sites
        counted = "rows counted" if ledger is None else "rows counted, estimated"
        # A second pass leaves out rows that lie apart: the first counted all.
        first = 0 if self.model.plan is None else self.model.plan.first_rows
        glance = {counted: f"{first or self.model.counts.n_rows:,}"}
        if scores is not None:
            glance["rows scored"] = f"{scores.n_rows:,}"
            if scores.n_outliers is not None:
                share = scores.n_outliers / scores.n_rows
                glance[f"outliers, {share:.2%} of the rows scored"] = f"{scores.n_outliers:,}"
        if ledger is not None:
            at = f" (delta {rounded_up(ledger.delta):g})" if ledger.delta else ""
            glance[f"epsilon in all, for one person{at}"] = str(rounded_up(ledger.epsilon))
        if sites is not None:
            glance["sites in"] = f"{sites.n_in} of {len(sites.sites)}"
        return glance


def gather(
    model: Subject,
    *,
    title: str | None = None,
    threshold: float | None = None,
    scores: Scores | None = None,
    sites: Sites | None = None,
    values: bool = False,
) -> Report:
    """Gather the facts about a model, and about rows and sites where they are known.

    The page is by default titled by the model's name. The threshold is the model's: NaN if its
    noise leaves none, None if it does not score. ``values`` also shows ranges and categories that
    were read off rows; public ones always are.
    """
    plan, counts = model.plan, model.counts
    of_rows = "" if plan is None else values_of_rows(plan.schema)
    shown = values or not of_rows
    marginals = counts.adds and counts.plan.purpose is Purpose.MARGINALS
    return Report(
        model=model,
        title=model.name if title is None else title,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=version("hushtable"),
        about=_about(model, threshold),
        reasons_to_stay=_reasons_to_stay(model, scores, sites, of_rows if shown else ""),
        scores=scores,
        features=None if plan is None else features_of(counts, scores, shown),
        histograms=histograms(counts, shown) if marginals else [],
        shown=shown,
        privacy=_privacy(model),
        sites=sites,
        left_out=_no_values(scores, of_rows, shown) + _left_out(model, threshold, scores, sites),
    )


def _no_values(scores: Scores | None, of_rows: str, shown: bool) -> list[str]:
    """Say which values of rows are not in the report."""
    lowest = None if scores is None else scores.lowest
    shows = ["the categories and ranges of its features"] if of_rows and shown else []
    if lowest is not None and lowest.shows:
        shows.append(f"{listed(lowest.shows)} of the rows that it names")
    beyond = f" beyond {listed(shows)}" if shows else ""
    number = "" if lowest is not None else ", and no row's number"
    words = [f"No value of any row{beyond}{number}."]
    if not shown:
        words.append(
            "Ranges and categories: they were read off rows, and are values of theirs (--values "
            "shows them)."
        )
    return words


def _about(model: Subject, threshold: float | None) -> dict[str, str]:
    counts, plan = model.counts, model.plan
    estimated = "" if counts.ledger is None else ", estimated from counts with noise"
    lines = {"File": f"{model.name} ({model.size})"} if model.size else {}
    passes = (
        f" in the second pass, {plan.first_rows:,} in the first" if plan and plan.first_rows else ""
    )
    lines |= {
        "Kind": model.kind,
        "Rows counted": f"{counts.n_rows:,}{passes}{estimated}"
        + (" in each table, a random sample" if counts.sampled else ""),
        "Detector": counts.detector,
        "Plan": counts.plan_id,
    }
    if told := verdicts(counts):
        lines["Verdicts"] = told
    if plan is not None:
        lines["Depends on data"] = dependence(plan)
    lines["Counts"] = f"{len(counts.counts):,} cells in {n_tables(counts.n_tables)}"
    if threshold is not None and plan is not None:
        lines["Threshold"] = (
            "none: the counts are too noisy to derive one"
            if math.isnan(threshold)
            else f"{threshold:.4g} {plan.score.unit}: rows below are outliers"
        )
    return lines


def _reasons_to_stay(
    model: Subject, scores: Scores | None, sites: Sites | None, of_rows: str
) -> list[str]:
    reasons = [f"It shows values of rows: {of_rows}."] if of_rows else []
    if scores is not None:
        covered = "" if model.counts.ledger is None else ", and the release's privacy does not"
        reasons.append(
            f"It holds exact sums over {scores.n_rows:,} rows (scores, missing and outside "
            f"values){covered and covered + ' cover them'}."
        )
        if scores.lowest is not None:
            why = " and the features that lower them" if scores.lowest.reasons else ""
            reasons.append(f"It names single rows by number, with their scores{why}.")
            if shows := scores.lowest.shows:
                reasons.append(f"It shows values of these rows: {listed(shows)}.")
            if scores.lowest.values:
                reasons.append("It shows how the values of single columns are distributed.")
    if not model.counts.may_leave:
        reasons.append(f"It was made from exact counts: {model.name} must not leave either.")
    elif model.kind == "detector":
        reasons.append(f"The threshold of {model.name} may come from rows of the site.")
    if sites is not None and sites.exact:
        reasons.append("It shows how many rows each site has, exactly.")
    return reasons


def _privacy(model: Subject) -> Privacy | None:
    counts, ledger = model.counts, model.counts.ledger
    if ledger is None:
        return None
    return Privacy(
        words=describe_ledger(ledger),
        lines=ledger_lines(ledger, counts.noise_sd) | {"Rows, estimated": f"{counts.n_rows:,}"},
        releases=ledger_rows(ledger),
        left=_left(model),
        stayed=_STAYED,
        noise=NoiseDisplay(counts.counts, counts.noise_sd),
        decoded=ledger.window is not None,
    )


_STAYED = [
    "The rows, their values and their number (a reader sees an estimate, with noise).",
    "Exact counts.",
    "How many values were missing, or outside the plan.",
    "Scores, outliers and thresholds.",
    "The noise by itself: it came from the system's random generator, and no seed exists.",
]


def _left(model: Subject) -> list[str]:
    """Say what the sites sent, as the ledger shows it."""
    ledger, counts = model.counts.ledger, model.counts
    assert ledger is not None
    k = len(ledger.shares)
    cells = f"{len(counts.counts):,} whole numbers in {n_tables(counts.n_tables)}"
    when = "" if ledger.period is None else f", in each of {ledger.period} periods"
    mixed = "" if ledger.period is None else ", mixed from its periods so far"
    own = sum(ledger.pool_of(share) is None for share in ledger.shares)
    left = []
    if ledger.pools:
        sites, of = f"From each of {k - own} sites", "of all"
        if len(ledger.pools) > 1 or own:
            rounds = "1 masked round" if len(ledger.pools) == 1 else "the masked rounds"
            sites, of = f"{sites} of {rounds}", "of its round"
        left.append(
            f"{sites}{when}: {cells}{mixed}, with a part of the noise, under masks that cancel "
            f"only in the sum {of}."
        )
    if own:
        sites = "From the site" if k == 1 else f"From each of {own} sites"
        left.append(f"{sites}{when}: {cells}{mixed}, each with noise of its own.")
    left.append("What the ledger below says, with random ids of the releases.")
    if counts.hidden:
        left.append("No hash function: anyone who adds up sees the sizes of the tables only.")
    else:
        left.append(
            "The plan: names of the features, their public ranges and categories, hash functions."
        )
    return left


def _why_no_scores(model: Subject, threshold: float | None) -> str:
    if model.counts.hidden:
        return "the hash functions are hidden from those who added up"
    if threshold is None:
        return f"a {model.counts.detector} plan counts features one by one, and scores no row"
    return "no rows were given (hushtable report MODEL DATA)"


def _left_out(
    model: Subject, threshold: float | None, scores: Scores | None, sites: Sites | None
) -> list[str]:
    left_out = []
    if scores is None:
        left_out.append(f"Scores, outliers and drift: {_why_no_scores(model, threshold)}.")
    elif scores.drift is None:
        left_out.append(f"Drift: {scores.no_drift}.")
    elif not scores.drift.features:
        left_out.append("Drift by feature: the tables of this plan do not separate the features.")
    if scores is not None and scores.lowest is None:
        left_out.append("Single rows: nobody asked for them (--rows).")
    elif scores is not None and scores.lowest is not None and not scores.lowest.reasons:
        left_out.append(f"Reasons for the lowest scores: {scores.lowest.no_reasons}.")
    if model.plan is None:
        left_out.append("Features: the plan is hidden from those who added up.")
    if model.counts.ledger is None:
        left_out.append(
            "Privacy: the counts are exact, have no ledger and must not leave; hushtable release "
            "makes of a sketch what may."
        )
    if sites is None:
        left_out.append("Sites: nobody said what was added up (--parts, with --round in a round).")
    return left_out
