"""Small SVG pictures of reasons and of numbers, for pages.

`values` draws numbers and shares, `pairs` two columns at once, `reasons` a reason of a row. They
need MarkupSafe, which the extra ``report`` installs: import them only where they are used. May
import `scores` and the packages below it; tested in ``tests/test_charts.py``.
"""
