"""What nobody knows publicly about a table, bought from its rows at a stated price."""

from privlearn.discovery.buying import discover

__all__ = ["discover"]
