"""Texts as people write them, read as values: kinds of columns, and how texts become numbers.

`shapes` and `words` know characters and words of all languages, `numbers` and `dates` the ways to
write one value, and `missing` the codes for none; `reading` describes how the columns of a table
are read; `column_facts` collects the facts of a pass over the rows; `decisions` decides on the kind
of each column, and `doubt` is what it leaves to a person. Tested by ``tests/test_texts.py`` and,
from outside, ``tests/messy``.
"""
