"""Tables and figures of `privlearn bounds`, `compare` and `plan`.

`case.py` and `bounds.py` compute the table of bounds, `figures.py` draws bounds and forecasts, `comparison.py` measures
error against epsilon and `comparison_page.py` writes its page. May import `papers.bounds`, not the experiments.
"""
