"""Private selection among candidates, all under one guarantee; `search.py` defines what they share."""
