"""Measure the project's claims: the commands of ``hushtable bench`` and the cases of `runner`."""

#: The commands that this package adds.
COMMANDS = """
bench           -                  Measure what the docs promise.
bench adbench   commands:adbench   Compare our detectors with PyOD's and scikit-learn's.
bench paper     commands:paper     Run the paper's experiments, and print its figures beside ours.
bench privacy   commands:privacy   Measure what privacy costs, and what adversaries and audits find.
bench sites     commands:sites     Measure accuracy over 2 to 100 sites at a total epsilon of 1.
bench verdicts  commands:verdicts  Measure what an analyst's verdicts on a few rows are worth.
"""
