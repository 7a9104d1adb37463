"""Revision scripts of databases: one script per format of each part, named after it.

`privlearn.budget.storage.migrations` runs them in order. A script may import the tables of its part and nothing else,
because it has to work for every later version. Start with `ledger_1.py`.
"""
