"""Plans: a schema, the hash functions drawn for it, and how counts become scores.

`families` and `draws` are registries: to add a family, or a detector's draw, write one file and
call ``register`` once, as in ``tests/toys``. May import `data` and the packages below it; tested in
``tests/test_plan.py`` and ``test_hashing.py``.
"""
