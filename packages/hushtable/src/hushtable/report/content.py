"""Gather the facts of a report from a file of counts, and from what goes with it."""

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
from hushtable.language import N_, _, numerals
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.plots import NoiseDisplay
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.ledger import Ledger
from hushtable.report.features import Features, Histogram, features_of, histograms
from hushtable.report.rows import Scores, threshold_words


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

    sites: Sequence[ReportedSite]  # all that the round asked
    exact: bool  # whether their rows are exact counts; otherwise estimates from noised ones
    checks: Sequence[Check]  # of the sum
    terms: Mapping[str, str]  # of the round, if there was one
    asked: Sequence[str] = ()  # what the round asks of a site, in sentences that an officer signs
    refused: Sequence[tuple[str, str]] = ()  # files that do not count, and why
    repeated: Sequence[tuple[str, str]] = ()  # files that came again, and whose they are

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
        rows = _("rows") if self.exact else _("rows, estimated")
        fingerprint = [_("fingerprint")] if self.terms else []
        return [_("site"), _("part"), *fingerprint, *([] if self.hidden else [rows])]

    @property
    def text_columns(self) -> int:
        """Number of columns that hold text; numbers follow."""
        return len(self.headers) - (not self.hidden)

    @property
    def table_rows(self) -> list[list[str]]:
        """A table row for each site."""
        table = []
        for site in self.sites:
            row = [site.name, _(site.standing)]
            if self.terms:
                row.append(site.fingerprint)
            if not self.hidden:
                row.append("" if site.rows is None else _counted(site.rows))
            table.append(row)
        return table


#: Kinds of files that a report is about.
KINDS = N_("sketch"), N_("release"), N_("local"), N_("detector")
#: Where what a site sent is.
STANDINGS = N_("in"), N_("missing"), N_("two different submissions")


def _counted(n: int) -> str:
    """Return a whole number as people write it."""
    return numerals(f"{n:,}")


def same_sum(equal: bool, name: str) -> Check:
    """Return the check whether the parts add up to a file."""
    if equal:
        return Check(True, _("The sum of the parts is exactly %(name)s.", name=name))
    return Check(
        False, _("The sum of the parts is not %(name)s, which has other parts.", name=name)
    )


def sites_of_parts(parts: Mapping[str, Counts], total: Counts, name: str) -> Sites:
    """Return the sites whose sketches or releases, by name, were merged, and check their sum.

    ``name`` is that of the sum.
    """
    if not parts:
        raise RoundError("no parts were given: name the files that the sites sent")
    if any(part.kind != total.kind for part in parts.values()):
        raise UsageError(
            f"{name} and its parts are of different kinds: sketches add up to a sketch, and "
            "releases to a release"
        )
    again = reduce(add, parts.values())
    rows = [ReportedSite(part, "in", counted.n_rows) for part, counted in parts.items()]
    equal = again.plan_id == total.plan_id and np.array_equal(again.counts, total.counts)
    checks = [same_sum(bool(equal), name)]
    return Sites(rows, total.ledger is None, checks, {})


@dataclass(frozen=True)
class Subject:
    """A file that a report is about, or counts by themselves."""

    name: str
    kind: str  # sketch, release, local or detector
    counts: Counts
    size: str = ""  # of the file, for people; empty if there is none

    @property
    def plan(self) -> Plan:
        """The plan that was counted under."""
        return self.counts.plan


@dataclass(frozen=True)
class Privacy:
    """The section for a privacy officer."""

    words: list[str]  # the ledger in sentences that an officer can sign
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
        values = {
            "n": _counted(len(counts)),
            "most": _counted(int(counts[0])),
            "least": _counted(int(counts[-1])),
            "sd": numerals(f"{self.noise.noise_sd:,.4g}"),
            "share": numerals(f"{100.0 * self.noise.standing_out:.1f}"),
        }
        if self.decoded:
            first = _(
                "The %(n)s counts decoded from the released files, from the largest (%(most)s) to "
                "the smallest (%(least)s).",
                **values,
            )
        else:
            first = _(
                "The %(n)s released counts, from the largest (%(most)s) to the smallest "
                "(%(least)s).",
                **values,
            )
        band = _(
            "The band is twice the standard deviation of the noise, which is %(sd)s: %(share)s%% "
            "of the counts are above it. If all cells were empty, 2.3%% would be.",
            **values,
        )
        return f"{first} {band}"


