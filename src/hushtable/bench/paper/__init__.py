"""The paper's experiments: its data sets, systems, tables and figures, beside its own figures."""
