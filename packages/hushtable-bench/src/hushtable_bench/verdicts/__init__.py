"""The worth of verdicts on rows, on any folder of labelled sets, beside others that learn."""
