"""Telling people outside that a request waits, and what became of it."""
