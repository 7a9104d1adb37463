"""`privlearn train`: `train.py` has the command, `search.py` its options for tuning, `cluster.py` those for Dask.

Start with `train.train`.
"""
