"""One self-contained HTML file: facts are gathered, and a template sets them.

`content` gathers what a report says of a `model`, with `scores`, `reasons`, `features` and `sites`;
`page` makes HTML of it; `words` holds what the commands print in the same words.
"""
