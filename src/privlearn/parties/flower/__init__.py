"""Flower as the transport of a run.

Start with `run.py`, which has both sides; `link.py` is the coordinator's connection, `node.py` a party's, `apps.py` the
form of messages. Only this directory imports Flower, and only `run.py` can be imported without it. It may import
`parties.run`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.parties.flower.apps import FlowerExchange, client_app, server_app
else:
    __getattr__ = export_late(__name__)
