"""The HTTP interface, version 1: one router per noun."""

from privlearn.service.api.routes import add_api

__all__ = ["add_api"]
