"""What a report says, and what it must not."""

import itertools
import re
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.counts import rounds
from hushtable.data.readers import as_reader
from hushtable.describe import describe_ledger
from hushtable.errors import DataError, MissingExtraError, UsageError
from hushtable.report.content import Subject, gather, sites_of_parts
from hushtable.report.page import page
from hushtable.report.rows import RowsToShow, score_rows
from hushtable.scores.explain import Explainer
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.streams import drift
from report_helpers import EVIL, Parsed
from strategies import second_pass


@pytest.fixture(
    scope="module",
    params=["of_rows", "of_rows, single", "of_values", "of_release", "of_everything"],
)
def report(request):
    name, _, single = request.param.partition(", ")
    made = request.getfixturevalue(name)
    return made(**({"n_shown": 3} if single else {})) if name == "of_rows" else made


@pytest.fixture(scope="module")
def html(report):
    """Return its page, drawn once."""
    return page(report)


# --- numbers --------------------------------------------------------------------------------------


def test_scores_are_the_scorers(of_rows, sketch, X):
    scores, scorer = of_rows(n_shown=4).scores, Scorer(sketch)
    expected, offset = scorer.score(X), scorer.auto_offset()
    assert scores.n_rows == 600
    assert scores.n_outliers == (expected < offset).sum() > 0
    assert scores.threshold == offset
    assert scores.median == np.median(expected)
    np.testing.assert_array_equal(scores.tally, sketch.tally)
    lowest = np.argsort(expected, kind="stable")[:4]
    assert 20 <= lowest[0] < 30  # beyond its range
    _, errors = scorer.score_with_errors(X)
    assert scores.lowest.headers[:3] == ["row", "score", "standard error"]
    assert [row[:3] for row in scores.lowest.rows] == [
        [str(row), f"{expected[row]:.4f}", f"{errors[row]:.4f}"] for row in lowest
    ]
    assert scores.drift.overall == drift(sketch, sketch).overall < 0.0
    # Some of the rows tell how far chance goes.
    assert 0.0 < scores.drift.level < drift(sketch, sketch).level
    assert scores.drift_words.startswith(
        "All features together, these rows drifted no more than chance"
    )
    counted = [int(row[2]) for row in scores.bin_rows]
    assert sum(counted) == 600
    flagged = [int(row[3]) for row in scores.bin_rows]
    assert sum(flagged) == scores.n_outliers


def test_a_second_pass_tells_of_all_rows_and_of_those_it_counts(sketch, X):
    again = Sketch.from_data(second_pass(sketch, X), X)
    assert 0 < again.n_rows < 600
    report = gather(Subject("a.hush", "sketch", again, "1 kB"), threshold=0.0)
    assert report.glance["rows counted"] == "600"
    assert report.about["Rows counted"] == f"{again.n_rows:,} in the second pass, 600 in the first"


def test_reasons_repair_the_row(of_rows, sketch, X):
    """The gains that a report names are those of rows with usual values in their place."""
    lowest = of_rows(n_shown=4).scores.lowest
    scorer = Scorer(sketch)
    names, scores = list(sketch.plan.schema.names), scorer.score(X)
    usual = np.nanquantile(X, 0.5, axis=0, method="inverted_cdf")
    typical = Explainer(scorer).typical
    for (line, reasoned), row in zip(lowest.lines, lowest.found, strict=True):
        i, why = int(line[0]), row.why
        assert reasoned.shortfall == pytest.approx(typical - scores[i])
        repaired = X[[i]].copy()
        for name in why.repaired:
            repaired[0, names.index(name)] = usual[names.index(name)]
        assert scorer.score(repaired)[0] == pytest.approx(why.score)
        assert why.enough == (why.score > np.sort(scores)[4])
        assert reasoned.repair.startswith("with a usual value")
        assert (": not listed" if why.enough else ": still listed") in reasoned.repair
    assert lowest.reasons[0].named[0].feature == names[0]
    assert "reasons" not in " ".join(of_rows(n_shown=4).left_out).lower()


