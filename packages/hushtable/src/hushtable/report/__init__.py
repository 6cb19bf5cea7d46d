"""One self-contained HTML file: facts are gathered, and a template sets them.

`content` gathers the facts on a model, with `scores`, the `lowest` rows, `features` and `sites`;
`page` makes HTML of them; `words` holds what the commands print in the same words. May import all
but `bench` and `cli`; tested in ``tests/report/``, also in a browser.
"""
