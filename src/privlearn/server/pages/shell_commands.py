"""Commands to copy from a page: the same action in the shell and in Python."""

from __future__ import annotations


def dataset_commands(address: str, dataset: str, learner: str) -> str:
    server = address.rstrip("/")
    return f"""\
export PRIVLEARN_KEY=pl_...        # your key
privlearn ask --server {server} budget {dataset}
privlearn ask --server {server} estimate {dataset} --learner {learner} --epsilon 0.5 --delta 1e-6
privlearn ask --server {server} release {dataset} --learner {learner} --epsilon 0.5 --delta 1e-6 \\
    --trial --out trial.privlearn

from privlearn.client import Client            # in Python
client = Client("{server}")          # the key is in PRIVLEARN_KEY
session = client.open_session("{dataset}", learner="{learner}", epsilon=0.5, delta=1e-6, trial=True)
print(session.predict(client.synthetic("{dataset}", rows=10)))"""


def session_commands(address: str, session: str) -> str:
    server = address.rstrip("/")
    return f"""\
privlearn ask --server {server} predict {session} new.csv --out predictions.csv
privlearn ask --server {server} certificate {session} --out session.json
privlearn verify session.json

from privlearn.client import Client            # in Python
Client("{server}").session("{session}").predict(table)"""


def release_commands(address: str, release: str, name: str) -> str:
    server = address.rstrip("/")
    return f"""\
privlearn ask --server {server} download {release} --out {name}
privlearn verify {name}
privlearn predict {name} new.csv --out predictions.csv

from privlearn import Release                  # in Python
Release.load("{name}").model.predict(table)"""


KEYS = """\
privlearn keys create owner.toml --analyst NAME
privlearn keys list owner.toml
privlearn keys revoke owner.toml KEY"""
