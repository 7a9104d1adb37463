"""Archives in one canonical form, with a digest of every member and an optional signature over them.

Reading and rewriting gives the same bytes, so any changed byte is detected, in the content and in the container. Files
are read whole, and written whole or not at all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import secrets
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from cryptography.exceptions import InvalidSignature
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter, ReleaseError, SchemaError, VerificationError
from privlearn.release.signatures import SigningKey, check_record, signature_by


def write_atomically(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write next to the target, flush to disk, then rename over it: a crash leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            for piece in (content,) if isinstance(content, bytes) else content:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_new(path: str | Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file atomically; refuse to replace an existing one unless ``overwrite``: a release costs budget to
    repeat."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise InvalidParameter(f"{path} exists. Give another name, or overwrite=True to replace it")
    write_atomically(path, content)


def read_whole(path: str | Path) -> bytes:
    """Return the bytes of a file; raise ReleaseError with its path if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ReleaseError(f"cannot read {path}: {error.strerror}") from None


MANIFEST, SIGNATURE = "manifest.json", "signature.json"

_KINDS = {
    "privlearn release": "a release (a model), as `privlearn train` writes it",
    "privlearn counts": "an evaluation, a description or another file of noisy counts",
}


def _another_file(found: str, expected: str) -> str:
    """Return the message for a file of another kind or version."""
    kind, own = (_KINDS.get(form.rpartition(" ")[0]) for form in (found, expected))
    if kind is None or kind == own:
        return f"this is {found!r}; this privlearn reads {expected!r}"
    hint = ". `privlearn inspect FILE --out PAGE.html` writes a page of it" if "counts" in found else ""
    return f"this is {kind}: give {own}{hint}"


class SignedArchive(ABC):
    """Base class of all such files. Subclasses are frozen dataclasses with a field ``signature``."""

    format: ClassVar[str]
    what: ClassVar[str]
    """Name of the kind of file in messages: "release"."""
    signature: dict[str, str] | None

    @abstractmethod
    def members(self) -> dict[str, bytes]:
        """Return the content by name, in the order of the archive."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the manifest, and so of every byte of content; a signature does not change it."""
        return digest_of(self._manifest())

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the file, whole or not at all; an existing file is only replaced with ``overwrite=True``."""
        write_new(path, self.to_bytes(), overwrite=overwrite)

    def signed(self, key: SigningKey) -> Self:
        """Return a copy with the holder's signature over the manifest, and so over every byte of content."""
        signature = signature_by(key, self._manifest())
        return dataclasses.replace(self, signature=signature)  # type: ignore[type-var]

    def to_bytes(self) -> bytes:
        members = self.members()
        if self.signature is not None:
            members[SIGNATURE] = json_bytes(self.signature)
        return pack({MANIFEST: self._manifest(), **members}, comment=self.digest)

    @classmethod
    def _read(cls, raw: bytes, **settings: Any) -> Self:
        """Read a file from bytes; raise ReleaseError or VerificationError unless everything in it agrees."""
        members = unpack(raw)
        try:
            cls._check_digests(members)
            signature = json.loads(members[SIGNATURE]) if SIGNATURE in members else None
            result = cls._parse(members, signature, **settings)
        except InvalidParameter as error:  # has a message for users, such as the name of a missing extension
            raise VerificationError(f"the {cls.what} cannot be read: {error}") from None
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            MemoryError,
            RecursionError,
            SchemaError,
        ) as error:
            raise VerificationError(f"the {cls.what} is malformed ({type(error).__name__})") from None
        if result.to_bytes() != raw:
            raise VerificationError(f"the {cls.what}'s bytes were changed after it was written")
        result._check_signature()
        return result

    @classmethod
    @abstractmethod
    def _parse(cls, members: dict[str, bytes], signature: dict[str, str] | None, **settings: Any) -> Self:
        """Return the object that the members describe."""

    @classmethod
    def _check_digests(cls, members: dict[str, bytes]) -> None:
        manifest = json.loads(members[MANIFEST])
        if manifest["format"] != cls.format:
            raise ReleaseError(_another_file(str(manifest["format"]), cls.format))
        for name, digest in manifest["sha256"].items():
            if digest_of(members[name]) != digest:
                raise VerificationError(f"{name} was changed after the {cls.what} was written")

    def _check_signature(self) -> None:
        if self.signature is None:
            return
        try:
            check_record(self.signature, self._manifest())
        except (InvalidSignature, KeyError, TypeError, ValueError):
            raise VerificationError(f"the signature does not belong to this {self.what}") from None

    def _manifest(self) -> bytes:
        digests = {name: digest_of(content) for name, content in self.members().items()}
        return json_bytes({"format": self.format, "sha256": digests})


def format_of(raw: bytes) -> str:
    """Return the format that an archive states; empty if it states none."""
    try:
        return str(json.loads(unpack(raw)[MANIFEST])["format"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""


def pack(members: dict[str, bytes], comment: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)
        archive.comment = comment.encode()
    return buffer.getvalue()


def unpack(raw: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            entries = archive.infolist()
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not stored or sum(entry.file_size for entry in entries) > len(raw):
                raise VerificationError("not a privlearn release: its members must be stored as they are")
            return {entry.filename: archive.read(entry) for entry in entries}
    # RuntimeError is what zipfile raises at a compression or version that it does not know
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, OSError) as error:
        raise VerificationError(f"not a privlearn release, or damaged ({type(error).__name__})") from None


def array_bytes(array: NDArray[np.float64]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def read_array(content: bytes) -> NDArray[np.float64]:
    return np.asarray(np.lib.format.read_array(io.BytesIO(content), allow_pickle=False))


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def json_bytes(value: Any) -> bytes:
    # Keys keep their order: that of a schema's columns is the order of the coefficients.
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()
