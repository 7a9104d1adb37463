"""Noisy counts, and what follows from them."""
