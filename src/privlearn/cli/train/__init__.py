"""`privlearn train`: `train.py` has the command, `options.py` those of its options that other commands do not have.

Start with `train.train`.
"""
