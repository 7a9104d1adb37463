"""A run of several holders: its plan, its parties, its coordinator; without a transport."""
