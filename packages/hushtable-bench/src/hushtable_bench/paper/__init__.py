"""The paper's experiments: its data sets, systems, tables and figures, beside its own figures.

What the paper published lies in ``published.toml``; what is promised of it, in `promises`.
"""
