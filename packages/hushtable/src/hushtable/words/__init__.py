"""Sentences for people, in their language, from facts that other modules find.

May import only `language` and `errors`.
"""
