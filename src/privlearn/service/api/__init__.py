"""The HTTP interface, version 1: one router a noun."""

from privlearn.service.api.routes import add_api

__all__ = ["add_api"]
