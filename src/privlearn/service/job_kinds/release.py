"""Give out a release: a private model as a file with its certificate."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from privlearn.service.job_kinds.job_kind import Asked, Plan, register_job_kind
from privlearn.service.job_kinds.training import TrainingFields, TrainingKind, recipe_of, trained
from privlearn.service.jobs.requests import Result

BYTES = "application/octet-stream"


class ReleaseFields(TrainingFields):
    """A model to be trained and given out."""

    mechanism: Literal["model"] = Field(default="model", description="A release is a model.")


class GiveOutRelease(TrainingKind[ReleaseFields]):
    """The model leaves."""

    name: ClassVar[str] = "release"
    reads_blocks: ClassVar[bool] = True
    title: ClassVar[str] = "a release"
    about: ClassVar[str] = "A release: a model file with a certificate, to use anywhere."
    fields = ReleaseFields

    def on_cluster(self, asked: Asked[ReleaseFields]) -> bool:
        """A linear model of a smooth loss needs sums alone."""
        recipe = recipe_of(asked)
        return recipe.kernel == "linear" and recipe.loss != "hinge" and asked.points is None

    def run(self, asked: Asked[ReleaseFields], plan: Plan, rows: Any, job_id: str) -> Result:
        release = trained(asked, plan, rows)
        return Result(release.certificate.to_dict(), asked.signed(release), BYTES)


GIVE_OUT_RELEASE = register_job_kind(GiveOutRelease())
