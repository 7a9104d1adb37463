"""Mechanisms that release the coefficients of one holder's model; start with `output.py`."""
