"""Small pictures of reasons, as SVG, for pages and notebooks.

`values` draws numbers and shares, `pairs` two columns at once, `reasons` a reason of a row. They
need MarkupSafe, which comes with the extra ``report``: import them where they are used. May import
`scores` and what lies below; tested in ``tests/test_charts.py``.
"""
