"""The paper's experiments: its sets, systems, and tables, beside its published figures."""
