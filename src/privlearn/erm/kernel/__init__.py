"""Kernel machines: the same problems in a space of functions."""
