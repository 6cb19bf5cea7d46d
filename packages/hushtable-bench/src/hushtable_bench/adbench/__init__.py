"""Accuracy on any folder of labelled sets, beside PyOD's and scikit-learn's detectors."""
