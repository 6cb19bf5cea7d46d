"""Plans: a schema, the hash functions drawn for it, and how counts become scores.

Families of hash functions, the draws of each detector, the score rule. May import `data` and what
lies below; tested in ``tests/test_plan.py``, ``test_hashing.py`` and ``test_hashing_families.py``.
"""
