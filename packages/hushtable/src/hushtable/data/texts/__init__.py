"""Texts as people write them to values: what a column is, and how its texts become numbers.

`numbers` and `dates` know the ways to write one value; `reading` is how the columns of a table are
read; `seen` collects what a pass over the rows finds; `decisions` says what each column is. Tested
in ``tests/texts`` and, from outside, ``tests/messy``.
"""
