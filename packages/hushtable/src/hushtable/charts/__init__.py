"""Small pictures of reasons and of numbers over time, as SVG, for pages and notebooks.

`values` draws numbers and shares, `pairs` two columns at once, `reasons` a reason of a row, `lines`
numbers over months or rounds. They need MarkupSafe, which comes with the extra ``report``: import
them where they are used. May import `scores` and what lies below; tested in
``tests/test_charts.py`` and ``tests/test_charts_lines.py``.
"""
