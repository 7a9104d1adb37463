"""Flower as the transport."""