def test_bars_have_one_scale(of_rows):
    report = of_rows(n_shown=9)
    lowest = report.scores.lowest
    shares = [one.share for why in lowest.reasons for one in why.named]
    assert lowest.scale == max(shares) > min(shares)
    widths = re.findall(r'class="bar[^"]*" style="width:([\d.]+)%"', page(report))
    assert widths == [f"{max(100.0 * share / lowest.scale, 0.0):.1f}" for share in shares]
    assert "100.0" in widths


def test_ids_columns_and_values_when_asked(of_values, X, kept):
    lowest = of_values.scores.lowest
    assert lowest.headers[:3] == ["nr", "row", "ward"]
    scores = dict(zip(("nr", "row", "ward"), zip(*lowest.rows, strict=True), strict=False))
    rows = [int(row) for row in scores["row"]]
    assert 20 <= rows[0] < 30
    assert list(scores["nr"]) == [f"{row:04}" for row in rows]
    assert list(scores["ward"]) == [kept["ward"][row].as_py() or "\u2013" for row in rows]
    for row, why in zip(rows, lowest.reasons, strict=True):
        for one in why.named:
            value = X[row, of_values.model.plan.schema.names.index(one.feature)]
            said = " is missing" if np.isnan(value) else f" {value:.6g} "
            assert one.beside.startswith(said)
            assert " to " in one.beside or np.isnan(value)
        for _, picture in why.pictures:
            assert picture in page(of_values)
    assert sum(len(why.pictures) for why in lowest.reasons) >= len(rows)
    text = Parsed(page(of_values)).text
    assert lowest.reasons[0].named[0].beside.startswith(" 20 <b>bits</b>")
    listed = "of the listed rows: nr, ward and the values that lower their scores"
    assert f"All values of rows except the following values {listed}." in text
    assert "It shows values of these rows: nr, ward and the values" in text
    assert "distributed" in text


def test_the_values_of_features_and_of_listed_rows_are_named_apart(X, score_them):
    """A reader knows which of them belong to the listed rows alone."""
    features = [Feature.numeric(f"x{j}", low=-9, high=9) for j in range(3)]
    sketch = Sketch.from_data(Plan.draw(Schema(features, public=False), random_state=0), X)
    offset, scores = score_them(sketch, X, 3, values=True)
    model = Subject("a.hush", "sketch", sketch)
    left_out = gather(model, threshold=offset, scores=scores, values=True).left_out
    assert left_out[0] == (
        "All values of rows except (a) the categories and ranges of the model's features and (b) "
        "the following values of the listed rows: the values that lower their scores."
    )


@pytest.mark.slow
def test_a_page_of_many_rows_is_small(rng):
    n = 1500
    X = rng.normal(size=(n, 60))
    schema = Schema([Feature.numeric(f"feature {j}", low=-6, high=6) for j in range(60)])
    sketch = Sketch.from_data(Plan.draw(schema, random_state=0, n_tables=20), X)
    names = [*schema.names, "nr"]
    rows = pa.table([*X.T, pa.array([str(i) for i in range(n)])], names)
    scores = score_rows(
        Scorer(sketch), 0.0, as_reader(rows), shown=RowsToShow(200, True, ("nr",), "nr")
    )
    html = page(gather(Subject("a.hush", "sketch", sketch), scores=scores))
    assert html.count("</figcaption><svg ") > 190
    assert len(html) < 3_000_000


def test_crowding_is_shown_where_it_is_true(of_rows, of_everything):
    asked = of_rows(n_shown=3)
    assert all(one.crowding for one in asked.scores.lowest.reasons)
    for one in asked.scores.lowest.reasons:
        assert f"has <strong>{one.crowding}</strong>" in page(asked)
    # Counts with noise: the gap is shown, and similar rows are not compared.
    assert not any(one.crowding for one in of_everything.scores.lowest.reasons)
    html = page(of_everything)
    assert "similar rows" not in Parsed(html).text
    assert f"{of_everything.scores.lowest.reasons[0].shortfall:.2f} bits below a typical" in html


