"""What verdicts on rows are worth, on any folder of labelled sets, beside others that learn."""
