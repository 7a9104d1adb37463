"""PartySettings: one party's own file, with its paths and the limits that no agreement may exceed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictInt, StrictStr

from privlearn.data.schema.documents import read_toml
from privlearn.data.schema.public import PublicModel
from privlearn.errors import InvalidParameter
from privlearn.mechanisms.summed.summed import adds_whole_noise
from privlearn.parties.run.agreement import Agreement


class PartySettings(PublicModel):
    """One party's settings; paths are relative to the directory of their file.

    Parameters
    ----------
    name : str
        The party's name in the agreement.
    plan : path
        The agreement that this party has read and accepted; the coordinator must come with the same.
    identity : path
        The party's private key, created by `privlearn identity`.
    coordinator : str
        Host and port.
    certificate : path
        The coordinator's TLS certificate, or that of the authority which signed it.
    ledger : str
        This party's budget: a path, or ``postgresql://user@host/database``.
    dataset : str, optional
        Its name in the ledger; by default the schema's.
    max_epsilon, max_delta : float
        Maximum cost of an agreement, towards the coordinator and towards the other parties.
    max_questions : int, optional
        Maximum number of questions.
    min_colluding : int, default=1
        Minimum number of colluding parties that an agreement must allow for. Each party knows its own noise, so with 0
        the other parties see this party's records under a weaker guarantee. An agreement in which every party adds all
        of the noise is accepted with any number.
    schema_digest : str, optional
        SHA-256 of the only schema with which this party's table may be read.
    model : path, optional
        Where to write the release that the coordinator sends at the end.
    state : path, optional
        Directory of the run's checkpoint; by default that of this file.
    wait_seconds : float, default=600
        How long to try to connect.
    timeout_seconds : float, default=1800
        Timeout of a run without progress: the coordinator may wait for another party, or restart after a crash.
    """

    name: StrictStr
    plan: Path
    identity: Path
    coordinator: Annotated[StrictStr, Field(pattern=r"^\S+:\d+$")]
    certificate: Path
    ledger: StrictStr
    max_epsilon: Annotated[float, Field(gt=0)]
    max_delta: Annotated[float, Field(ge=0, lt=1)]
    dataset: StrictStr | None = None
    max_questions: Annotated[StrictInt, Field(ge=1)] | None = None
    min_colluding: Annotated[StrictInt, Field(ge=0)] = 1
    schema_digest: StrictStr | None = None
    model: Path | None = None
    state: Path = Path(".")
    wait_seconds: Annotated[float, Field(gt=0)] = 600.0
    timeout_seconds: Annotated[float, Field(gt=0)] = 1800.0

    @classmethod
    def load(cls, path: str | Path) -> PartySettings:
        """Read a .toml file."""
        path = Path(path)
        content = {"state": "."} | read_toml(path)
        for name in ("plan", "identity", "certificate", "ledger", "model", "state"):
            value = content.get(name)
            if isinstance(value, str) and "://" not in value:
                content[name] = str(path.parent / value)
        return cls(**content)

    def check(self, agreement: Agreement) -> None:
        """Refuse an agreement that exceeds this party's limits."""
        cost, questions = agreement.towards_a_party, len(agreement.mechanism.kinds)
        schema = agreement.table_schema.digest
        if self.name not in agreement.parties:
            raise InvalidParameter(
                f"the agreement has no party {self.name!r}. Its parties are {', '.join(agreement.parties)}"
            )
        if agreement.colluding < self.min_colluding and not adds_whole_noise(agreement.mechanism):
            raise InvalidParameter(
                f"the agreement allows for {agreement.colluding} colluding parties, below this party's min_colluding "
                f"{self.min_colluding}. Raise colluding in the agreement, or lower min_colluding"
            )
        if cost is None:
            raise InvalidParameter("the agreement has no guarantee towards other parties. Set colluding to 1")
        if cost.epsilon > self.max_epsilon or cost.delta > self.max_delta:
            towards = "" if cost == agreement.guarantee else " towards another party"
            raise InvalidParameter(
                f"the agreement costs {cost}{towards}, above this party's max_epsilon {self.max_epsilon:g} or "
                f"max_delta {self.max_delta:g}. Sign a cheaper one"
            )
        if self.max_questions is not None and questions > self.max_questions:
            raise InvalidParameter(
                f"the agreement has {questions} questions, above this party's max_questions {self.max_questions}"
            )
        if self.schema_digest is not None and self.schema_digest != schema:
            raise InvalidParameter(
                f"the agreement's schema has the digest {schema}, not this party's schema_digest"
            )