@pytest.mark.parametrize("private", [False, True])
def test_ranks_are_those_among_all_rows(sketch, releases, X, private):
    model = releases["<i>north</i>"] + releases["<i>south</i>"] if private else sketch
    scorer = Scorer(model)
    counts = Sketch.from_data(rounds.ranks(model), X)
    ranks = Ranks(counts.release(2.5) if private else counts, scorer)
    expected, errors = scorer.score_with_errors(X)
    threshold = float(np.quantile(expected, 0.05))
    # In batches of its own size, of which most hold none of the rows that are named.
    parts = as_reader(pa.table({n: X[:, j] for j, n in enumerate(scorer.plan.schema.names)}))
    scores = score_rows(scorer, threshold, parts, shown=RowsToShow(5), ranks=ranks)
    lowest = np.argsort(expected, kind="stable")[:5]
    low, high = ranks.between(expected, errors).T
    assert scores.lowest.headers[3:5] == ["rank among all", "between"]
    for row, line in zip(lowest, scores.lowest.rows, strict=True):
        assert line[3] == f"{ranks.of(expected[[row]])[0]:.2%}"
        assert line[4] == f"{low[row]:.2%} and {high[row]:.2%}"
    said = scores.lines["Rows of all sites"]
    assert ("between" in said) == private
    if not private:
        assert re.fullmatch(r"5(\.\d+)?% are below the threshold", said)
    text = Parsed(page(gather(Subject("a.hush", "sketch", model), scores=scores))).text
    assert "A rank is the share of the rows of all sites" in text


def test_one_table_tells_no_error(schema, X):
    sketch = Sketch.from_data(Plan.draw(schema, n_tables=1, random_state=0), X)
    scores = score_rows(Scorer(sketch), 0.0, as_reader(X), shown=RowsToShow(2))
    assert scores.lowest.headers == ["row", "score", "features that lower it most"]


def test_a_share_of_the_rows_to_flag(of_rows):
    scores = of_rows(contamination=0.05).scores
    assert scores.n_outliers == 30
    assert "set to flag 5% of these rows" in Parsed(page(of_rows(contamination=0.05))).text


def test_no_threshold_in_the_noise(of_everything):
    scores = of_everything.scores
    nothing = replace(scores, threshold=float("nan"), n_outliers=None, chosen=None)
    nothing.display.threshold = float("nan")
    made = gather(of_everything.model, threshold=float("nan"), scores=nothing)
    text = Parsed(page(made)).text
    assert "is too large to derive a threshold from them" in text
    assert "outliers" not in nothing.bin_headers
    assert made.about["Threshold"].startswith("none")
    assert not any("outliers" in label for label in made.glance)


def test_features_have_both_tallies_and_drift(of_rows):
    report = of_rows()
    assert report.features.columns["feature"] == [EVIL, "x1", "x2"]
    assert list(report.features.columns)[2:] == [
        "missing in rows counted", "outside in rows counted", "missing in these rows",
        "outside in these rows", "drift", "by chance up to",
    ]  # fmt: skip
    for whose in ("rows counted", "these rows"):
        assert report.features.columns[f"missing in {whose}"] == ["0", "20", "0"]
        assert report.features.columns[f"outside in {whose}"] == ["10", "0", "0"]


def test_drift_beside_chance(sketch, X):
    scorer, moved = Scorer(sketch), X + np.array([0.0, 2.0, 0.0])
    scores = score_rows(scorer, 0.0, as_reader(moved))
    report = gather(Subject("a.hush", "sketch", sketch), threshold=0.0, scores=scores)
    assert scores.drift.overall > 3 * scores.drift.level
    text = " ".join(Parsed(page(report)).text.split())
    assert "these rows drifted more than chance explains" in text
    assert "drifted more; if nothing had changed, it would be about 1 or fewer" in text
    drift = f"{scores.drift.overall:.4f} (by chance up to {scores.drift.level:.4f})"
    assert drift in text
    assert scores.drift.beyond_chance[0] == "x1"
    levels = dict(
        zip(*(report.features.columns[c] for c in ("feature", "by chance up to")), strict=True)
    )
    assert levels["x1"] == f"{scores.drift.feature_levels['x1']:.4f}"


def test_columns_of_zeros_are_left_out(sketch, X):
    scorer = Scorer(sketch)
    scores = score_rows(scorer, 0.0, as_reader(X[30:]))
    report = gather(Subject("a.hush", "sketch", sketch), threshold=0.0, scores=scores)
    assert report.features.zeros == ["missing in these rows", "outside in these rows"]
    text = " ".join(Parsed(page(report)).text.split())
    assert (
        "All zero, and therefore not in the table: missing in these rows, outside in these rows."
        in text
    )


