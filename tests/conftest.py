"""Properties are searched the same way in every run, so that a change is judged by what it changed."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
