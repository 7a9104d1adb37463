"""Noisy counts, means, quantiles and Hessians; `counts.py` is the simplest."""
