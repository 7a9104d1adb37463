"""A release in one file: arrays and JSON in an uncompressed ZIP, no pickle.

    manifest.json       format, versions, SHA-256 of every other member
    certificate.json    what is guaranteed, with every constant
    model.json          encoder, with labels and link or with the bounds of a regression
    coefficients.npy    the coefficients of the model
    signature.json      optional: the holder's signature over the manifest

Other members are there only if the model has them:

    mechanism.npy       with a public regularizer: the coefficients as the mechanism released them
    prior.npy           public: the model of regularize_towards, on the grid of the noise
    scales.npy          public: 1/sqrt(g) of regularization_weights g
    mean.npy            the released mean of centred rows; their radius is in model.json
    log_odds.npy        log-odds learnt from counts of scores
    public_points.npy   the landmarks of a kernel model
    refinement.json     the steps that changed the coefficients afterwards, and the digest of the original release
    origin.npy          the coefficients before these steps
    evaluation.privlearn  archive of the noisy counts from which a threshold or calibration was chosen
    moments.privlearn   archive of the noisy second moments from which a regression follows
    run.json            record of a run of several holders: its plan, sums and signatures (`RunRecord`)

Numbers that depend on the records are in the released arrays, in model.json (radius, offsets and units of scores, a
threshold or calibration) and, after a search, in the certificate (the choice and its error). The certificate covers
them, or for noisy counts and what was chosen from them, the certificate of the counts.

The archive is canonical: its order, times and flags are fixed, and the SHA-256 of the manifest is its comment. Reading
it and writing it again gives the same bytes, so any changed byte is detected, in the content and in the container.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, VerificationError
from privlearn.imports import VIEWS
from privlearn.release.agreement import check_agreement, check_noise, check_output
from privlearn.release.archive import (
    SignedArchive,
    array_bytes,
    format_of,
    json_bytes,
    read_array,
    read_whole,
)
from privlearn.release.certificate import Certificate, SearchCertificate
from privlearn.release.counts_file import CountsFile
from privlearn.release.decision import Decision
from privlearn.release.encoders import base_of
from privlearn.release.html import notebook_view
from privlearn.release.model import LinearModel, Model, RegressionModel, model_from_dict
from privlearn.release.moments_file import Moments, MomentsCertificate
from privlearn.release.refinement import Refinement, Step, refinement_from_dict
from privlearn.release.run_record import RunRecord
from privlearn.release.score_map import NAMES

_RELEASED = ("coefficients", *NAMES, "mean", "log_odds")
_ARRAYS = (*_RELEASED, "public_points")
_EVALUATION = "evaluation.privlearn"
_REFINEMENT, _ORIGIN = "refinement.json", "origin.npy"
_RUN, _MOMENTS = "run.json", "moments.privlearn"


@dataclass(frozen=True, eq=False)
class Release(SignedArchive):
    """A model with its certificate, ready to leave.

    Attributes
    ----------
    evaluation : CountsFile, optional
        Noisy counts that the model's threshold or calibration was chosen from, with their own certificate.
    refinement : Refinement, optional
        The steps that changed the coefficients after the release, and the coefficients before.
    run : RunRecord, optional
        For a model of several holders: their agreement, the parties in each sum, and their signatures.
    moments : Moments, optional
        The noisy sum that a regression follows from, with the record of its run.
    """

    model: Model
    certificate: Certificate
    signature: dict[str, str] | None = None
    evaluation: CountsFile | None = None
    refinement: Refinement | None = None
    run: RunRecord | None = None
    moments: Moments | None = None

    format: ClassVar[str] = "privlearn release 1"
    what: ClassVar[str] = "release"

    @classmethod
    def load(cls, path: str | Path, kernel: Callable[..., Any] | None = None) -> Release:
        """Read a release, refusing any whose bytes, constants or signature contradict each other.

        Parameters
        ----------
        kernel : callable, optional
            The user's own kernel that the model was trained with; a release holds no code.
        """
        return cls.from_bytes(read_whole(path), kernel)

    @classmethod
    def from_bytes(cls, raw: bytes, kernel: Callable[..., Any] | None = None) -> Release:
        if kernel is not None and not callable(kernel):
            raise InvalidParameter(
                "kernel must be the function that the model was trained with, or be left out"
            )
        return cls._read(raw, kernel=kernel)

    @classmethod
    def from_moments(cls, moments: Moments, target: str, regularization: float | None = None) -> Release:
        """Return one of the regressions that follow from a noisy sum: post-processing, at no cost beyond the sum's.

        The release carries the sum, so that a reader can compute the coefficients again. All releases from one sum
        share its cost.

        Parameters
        ----------
        target : str
            One of ``moments.targets``.
        regularization : float, optional
            Lambda, as `Moments.model` takes it; by default ``moments.regularization``.
        """
        chosen = moments.regularization if regularization is None else float(regularization)
        model = moments.model(target, chosen)
        return cls(model, moments.certify(model, target, chosen), moments=moments)

    def decided_by(self, decision: Decision, evaluation: CountsFile) -> Release:
        """Return the same model with a threshold or calibration that was chosen from noisy counts of its scores.

        That is post-processing: the new release costs nothing. It carries the counts with the certificate of their
        cost, and both are checked whenever it is read.
        """
        plain = self.undecided
        if not isinstance(plain.model, LinearModel):
            raise InvalidParameter("a regression has no threshold: only a model of two classes does")
        of_probabilities = evaluation.about.get("scale") == "probability"
        if of_probabilities and decision.threshold is not None and not 0.0 <= decision.threshold <= 1.0:
            raise InvalidParameter(
                f"a threshold of {decision.threshold:g} is not a probability. Pass a number from 0 to 1."
            )
        decided = dataclasses.replace(plain.model, decision=decision)
        result = dataclasses.replace(
            plain, model=decided, evaluation=dataclasses.replace(evaluation, signature=None)
        )
        _check_decision(result)
        return result

    def with_threshold(self, threshold: float, evaluation: CountsFile) -> Release:
        """Return the same model with a threshold that was chosen from its evaluation; see `decided_by`."""
        return self.decided_by(Decision(threshold), evaluation)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class or number of each row of a table, a list of dicts, an array, or raw rows; or of one dict."""
        return self.model.predict(_rows(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of `classes_`."""
        return self._classifier.predict_proba(_rows(X))

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the classes, in the order of `predict_proba`."""
        return self._classifier.classes

    @property
    def _classifier(self) -> LinearModel:
        if not isinstance(self.model, LinearModel):
            raise InvalidParameter("a regression has no classes and no probabilities. Use predict")
        return self.model

    def effects(self, curvature: Any = None, *, level: float = 0.95) -> Any:
        """Return the effect of each column on the score, and which effects exceed the noise: `privlearn.effects`."""
        return VIEWS["effects"](self, curvature, level=level)

    def explain(self, X: Any, label: Any = None) -> Any:
        """Return the contribution of each column to the score of each row: `privlearn.contributions`."""
        return VIEWS["contributions"](self, X, label)

    def __repr__(self) -> str:
        return f"<Release: {self._kind}, {self.certificate.headline}>"

    def _repr_html_(self) -> str:
        return notebook_view(
            f"Release: {self.certificate.headline}", {"model": self._kind} | self.certificate.properties
        )

    @property
    def _kind(self) -> str:
        return f"{type(self.model).__name__} of {self.model.coefficients.size} coefficients"

    @property
    def undecided(self) -> Release:
        """Return the release as it was before a threshold or calibration was chosen, unsigned."""
        if not isinstance(self.model, LinearModel):
            return dataclasses.replace(self, signature=None)
        plain = dataclasses.replace(self.model, decision=None)
        return dataclasses.replace(self, model=plain, signature=None, evaluation=None)

    def refined(self, steps: Sequence[Step]) -> Release:
        """Return the same model after steps that read nothing but this release, at no cost.

        It carries the original coefficients, and the steps are repeated whenever it is read.
        """
        if not steps:
            raise InvalidParameter("steps must have at least one step")
        if getattr(self.model, "decision", None) or getattr(self.model, "log_odds", None) is not None:
            raise InvalidParameter(
                "the release's threshold or probabilities were chosen from its scores, which would change. Refine the "
                "release first, then choose them"
            )
        earlier = () if self.refinement is None else self.refinement.steps
        refinement = Refinement((*earlier, *steps), self.origin.model.coefficients)
        model = dataclasses.replace(self.model, coefficients=refinement.apply(self.model.encoder))
        return Release(model, self.certificate, refinement=refinement, run=self.run, moments=self.moments)

    @property
    def origin(self) -> Release:
        """Return the release before it was refined, unsigned; itself, if it was not refined."""
        if self.refinement is None:
            return self
        plain = self.undecided
        model = dataclasses.replace(plain.model, coefficients=self.refinement.origin)
        return Release(model, self.certificate, run=self.run, moments=self.moments)

    @property
    def model_digest(self) -> str:
        """Return the SHA-256 of the trained model and its certificate, as the parties of a run sign them."""
        return dataclasses.replace(self.origin.undecided, run=None).digest

    @classmethod
    def _parse(cls, members: dict[str, bytes], signature: dict[str, str] | None, **settings: Any) -> Release:
        arrays = {name: read_array(members[f"{name}.npy"]) for name in _ARRAYS if f"{name}.npy" in members}
        if any(arrays[name].dtype != np.dtype("<f8") for name in arrays.keys() & _RELEASED):
            raise VerificationError("released arrays must be in double precision")
        model = model_from_dict(json.loads(members["model.json"]), arrays, settings["kernel"])
        certificate = read_certificate(json.loads(members["certificate.json"]))
        check_agreement(model, certificate)
        evaluation = CountsFile.from_bytes(members[_EVALUATION]) if _EVALUATION in members else None
        refinement = None
        if _REFINEMENT in members:
            refinement = refinement_from_dict(json.loads(members[_REFINEMENT]), read_array(members[_ORIGIN]))
        run = RunRecord.from_bytes(members[_RUN]) if _RUN in members else None
        moments = Moments.from_bytes(members[_MOMENTS]) if _MOMENTS in members else None
        release = cls(model, certificate, signature, evaluation, refinement, run, moments)
        _check_refinement(release, members)
        check_output(release.origin.model, certificate)
        check_noise(release.origin.model, certificate)
        _check_decision(release)
        _check_moments(release)
        if run is not None:
            schema = getattr(base_of(model.encoder), "schema", None)
            digest = None if schema is None else schema.digest
            run.check(certificate.mechanism, digest, release.model_digest)
        return release

    def members(self) -> dict[str, bytes]:
        texts = {"certificate.json": self.certificate.to_dict(), "model.json": self.model.to_dict()}
        content = {name: json_bytes(record) for name, record in texts.items()}
        content |= {f"{name}.npy": array_bytes(array) for name, array in self.model.arrays().items()}
        if self.refinement is not None:
            content[_REFINEMENT] = json_bytes(self.refinement.to_dict(self.origin.digest))
            content[_ORIGIN] = array_bytes(self.refinement.origin)
        parts = {_EVALUATION: self.evaluation, _RUN: self.run, _MOMENTS: self.moments}
        return content | {name: part.to_bytes() for name, part in parts.items() if part is not None}


Outcome = Release | CountsFile
"""Result of a run of several holders: a model, or counts; both carry the record of their run."""


def read_outcome(raw: bytes) -> Outcome:
    """Read a release or a file of counts, by its stated format."""
    return CountsFile.from_bytes(raw) if format_of(raw) == CountsFile.format else Release.from_bytes(raw)


def _rows(X: Any) -> Any:
    is_row = isinstance(X, Mapping) and X and all(np.isscalar(cell) or cell is None for cell in X.values())
    return [X] if is_row else X


def _check_refinement(release: Release, members: Mapping[str, bytes]) -> None:
    """Raise VerificationError unless the steps lead from the stated origin to these very coefficients."""
    if release.refinement is None:
        return
    origin = release.refinement.origin
    if origin.shape != release.model.coefficients.shape or origin.dtype != np.dtype("<f8"):
        raise VerificationError(
            "the coefficients before the refinement have a different shape than the model's"
        )
    check_agreement(release.origin.model, release.certificate)
    if json.loads(members[_REFINEMENT])["origin_sha256"] != release.origin.digest:
        raise VerificationError("the release was refined from a different file than the one that it names")
    if not np.array_equal(release.refinement.apply(release.model.encoder), release.model.coefficients):
        raise VerificationError(
            "the steps of the refinement do not lead from the origin's coefficients to the model's"
        )


def _check_decision(release: Release) -> None:
    """Raise VerificationError unless a decision comes with counts of this very model, and no counts come without
    one."""
    decision = release.model.decision if isinstance(release.model, LinearModel) else None
    if decision is None and release.evaluation is None:
        return
    if decision is None or release.evaluation is None:
        raise VerificationError(
            "a threshold or calibration and the counts it was chosen from belong together"
        )
    if release.evaluation.about.get("release_sha256") != release.undecided.digest:
        raise VerificationError("the threshold or calibration was chosen from counts of another model")


def _check_moments(release: Release) -> None:
    """Raise VerificationError unless a regression from a noisy sum comes with that sum and follows from it."""
    certificate, moments, model = release.certificate, release.moments, release.origin.model
    if moments is None and not isinstance(certificate, MomentsCertificate):
        return
    if not (
        moments is not None
        and isinstance(certificate, MomentsCertificate)
        and isinstance(model, RegressionModel)
        and moments.leads_to(model, certificate)
    ):
        raise VerificationError("the model does not follow from the noisy sum that it names")


_CERTIFICATES: dict[str, type[Certificate]] = {
    "search": SearchCertificate,
    "from_moments": MomentsCertificate,
}


def read_certificate(record: Mapping[str, Any]) -> Certificate:
    """Read the certificate of a release, whichever of the three kinds it is."""
    kind = next((kind for name, kind in _CERTIFICATES.items() if name in record), Certificate)
    return kind.from_dict(record)
