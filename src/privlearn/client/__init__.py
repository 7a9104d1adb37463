"""A Python client of a privlearn server. Needs the extra ``client``.

Start with `client.Client`. `connection` sends requests, repeats them safely and turns problems into exceptions; `job`
and `session` are what `Client` returns. Only names and errors are shared with `privlearn.server`, not its code.
"""

from privlearn.client.client import Client
from privlearn.client.connection import TrainingFailed, Unreachable
from privlearn.client.job import RemoteJob, RemoteResult
from privlearn.client.session import RemoteSession

__all__ = ["Client", "RemoteJob", "RemoteResult", "RemoteSession", "TrainingFailed", "Unreachable"]
