"""Rows that stay on the workers of a Dask cluster: only sums over them come back."""
