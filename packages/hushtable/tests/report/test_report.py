"""What a report says, and what it must not."""

import itertools
import re
import sys

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.blocks import LabelledValues, TextTable
from hushtable.counts import rounds
from hushtable.data.readers import as_reader
from hushtable.errors import MissingExtraError, UsageError
from hushtable.report import page
from hushtable.report.content import RowsToShow, Subject, gather, score_rows, sites_of_parts
from hushtable.report.page import Figures
from hushtable.scores.scorer import Ranks, Scorer
from report_helpers import EVIL, Parsed
from strategies import second_pass


def html_of(report):
    return page.html(report.page)


def words_of(report):
    return Parsed(html_of(report)).words


def blocks(report, name, kind):
    """Return the blocks of a kind in a section."""
    (section,) = [section for section in report.page.sections if section.name == name]
    return [block for block in section.blocks if isinstance(block, kind)]


def columns(report):
    """Return the columns of the table of features by their headers."""
    (table,) = blocks(report, "features", TextTable)
    return dict(zip(table.headers, zip(*table.rows, strict=True), strict=True))


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
    return html_of(report)


# --- numbers --------------------------------------------------------------------------------------


def test_a_second_pass_tells_of_all_rows_and_of_those_it_counts(sketch, X):
    again = Sketch.from_data(second_pass(sketch, X), X)
    assert 0 < again.n_rows < 600
    report = gather(Subject("a.hush", "sketch", again, "1 kB"), threshold=0.0)
    assert report.page.glance["rows counted"] == "600"
    (about,) = blocks(report, "file", LabelledValues)
    assert about.values["Rows counted"] == f"{again.n_rows:,} in the second pass, 600 in the first"


def test_rows_have_their_reasons_without_values(of_rows):
    """Names of columns, and the bits that their values cost; repairs name no value."""
    report = of_rows(n_shown=4)
    (rows,) = [block for block in report.page.sections[0].blocks if hasattr(block, "outliers")]
    text = words_of(report)
    for row in rows.outliers.rows:
        for reason in row.reasons:
            assert f"{reason.named} : {reason.share:.2f} bits" in text
    assert text.count("With a usual value of ") + text.count("With usual values of ") == 4
    assert "<figcaption>" in html_of(report)
    assert len(Parsed(html_of(report)).all("svg")) == 1
    assert "reasons" not in " ".join(report.left_out).lower()


def test_ids_columns_and_values_when_requested(of_values, kept):
    (rows,) = [block for block in of_values.page.sections[0].blocks if hasattr(block, "outliers")]
    text, html = words_of(of_values), html_of(of_values)
    assert rows.outliers.keep == ("nr", "ward")
    for row in rows.outliers.rows:
        ward = kept["ward"][row.row].as_py() or "\u2013"
        assert f"nr {row.row:04} ward {ward} row {row.row} " in text
        for reason in row.reasons:
            assert reason.phrase.text in text
    assert len(Parsed(html).all("svg")) >= 4
    assert "20 <b>bits</b>" in text
    assert "Values of rows, except those that the top of this page names." in text
    assert "It shows values of these rows: nr, ward and the values" in text
    assert "distributed" in text


@pytest.mark.slow
def test_a_page_of_many_rows_is_small(rng):
    n = 1500
    X = rng.normal(size=(n, 60))
    schema = Schema([Feature.numeric(f"feature {j}", low=-6, high=6) for j in range(60)])
    sketch = Sketch.from_data(Plan.draw(schema, random_state=0, n_tables=20), X)
    rows = pa.table([*X.T, pa.array([str(i) for i in range(n)])], [*schema.names, "nr"])
    shown = RowsToShow(200, True, ("nr",))
    scores = score_rows(Scorer(sketch), 0.0, as_reader(rows), shown=shown)
    html = html_of(gather(Subject("a.hush", "sketch", sketch), scores=scores))
    assert html.count("</figcaption><svg ") > 190
    assert len(html) < 3_000_000


@pytest.mark.parametrize("private", [False, True])
def test_severities_are_among_the_rows_of_all_sites(sketch, releases, X, private):
    model = releases["<i>north</i>"] + releases["<i>south</i>"] if private else sketch
    scorer = Scorer(model)
    counts = Sketch.from_data(rounds.ranks(model), X)
    ranks = Ranks(counts.release(2.5) if private else counts, scorer)
    expected = scorer.score(X)
    threshold = float(np.quantile(expected, 0.05))
    scores = score_rows(scorer, threshold, as_reader(X), shown=RowsToShow(5), ranks=ranks)
    lowest = np.sort(expected)[:5]
    severities = [row.severity for row in scores.lowest.rows]
    np.testing.assert_allclose(severities, 100.0 * (1.0 - ranks.of(lowest)))


def test_no_threshold_in_the_noise(releases, X):
    model = releases["<i>north</i>"]
    scores = score_rows(Scorer(model), float("nan"), as_reader(X))
    report = gather(Subject("n.hush", "detector", model), threshold=float("nan"), scores=scores)
    text = words_of(report)
    assert "is too large to derive a threshold from them" in text
    assert "none: the counts are too noisy to derive one" in text
    assert not any("outliers" in label for label in report.page.glance)
    assert "var(--flag)" not in html_of(report).partition("</head>")[2]


