"""The commands that this package adds."""

COMMANDS = """
bench           -                  Measure what the docs promise.
bench adbench   bench_adbench      Compare our detectors with PyOD's and scikit-learn's.
bench paper     bench_paper        Run the paper's experiments, and print its figures beside ours.
bench privacy   bench_privacy      Measure what privacy costs, and what adversaries and audits find.
bench sites     bench_sites        Measure accuracy over 2 to 100 sites at a total epsilon of 1.
bench verdicts  bench_verdicts     Measure what an analyst's verdicts on a few rows are worth.
"""