@dataclass(frozen=True)
class Report:
    """Everything that the page shows; a section is None where it does not apply."""

    model: Subject
    title: str
    made: str  # when
    version: str  # of hushtable
    about: dict[str, str]  # what the file holds
    reasons_to_stay: list[str]  # why the report must not leave the site; empty if it may
    scores: Scores | None
    features: Features
    histograms: list[Histogram]  # of the first features, from marginals
    shown: bool  # whether it shows ranges and categories
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
        counted = _("rows counted") if ledger is None else _("rows counted, estimated")
        # A second pass leaves out rows that lie apart: the first counted all.
        first = self.model.plan.first_rows
        glance = {counted: _counted(first or self.model.counts.n_rows)}
        if scores is not None:
            glance[_("rows scored")] = _counted(scores.n_rows)
            if scores.n_outliers is not None:
                share = numerals(f"{100.0 * scores.n_outliers / scores.n_rows:.2f}")
                label = _("outliers, %(share)s%% of the rows scored", share=share)
                glance[label] = _counted(scores.n_outliers)
        if ledger is not None:
            label = _("total epsilon for one person")
            if ledger.delta:
                delta = numerals(f"{rounded_up(ledger.delta):g}")
                label = _("total epsilon for one person (delta %(delta)s)", delta=delta)
            glance[label] = numerals(str(rounded_up(ledger.epsilon)))
        if sites is not None:
            n, k = sites.n_in, len(sites.sites)
            glance[_("sites in the sum")] = _("%(n)s of %(k)s", n=n, k=k)
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

    The texts are in the language of `hushtable.language.speaking`. The page is by default titled by
    the model's name. The threshold is the model's: NaN if its noise leaves none, None if it does
    not score. ``values`` also shows ranges and categories that were read off rows; the page always
    shows public ones.
    """
    plan, counts = model.plan, model.counts
    of_rows = values_of_rows(plan.schema)
    shown = values or not of_rows
    marginals = counts.adds and plan.purpose is Purpose.MARGINALS
    return Report(
        model=model,
        title=model.name if title is None else title,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=version("hushtable"),
        about=_about(model, threshold),
        reasons_to_stay=_reasons_to_stay(model, scores, sites, of_rows if shown else ""),
        scores=scores,
        features=features_of(counts, scores, shown),
        histograms=histograms(counts, shown) if marginals else [],
        shown=shown,
        privacy=_privacy(model),
        sites=sites,
        left_out=_no_values(scores, of_rows, shown) + _left_out(model, threshold, scores, sites),
    )


def _no_values(scores: Scores | None, of_rows: str, shown: bool) -> list[str]:
    """Say which values of rows are not in the report."""
    lowest = None if scores is None else scores.lowest
    shows = [_("the categories and ranges of the model's features")] if of_rows and shown else []
    if lowest is not None and lowest.shows:
        shows.append(
            _("the following values of the listed rows: %(names)s", names=listed(lowest.shows))
        )
    words = [_("Values of rows.")]
    if shows:
        named = (
            shows[0] if len(shows) == 1 else _("(a) %(a)s and (b) %(b)s", a=shows[0], b=shows[1])
        )
        words = [_("All values of rows except %(shown)s.", shown=named)]
    if lowest is None:
        words.append(_("Numbers of rows."))
    if not shown:
        words.append(
            _(
                "Ranges and categories: they were read off rows and are values of rows (--values "
                "shows them)."
            )
        )
    return words


def _about(model: Subject, threshold: float | None) -> dict[str, str]:
    counts, plan = model.counts, model.plan
    lines = {_("File"): f"{model.name} ({numerals(model.size)})"} if model.size else {}
    lines |= {
        _("Kind"): _(model.kind),
        _("Rows counted"): _rows_counted(model),
        _("Detector"): counts.detector,
        _("Plan"): counts.plan_id,
    }
    if found := verdicts(counts):
        lines[_("Verdicts")] = found
    lines[_("Depends on data")] = dependence(plan)
    cells, tables = _counted(len(counts.counts)), n_tables(counts.n_tables)
    lines[_("Counts")] = _("%(cells)s cells in %(tables)s", cells=cells, tables=tables)
    if threshold is not None:
        lines[_("Threshold")] = threshold_words(threshold, plan.score.unit)
    return lines


def _rows_counted(model: Subject) -> str:
    """Return how many rows were counted, and how."""
    counts, plan = model.counts, model.plan
    words = _counted(counts.n_rows)
    if plan.first_rows:
        first = _counted(plan.first_rows)
        words = _("%(n)s in the second pass, %(first)s in the first", n=words, first=first)
    if counts.ledger is not None:
        words = _("%(n)s, estimated from counts with noise", n=words)
    if counts.sampled:
        words = _("%(n)s in each table, a random sample", n=words)
    return words


def _reasons_to_stay(
    model: Subject, scores: Scores | None, sites: Sites | None, of_rows: str
) -> list[str]:
    reasons = [_("It shows values of rows: %(what)s.", what=of_rows)] if of_rows else []
    if scores is not None:
        n = _counted(scores.n_rows)
        if model.counts.ledger is None:
            exact = _(
                "It contains exact totals of %(n)s rows: of scores, of missing values, and of "
                "values outside the plan.",
                n=n,
            )
        else:
            exact = _(
                "It contains exact totals of %(n)s rows: of scores, of missing values, and of "
                "values outside the plan. The privacy of the release does not cover them.",
                n=n,
            )
        reasons += [exact, *_rows_to_stay(scores)]
    if not model.counts.may_leave:
        reasons.append(
            _("It is based on exact counts: %(name)s must not leave either.", name=model.name)
        )
    elif model.kind == "detector":
        reasons.append(
            _("The threshold of %(name)s may be derived from rows of the site.", name=model.name)
        )
    if sites is not None and sites.exact:
        reasons.append(_("It shows the exact number of rows of each site."))
    return reasons


def _rows_to_stay(scores: Scores) -> list[str]:
    """Say what the report shows of single rows."""
    lowest = scores.lowest
    if lowest is None:
        return []
    reasons = [_("It lists single rows by number, with their scores.")]
    if lowest.reasons:
        reasons = [
            _("It lists single rows by number, with their scores and the features that lower them.")
        ]
    if shows := lowest.shows:
        reasons.append(_("It shows values of these rows: %(names)s.", names=listed(shows)))
    if lowest.values:
        reasons.append(_("It shows how the values of single columns are distributed."))
    return reasons


def _privacy(model: Subject) -> Privacy | None:
    counts, ledger = model.counts, model.counts.ledger
    if ledger is None:
        return None
    estimated = {_("Rows, estimated"): _counted(counts.n_rows)}
    return Privacy(
        words=describe_ledger(ledger),
        lines=ledger_lines(ledger, counts.noise_sd) | estimated,
        releases=ledger_rows(ledger),
        left=_left(model),
        stayed=[_(text) for text in _STAYED],
        noise=NoiseDisplay(counts.counts, counts.noise_sd),
        decoded=ledger.window is not None,
    )


_STAYED = [
    N_("The rows, their values, and their exact number (a reader sees an estimate with noise)."),
    N_("Exact counts."),
    N_("How many values were missing or outside the plan."),
    N_("Scores, outliers and thresholds."),
    N_("The noise itself: the system's random generator made it, and no seed exists."),
]


def _left(model: Subject) -> list[str]:
    """Say what the sites sent, as the ledger shows it."""
    ledger, counts = model.counts.ledger, model.counts
    assert ledger is not None
    numbers = {"n": _counted(len(counts.counts)), "tables": n_tables(counts.n_tables)}
    cells = _("%(n)s whole numbers in %(tables)s", **numbers)
    if ledger.period is not None:
        numbers["periods"] = str(ledger.period)
        cells = _(
            "%(n)s whole numbers in %(tables)s for each of %(periods)s periods, mixed from the "
            "periods so far",
            **numbers,
        )
    own = sum(ledger.pool_of(share) is None for share in ledger.shares)
    left = _left_masked(ledger, cells, own) if ledger.pools else []
    if len(ledger.shares) == 1 and own:
        left.append(_("From the site: %(cells)s, each with its own noise.", cells=cells))
    elif own:
        left.append(
            _("From each of %(k)s sites: %(cells)s, each with its own noise.", k=own, cells=cells)
        )
    left.append(_("The contents of the ledger below, with random ids of the releases."))
    left.append(
        _(
            "The plan: names of the features, their public ranges and categories, and hash "
            "functions."
        )
    )
    return left


def _left_masked(ledger: Ledger, cells: str, own: int) -> list[str]:
    """Say what sites sent under masks; ``own`` sites sent counts with the whole noise."""
    k, rounds = len(ledger.shares) - own, len(ledger.pools)
    if rounds == 1 and not own:
        text = N_(
            "From each of %(k)s sites: %(cells)s, with a part of the noise, under masks that "
            "cancel only in the sum of all."
        )
    elif rounds == 1:
        text = N_(
            "From each of %(k)s sites of a masked round: %(cells)s, with a part of the noise, "
            "under masks that cancel only in the sum of the round."
        )
    else:
        text = N_(
            "From each of %(k)s sites of the masked rounds: %(cells)s, with a part of the noise, "
            "under masks that cancel only in the sum of their round."
        )
    return [_(text, k=k, cells=cells)]


def _why_no_scores(model: Subject, threshold: float | None) -> str:
    if threshold is None:
        return _(
            "a %(detector)s plan counts each feature separately and scores no row",
            detector=model.counts.detector,
        )
    return _("no rows were given (hushtable report MODEL DATA)")


def _left_out(
    model: Subject, threshold: float | None, scores: Scores | None, sites: Sites | None
) -> list[str]:
    left_out = [] if scores is None else _left_out_of_scores(scores)
    if scores is None:
        why = _why_no_scores(model, threshold)
        left_out.append(_("Scores, outliers and drift: %(why)s.", why=why))
    if model.counts.ledger is None:
        left_out.append(
            _(
                "Privacy: the counts are exact, have no ledger, and must not leave. hushtable "
                "release makes a release of a sketch, which may leave."
            )
        )
    if sites is None:
        left_out.append(_("Sites: no parts were given (--parts; after a round, --round as well)."))
    return left_out


def _left_out_of_scores(scores: Scores) -> list[str]:
    left_out = []
    if scores.drift is None:
        left_out.append(_("Drift: %(why)s.", why=_(scores.no_drift)))
    elif not scores.drift.features:
        left_out.append(
            _("Drift by feature: the tables of this plan do not separate the features.")
        )
    if scores.lowest is None:
        left_out.append(_("Single rows: none were requested (--rows)."))
    elif not scores.lowest.reasons:
        why = scores.lowest.no_reasons
        left_out.append(_("Reasons for the lowest scores: %(why)s.", why=_(why)))
    return left_out
