"""Mechanisms over secure sums of several holders; `summed.py` defines questions and noise."""