def test_features_in_another_unit_are_named(schema, sketch, X):
    scorer = Scorer(sketch)
    scores = score_rows(scorer, scorer.auto_offset(), as_reader(1000.0 * X))
    report = gather(Subject("a.hush", "sketch", sketch), threshold=0.0, scores=scores)
    assert report.features.doubtful == schema.names
    assert "a different unit from the plan" in Parsed(page(report)).text
    assert Parsed(page(report)).text.count("Most rows are outside the plan in") == 1


def test_the_ledger_is_the_releases(of_release):
    ledger, text = of_release.model.counts.ledger, " ".join(Parsed(page(of_release)).text.split())
    for sentence in describe_ledger(ledger):
        assert sentence in text
    assert f"epsilon {ledger.epsilon:.6g}, delta 1e-06" in text
    assert f"{of_release.model.counts.noise_sd:,.4g} counts (standard deviation)" in text
    for share in ledger.shares:
        assert share.release[:12] in text
        assert share.release not in text
    assert len(of_release.privacy.releases) == 2


def test_sites_and_their_sum(of_release, releases):
    sites = of_release.sites
    assert [(site.name, site.rows) for site in sites.sites] == [
        (name, release.n_rows) for name, release in releases.items()
    ]
    assert [check.holds for check in sites.checks] == [True]
    assert of_release.glance["sites in the sum"] == "2 of 2"
    first = dict([next(iter(releases.items()))])
    other = sites_of_parts(first, of_release.model.counts, "all.hush")
    assert [check.holds for check in other.checks] == [False]
    assert "✗ failed:" in page(replace(of_release, sites=other))


def test_parts_of_another_kind(sketch, releases):
    with pytest.raises(UsageError, match="of different kinds"):
        sites_of_parts(releases, sketch, "all.hush")


def test_no_rows(sketch, X):
    with pytest.raises(DataError, match="nothing to report"):
        score_rows(Scorer(sketch), 0.0, as_reader(X[:0]))


# --- what it must not say -------------------------------------------------------------------------


def test_no_row_unless_asked(of_rows, of_release, X):
    for report in (of_rows(), of_release):
        html = page(report)
        assert "row (numbered" not in html
        assert not re.search(r"8\.125|lowest scores", Parsed(html).text)
        assert "Values of rows. Numbers of rows." in Parsed(html).text
    asked = of_rows(n_shown=3)
    assert "8.125" not in page(asked)
    assert "Values of rows." in Parsed(page(asked)).text
    (why,) = [why for why in asked.reasons_to_stay if "single rows" in why]
    assert why.endswith("with their scores and the features that lower them.")


def test_whether_it_may_leave(of_rows, of_release, of_everything):
    assert of_release.reasons_to_stay == []
    assert "This report may go wherever all.hush may go." in Parsed(page(of_release)).text
    assert "The privacy of the release does not cover them" in of_everything.reasons_to_stay[0]
    assert "a.hush must not leave either" in of_rows().reasons_to_stay[-1]
    assert "Keep this report where the rows are." in Parsed(page(of_rows())).text
    detector = gather(replace(of_release.model, kind="detector"), threshold=1.0)
    (why,) = detector.reasons_to_stay
    assert why == "The threshold of all.hush may be derived from rows of the site."


def test_what_does_not_apply_is_left_out_with_a_reason(of_rows, of_release, schema, X):
    def left_out(report):
        html = page(report)
        assert all(f'id="{name}"' in html for name in report.sections)
        absent = {"scores", "features", "privacy", "sites"} - set(report.sections)
        assert not any(f'id="{name}"' in html or f'href="#{name}"' in html for name in absent)
        return " ".join(report.left_out)

    assert "no rows were given" in left_out(of_release)
    words = left_out(of_rows())
    assert "Privacy: the counts are exact" in words
    assert "Single rows: none were requested" in words
    assert "Sites: no parts were given" in words
    marginals = Sketch.from_data(Plan.marginals(schema), X)
    report = gather(Subject("m.hush", "sketch", marginals))
    assert "a marginals plan counts each feature separately and scores no row" in left_out(report)


