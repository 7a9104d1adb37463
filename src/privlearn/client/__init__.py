"""Ask a trusted learner over the network: the verbs of the service, from Python. Needs the extra ``client``."""

from privlearn.client.client import Client
from privlearn.client.connection import TrainingFailed, Unreachable
from privlearn.client.job import RemoteJob, RemoteResult
from privlearn.client.session import RemoteSession

__all__ = ["Client", "RemoteJob", "RemoteResult", "RemoteSession", "TrainingFailed", "Unreachable"]
