"""The paper's experiments: its sets, systems and tables, beside what it published."""
