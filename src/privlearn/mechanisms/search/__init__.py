"""Private selection among candidates, all under one guarantee.

Start with `search.py`, which defines what a candidate is and what all searches share; the other files are one theorem
each: all candidates (`every_candidate.py`), disjoint parts of the records (`partition.py`), a random number of trials
(`random_stopping.py`), and a choice on public records (`public_tuning.py`). May import `mechanisms` and `accounting`.
"""
