"""One file that may leave: arrays and JSON in an uncompressed ZIP, no pickle.

    manifest.json       format, versions, SHA-256 of every other member
    certificate.json    what is promised, with every constant
    model.json          encoder, with labels and link or with the bounds of a regression
    coefficients.npy    this depends on the records, and so do the next and the radius in model.json, if they are there
    mean.npy            of centred rows
    public_points.npy   the landmarks of a kernel model, if it has any
    signature.json      optional: Ed25519 signature of the manifest by the data's holder

The archive is canonical (fixed order, times and flags; the SHA-256 of the manifest as its comment), so that reading it
back and writing it again gives the same bytes: any changed byte is found, in content and in container.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from numpy.typing import NDArray

from privlearn.data.encode.centred import CentredEncoder
from privlearn.errors import InvalidParameter, ReleaseError, SchemaError, VerificationError
from privlearn.mechanisms.statistics.centring import Centring
from privlearn.mechanisms.task import Task
from privlearn.release.certificate import Certificate, read_certificate
from privlearn.release.files import read_whole, write_atomically
from privlearn.release.model import Encoder, KernelEncoder, Model, base_of, describe_encoding, model_from_dict

FORMAT = "privlearn release 1"
_JSON_MEMBERS = ("certificate.json", "model.json")
_ARRAYS = ("coefficients", "mean", "public_points")
_RELEASED = {"coefficients", "mean"}


@dataclass(frozen=True, eq=False)
class Release:
    """A model with its certificate, ready to leave."""

    model: Model
    certificate: Certificate
    signature: dict[str, str] | None = None

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all."""
        write_atomically(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path, kernel: Callable[..., Any] | None = None) -> Release:
        """Read a release, refusing any whose bytes, constants or signature contradict each other.

        Parameters
        ----------
        kernel : callable, optional
            The user's own kernel that the model was trained with; a release holds no code.
        """
        return cls.from_bytes(read_whole(path), kernel)

    def signed(self, key: Ed25519PrivateKey) -> Release:
        """The same release with the holder's signature over the manifest, and so over every byte of content."""
        signature = {
            "public_key": key.public_key().public_bytes_raw().hex(),
            "signature": key.sign(self._manifest()).hex(),
        }
        return Release(self.model, self.certificate, signature)

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, and so of all content, whoever signed it: other files name a release by it."""
        return _digest(self._manifest())

    def to_bytes(self) -> bytes:
        members = self._members()
        if self.signature is not None:
            members["signature.json"] = _json_bytes(self.signature)
        return _pack({"manifest.json": self._manifest(), **members}, comment=self.digest)

    @classmethod
    def from_bytes(cls, raw: bytes, kernel: Callable[..., Any] | None = None) -> Release:
        if kernel is not None and not callable(kernel):
            raise InvalidParameter(
                "kernel must be the function that the model was trained with, or be left out"
            )
        members = _unpack(raw)
        try:
            release = cls._parse(members, kernel)
        except InvalidParameter as error:  # our own words, such as the name of an extension that is missing
            raise VerificationError(f"the release cannot be read: {error}") from None
        except (KeyError, TypeError, ValueError, MemoryError, RecursionError, SchemaError) as error:
            raise VerificationError(f"the release is malformed ({type(error).__name__})") from None
        if release.to_bytes() != raw:
            raise VerificationError("the release's bytes were changed after it was written")
        release._check_signature()
        return release

    @classmethod
    def _parse(cls, members: dict[str, bytes], kernel: Callable[..., Any] | None) -> Release:
        manifest = json.loads(members["manifest.json"])
        if manifest["format"] != FORMAT:
            raise ReleaseError(f"this is {manifest['format']!r}; this privlearn reads {FORMAT!r}")
        arrays = {name: f"{name}.npy" for name in _ARRAYS if f"{name}.npy" in manifest["sha256"]}
        for name in (*_JSON_MEMBERS, *arrays.values()):
            if _digest(members[name]) != manifest["sha256"][name]:
                raise VerificationError(f"{name} was changed after the release was written")
        loaded = {name: _read_array(members[member]) for name, member in arrays.items()}
        if any(loaded[name].dtype != np.dtype("<f8") for name in _RELEASED & loaded.keys()):
            raise VerificationError("what was released is in double precision, nothing else")
        model = model_from_dict(json.loads(members["model.json"]), loaded, kernel)
        certificate = read_certificate(json.loads(members["certificate.json"]))
        _check_agreement(model, certificate)
        signature = json.loads(members["signature.json"]) if "signature.json" in members else None
        return cls(model, certificate, signature)

    def _check_signature(self) -> None:
        if self.signature is None:
            return
        try:
            signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.signature["public_key"]))
            signer.verify(bytes.fromhex(self.signature["signature"]), self._manifest())
        except (InvalidSignature, KeyError, TypeError, ValueError):
            raise VerificationError("the signature does not belong to this release") from None

    def _members(self) -> dict[str, bytes]:
        contents = (_json_bytes(self.certificate.to_dict()), _json_bytes(self.model.to_dict()))
        arrays = {f"{name}.npy": _array_bytes(array) for name, array in self.model.arrays().items()}
        return dict(zip(_JSON_MEMBERS, contents, strict=True)) | arrays

    def _manifest(self) -> bytes:
        digests = {name: _digest(content) for name, content in self._members().items()}
        return _json_bytes({"format": FORMAT, "sha256": digests})


def _check_agreement(model: Model, certificate: Certificate) -> None:
    """The certificate must speak of this model."""
    task = certificate.task
    size = task.problems * task.dimension
    # A landmark model keeps one coefficient per public point; its task counts the independent ones among them.
    fits = (
        model.coefficients.size >= size
        if isinstance(model.encoder, KernelEncoder)
        else model.coefficients.size == size
    )
    agree = (
        fits
        and (task.problems == len(model.coefficients) or task.loss.sees == "classes")
        and task.classes in (0, len(model.coefficients))
        and model.is_learnt_by(task.loss)
        and certificate.encoding == describe_encoding(model.encoder)
        and _is_centred_by(model.encoder, task.centring)
        and _counts_persons_like(model.encoder, task)
        and np.isfinite(model.coefficients).all()
    )
    if not agree:
        raise VerificationError("the certificate belongs to another model")


def _counts_persons_like(encoder: Encoder, task: Task) -> bool:
    """Whether a person has as many rows by the schema as by the theorem."""
    schema = getattr(base_of(encoder), "schema", None)
    if schema is None:
        return True
    return task.rows_per_person == schema.rows_per_person and task.averaged == (schema.person is not None)


def _is_centred_by(encoder: Encoder, centring: Centring | None) -> bool:
    """Whether the model's mean is the one that the certificate pays for."""
    if not isinstance(encoder, CentredEncoder) or centring is None:
        return not isinstance(encoder, CentredEncoder) and centring is None
    stated = centring.features == len(encoder.mean) and centring.bound == encoder.base.row_bound
    return stated and encoder.radius in centring.radii


def _pack(members: dict[str, bytes], comment: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)
        archive.comment = comment.encode()
    return buffer.getvalue()


def _unpack(raw: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            entries = archive.infolist()
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not stored or sum(entry.file_size for entry in entries) > len(raw):
                raise VerificationError("not a privlearn release: its members must be stored as they are")
            return {entry.filename: archive.read(entry) for entry in entries}
    # NotImplementedError is zipfile's word for a compression or version it does not know
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, ValueError, OSError) as error:
        raise VerificationError(f"not a privlearn release, or damaged ({type(error).__name__})") from None


def _array_bytes(array: NDArray[np.float64]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _read_array(content: bytes) -> NDArray[np.float64]:
    return np.asarray(np.lib.format.read_array(io.BytesIO(content), allow_pickle=False))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _json_bytes(value: Any) -> bytes:
    # Keys keep their order: that of a schema's columns is the order of the coefficients.
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()
