"""What one party decides for itself: where its things are, and the limits that no plan may exceed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictInt, StrictStr

from privlearn.data.schema.documents import read_toml
from privlearn.data.schema.public import PublicModel
from privlearn.errors import InvalidParameter
from privlearn.multiparty.run.joint_plan import JointPlan


class PartySettings(PublicModel):
    """One party's file; paths are relative to its folder.

    Parameters
    ----------
    name : str
        In the plan.
    plan : path
        The plan that this party has read and agreed to; the coordinator must come with the same.
    identity : path
        The party's private key, made by `privlearn identity`.
    coordinator : str
        Host and port.
    certificate : path
        The coordinator's TLS certificate, or that of the authority which signed it.
    ledger : str
        Where this party's budget is kept: a path, or ``postgresql://user@host/database``.
    dataset : str, optional
        Its name in the ledger; by default the schema's.
    max_epsilon, max_delta : float
        The most that a plan may cost.
    max_questions : int, optional
        The most that a plan may ask.
    schema_digest : str, optional
        SHA-256 of the one schema that this party's table may be read with.
    model : path, optional
        Where to write the release that the coordinator sends at the end.
    state : path, optional
        Folder of what a run keeps until it is over; by default that of this file.
    wait_seconds : float, default=600
        How long to try to connect.
    patience_seconds : float, default=1800
        How long the coordinator may be silent: it may wait for another party, or be started again after a crash.
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
    schema_digest: StrictStr | None = None
    model: Path | None = None
    state: Path = Path(".")
    wait_seconds: Annotated[float, Field(gt=0)] = 600.0
    patience_seconds: Annotated[float, Field(gt=0)] = 1800.0

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

    def check(self, plan: JointPlan) -> None:
        """Refuse a plan that goes beyond this party's limits."""
        cost, questions = plan.guarantee, len(plan.mechanism.kinds)
        schema = plan.table_schema.digest
        if self.name not in plan.parties:
            raise InvalidParameter(f"the plan has no party {self.name!r}: it lists {', '.join(plan.parties)}")
        if cost.epsilon > self.max_epsilon or cost.delta > self.max_delta:
            raise InvalidParameter(
                f"the plan costs {cost}, above this party's max_epsilon {self.max_epsilon:g} or max_delta "
                f"{self.max_delta:g}: agree on a cheaper plan"
            )
        if self.max_questions is not None and questions > self.max_questions:
            raise InvalidParameter(
                f"the plan asks {questions} questions, above this party's max_questions {self.max_questions}"
            )
        if self.schema_digest is not None and self.schema_digest != schema:
            raise InvalidParameter(
                f"the plan's schema has the digest {schema}, not this party's schema_digest"
            )
