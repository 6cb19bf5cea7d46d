"""Facts about texts, and their sums over batches, threads and dictionaries."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import HushTable
from hushtable.data import understand
from hushtable.data.readers import reader
from hushtable.data.texts.column_facts import TextFacts

TEXTS = [
    *("1.25", "0.5", "17", "-3", "007", "1e5", "1.234", "1,234", "1,5", "99,9", "4,5 €", "3 kg"),
    *("12 %", "7 m2", "7 m3", "5.3 H", "<0.5", "-9999", "999", "20260515", "45000", "9.05", "nan"),
    *("2026-02-28", "2026-02-28 14:30", "2026-02-28T14", "28.02.2026", "2/28/26", "3 mars 2024"),
    *("10:35", "2h 15m", "48°51'24\"N", "true", "FALSE", "yes", "no", "A", "b", " b", "", "  "),
    *("Zürich", "Zu\u0308rich", "ward 3", "\uff13", "N/A", "12-34", "Total", "\u0663\u066b\u0665"),
    *("1.2\u00d710\u00b3", None),
]
BATCHES = st.lists(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=60), min_size=1, max_size=5
)


@pytest.mark.parametrize(
    ("text", "kind", "unit", "lost"),
    [
        ("4,5 €", "comma", "€", False),
        ("7 m2", "whole", "m2", False),
        ("5.3 H", "flag", "H", False),
        ("<LOD", "limit", "", True),
        ("3 mars 2024", "date", "", True),
    ],
)
def test_facts_about_a_text(text, kind, unit, lost):
    facts = TextFacts.of(pa.array([text]))
    assert (facts.kind[0], facts.unit[0], facts.lost[0]) == (kind, unit, lost)
    both = TextFacts.of(pa.array(["8 m3", text]))
    assert (both.kind[1], both.unit[1]) == (kind, unit)


@pytest.mark.slow
@given(batches=BATCHES)
def test_threads_and_dictionaries_change_no_understanding(batches):
    texts = [text for batch in batches for text in batch] * 40
    plain = pa.table({"a": pa.array(texts, pa.string()), "b": pa.array(texts[::-1], pa.string())})
    coded = pa.table({name: plain[name].dictionary_encode() for name in plain.column_names})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BATCH_ROWS", 64)
        one = understand(plain)
        assert understand(plain, n_jobs=3).rows == one.rows
        # A dictionary of whole numbers is a category by its type.
        if not all(re.fullmatch(r"[+-]?\d+", text or "0", re.ASCII) for text in texts):
            assert understand(coded).rows == one.rows


def test_dictionaries_with_unused_equal_and_missing_texts():
    """Of which texts, also by which numbers, makes no difference."""
    texts = ["b", "a", None, "b ", "a", "b", None, "c"] * 300
    words = pa.array(["unused", "c", "b", "a", "b ", None, "b"], pa.string())
    numbers = {"a": 3, "b": 2, "b ": 4, "c": 1, None: 5}
    indices = pa.array([numbers[text] for text in texts], pa.int32())
    plain = pa.table({"x": pa.array(texts), "y": np.arange(len(texts)) % 7})
    coded = plain.set_column(0, "x", pa.DictionaryArray.from_arrays(indices, words))
    assert understand(coded).rows == understand(plain).rows
    one, other = (HushTable(random_state=0).fit(table) for table in (plain, coded))
    assert one.plan_.schema == other.plan_.schema
    assert (one.score_samples(plain) == other.score_samples(coded)).all()
