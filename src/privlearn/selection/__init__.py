"""Choosing among candidates under one promise: the choice, what it reveals and the fit are charged once."""

from privlearn.selection.search import PrivateGridSearch

__all__ = ["PrivateGridSearch"]
