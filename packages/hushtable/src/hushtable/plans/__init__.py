"""Plans: a schema, the hash functions drawn for it, and how counts become scores.

`families` and `draws` are registries: a new family, or detector's draw, is one file and one call
of ``register``, as in ``tests/toys``. May import `data` and what lies below; tested in
``tests/test_plan.py``, ``test_hashing.py`` and ``test_hashing_families.py``.
"""