def test_drift_beside_chance(sketch, X):
    scores = score_rows(Scorer(sketch), 0.0, as_reader(X + np.array([0.0, 2.0, 0.0])))
    report = gather(Subject("a.hush", "sketch", sketch), threshold=0.0, scores=scores)
    assert scores.drift.overall > 3 * scores.drift.level
    text = words_of(report)
    assert "these rows drifted more than chance explains" in text
    assert "drifted more; if nothing had changed, it would be about 1 or fewer" in text
    assert f"{scores.drift.overall:.4f} (by chance up to {scores.drift.level:.4f})" in text
    assert scores.drift.beyond_chance[0] == "x1"
    assert f"Largest drift of one feature x1 {scores.drift.features['x1']:.4f} (by" in text
    assert columns(report)["by chance up to"][1] == f"{scores.drift.feature_levels['x1']:.4f}"


def test_features_in_another_unit_are_named(sketch, X):
    scores = score_rows(Scorer(sketch), 0.0, as_reader(1000.0 * X))
    text = words_of(gather(Subject("a.hush", "sketch", sketch), threshold=0.0, scores=scores))
    assert "a different unit from the plan" in text
    assert "Most rows are outside the plan in <script>" in text


def test_sites_that_are_not_the_sum(releases):
    total = releases["<i>north</i>"] + releases["<i>south</i>"]
    first = dict([next(iter(releases.items()))])
    sites = sites_of_parts(first, total, "all.hush")
    report = gather(Subject("all.hush", "release", total), sites=sites)
    assert "✗ failed: The sum of the parts is not all.hush" in words_of(report)


def test_parts_of_another_kind(sketch, releases):
    with pytest.raises(UsageError, match="of different kinds"):
        sites_of_parts(releases, sketch, "all.hush")


# --- what it must not say -------------------------------------------------------------------------


def test_no_row_unless_requested(of_rows, of_release):
    for report in (of_rows(), of_release):
        assert "The most unusual rows" not in words_of(report)
        assert not re.search(r"8\.125|class=\"rows\"", html_of(report))
        assert "Values of rows. Numbers of rows." in words_of(report)
    report = of_rows(n_shown=3)
    assert "8.125" not in html_of(report)
    assert "Values of rows." in words_of(report)
    (why,) = [why for why in report.reasons_to_stay if "single rows" in why]
    assert why.endswith("with their scores and the features that lower them.")


def test_the_context_of_a_row_is_a_value_of_it(rng):
    """A note names the row's context, so it is in a report with values only."""
    ward = np.array(["north"] * 300 + ["south-east"])
    rows = pa.table({"x": rng.normal(size=301), "ward": ward})
    features = [Feature.numeric("x", low=-9, high=9), Feature.categorical("ward", [*set(ward)])]
    plan = Plan.draw(Schema(features), context=["ward"], random_state=0)
    sketch = Sketch.from_data(plan, rows)
    for values in (False, True):
        shown = RowsToShow(301, values)
        scores = score_rows(Scorer(sketch), 0.0, as_reader(rows), shown=shown)
        report = gather(Subject("a.hush", "sketch", sketch), scores=scores)
        rows_of = html_of(report).partition('class="rows"')[2].partition("</section>")[0]
        assert ("south-east" in rows_of) == values


def test_whether_it_may_leave(of_rows, of_release, of_everything, releases):
    assert of_release.reasons_to_stay == []
    assert "This report may go wherever all.hush may go." in words_of(of_release)
    assert "The privacy of the release does not cover them" in of_everything.reasons_to_stay[0]
    assert "a.hush must not leave either" in of_rows().reasons_to_stay[-1]
    assert "Keep this report where the rows are." in words_of(of_rows())
    model = Subject("all.hush", "detector", releases["<i>north</i>"])
    (why,) = gather(model, threshold=1.0).reasons_to_stay
    assert why == "The threshold of all.hush may be derived from rows of the site."


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
    assert "url(" not in html
    parsed = Parsed(html)
    assert not [a for _, a in parsed.tags if "src" in a or "srcset" in a or "action" in a]
    targets = {a["href"] for tag, a in parsed.tags if "href" in a}
    assert {t for t in targets if not t.startswith("#")} == {"data:,"}
    policy = parsed.all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'")


def test_anchors_and_ids_fit(html):
    parsed = Parsed(html)
    ids = [a["id"] for _, a in parsed.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for _, a in parsed.tags if a.get("href", "").startswith("#")} <= set(ids)
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
    ends = itertools.pairwise(marginals.plan.family.offsets.tolist())
    cells = [marginals.counts[first:last] for first, last in ends]
    (drawn,) = blocks(of_marginals, "features", Figures)
    assert len(drawn.figures) == len(cells) == 4
    for (picture, caption), counts in zip(drawn.figures, cells, strict=True):
        assert picture in html_of(of_marginals)
        assert f"counts is {counts[:-1].max():,};" in caption
        assert f"; missing {counts[-1]:,}." in caption
    assert EVIL in drawn.figures[0][1]
    assert "The counts have noise, whose standard deviation is " in words_of(of_marginals)


def test_many_features(rng):
    schema = Schema([Feature.numeric(f"x{j}", low=0, high=1) for j in range(300)])
    sketch = Sketch.from_data(Plan.draw(schema, random_state=0, n_tables=2), rng.random((5, 300)))
    text = words_of(gather(Subject("a.hush", "sketch", sketch), threshold=0.0))
    assert "The first 200 of 300 features" in text
    assert " x199 " in text
    assert " x200 " not in text


def test_without_its_library(monkeypatch, of_release):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"needs Jinja.*\[report\]"):
        html_of(of_release)