def test_drift_from_two_passes_is_that_from_the_first(X):
    from hushtable import HushTable

    found = []
    for passes in (1, 2):
        detector = HushTable(random_state=0, n_tables=5, passes=passes).fit(X)
        scores = score_rows(Scorer(detector.sketch_), detector.offset_, as_reader(X))
        found.append(scores.drift.overall)
    assert found[0] == found[1]


# --- the page -------------------------------------------------------------------------------------


def test_names_inject_nothing(html):
    parsed = Parsed(html)
    assert not parsed.all("script")
    assert not parsed.all("img")
    assert not parsed.all("i")
    assert not parsed.all("b")
    assert not any(name.startswith("on") for _, attributes in parsed.tags for name in attributes)
    assert EVIL in parsed.text


def test_nothing_comes_from_elsewhere(html):
    assert "//" not in html
    assert "@import" not in html
    parsed = Parsed(html)
    assert not [a for _, a in parsed.tags if "src" in a or "srcset" in a or "action" in a]
    targets = {a["href"] for tag, a in parsed.tags if "href" in a}
    assert {t for t in targets if not t.startswith("#")} == {"data:,"}
    addresses = re.findall(r"url\(([^)]*)\)", html)
    assert all(address.startswith("#") for address in addresses)
    policy = parsed.all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'")


def test_anchors_and_ids_fit(html):
    parsed = Parsed(html)
    ids = [a["id"] for _, a in parsed.tags if "id" in a]
    assert len(ids) == len(set(ids))
    wanted = [a[key] for _, a in parsed.tags for key in ("href", "xlink:href") if key in a]
    assert {w[1:] for w in wanted if w.startswith("#")} <= set(ids)
    assert {a["aria-labelledby"] for _, a in parsed.tags if "aria-labelledby" in a} <= set(ids)


def test_who_cannot_see_it(html):
    parsed = Parsed(html)
    assert parsed.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 20 for svg in parsed.all("svg"))
    assert not re.search(r"<th[^>]*></th>", html)
    assert all(header["scope"] in ("col", "row") for header in parsed.all("th"))
    regions = [a for a in parsed.all("div") if a.get("class") == "scroll"]
    assert all(r["aria-label"] and r["tabindex"] == "0" for r in regions)
    assert len(regions) == len(parsed.all("table"))


def test_marginals_have_histograms(of_marginals, marginals):
    first, *_, last = of_marginals.histograms
    cells = marginals.plan.family.offsets
    np.testing.assert_array_equal(first.counts, marginals.counts[: cells[1] - 1])
    assert first.missing == marginals.counts[cells[1] - 1]
    assert last.feature.name == "ward"
    np.testing.assert_array_equal(last.counts, marginals.counts[cells[-2] : -1])
    parsed = Parsed(page(of_marginals))
    said = [svg["aria-label"] for svg in parsed.all("svg")]
    assert len(said) == len(of_marginals.histograms) + 1  # and the counts beside their noise
    assert EVIL in said[0]
    assert f"the largest count is {first.counts.max():,} (" in said[0]
    assert f"; missing {first.missing:,}." in said[0]
    assert "Missing, with noise: " in parsed.text
    assert "the band is twice the standard" in parsed.text


def test_exact_marginals_have_no_band(schema, X):
    sketch = Sketch.from_data(Plan.marginals(schema), X)
    report = gather(Subject("m.hush", "sketch", sketch))
    assert [one.missing for one in report.histograms] == [0, 20, 0]
    html = page(report)
    assert "band" not in html
    assert "Missing: 20." in html
    assert "var(--flag)" not in html.partition("</head>")[2]
    assert not gather(Subject("a.hush", "sketch", Sketch.zero(Plan.draw(schema)))).histograms


def test_many_features(rng):
    schema = Schema([Feature.numeric(f"x{j}", low=0, high=1) for j in range(300)])
    sketch = Sketch.from_data(Plan.draw(schema, random_state=0, n_tables=2), rng.random((5, 300)))
    report = gather(Subject("a.hush", "sketch", sketch), threshold=0.0)
    text = " ".join(Parsed(page(report)).text.split())
    assert "The first 200 of 300 features" in text
    assert " x199 " in text
    assert " x200 " not in text


def test_without_its_libraries(monkeypatch, of_release):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"a report needs Jinja.*\[report\]"):
        page(of_release)
