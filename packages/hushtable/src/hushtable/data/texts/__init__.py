"""Texts as people write them, read as values: kinds of columns, and how texts become numbers.

`numbers` and `dates` know the ways to write one value; `reading` describes how the columns of a
table are read; `seen` collects the findings of a pass over the rows; `decisions` decides on the
kind of each column. Tested in ``tests/texts`` and, from outside, ``tests/messy``.
"""
