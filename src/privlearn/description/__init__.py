"""What one looks at first: counts, histograms, quantiles, missing shares and correlations, for one price."""

from privlearn.description.description import Description
from privlearn.description.measuring import describe

__all__ = ["Description", "describe"]
