"""Kernel machines with certified gaps; start with `dual.py` (docs/theory/kernel-machine.md)."""
