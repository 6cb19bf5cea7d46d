"""One self-contained HTML file: facts are gathered, and a template sets them.

`content` gathers the facts on a model, with its rows, features and sites; `page` makes HTML of
them, and of the list of the lowest rows. May import `describe`, `plots` and what lies below;
tested in ``tests/report/``, also in a browser.
"""
