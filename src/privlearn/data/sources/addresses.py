"""The location of a table: a path on this machine, or an address in S3-compatible storage (`table_path`).

Addresses never contain keys. They are looked up like AWS's own tools do: in the variables
``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``, in the file that ``AWS_SHARED_CREDENTIALS_FILE`` names (by default
``~/.aws/credentials``, with the profile ``AWS_PROFILE``), or from the machine's own role.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from privlearn.errors import DataError, InvalidParameter, MissingPart, is_loopback
from privlearn.imports import arrow_fs

Result = TypeVar("Result")

_BUFFER = 1 << 20  # bytes; without it, each small read of a header would be a request
_OPTIONS_IN_ADDRESS = re.compile(r"\?\w+=")
_BROKEN_ADDRESS = re.compile(r"(s3|file):/[^/]")
_CODE = re.compile(r"AWS Error (\w+)")
_WHERE_KEYS_ARE = (
    "keys to the storage are looked up like AWS's tools do (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the file "
    "~/.aws/credentials)"
)


def compression(path: Path | PurePosixPath) -> str | None:
    """Return the compression that the ending of a file's name states; None for plain files."""
    return {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())


@dataclass(frozen=True, order=True)
class StoredPath:
    """A file, directory or pattern in a bucket, with the methods of `pathlib.Path` that readers of files need.

    Parameters
    ----------
    key : PurePosixPath
        The bucket, and the names below it.
    endpoint, region : str, optional
        Endpoint and region of the storage; by default the variables ``AWS_ENDPOINT_URL_S3`` or
        ``AWS_ENDPOINT_URL``, and ``AWS_REGION``.
    """

    key: PurePosixPath
    endpoint: str | None = None
    region: str | None = None

    def __str__(self) -> str:
        return f"s3://{self.key}"

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def suffix(self) -> str:
        return self.key.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        return self.key.parts

    def ancestor(self, parts: int) -> StoredPath:
        """Return the directory that the first `parts` parts of the address name."""
        return StoredPath(PurePosixPath(*self.parts[:parts]), self.endpoint, self.region)

    def relative_to(self, root: StoredPath) -> PurePosixPath:
        return self.key.relative_to(root.key)

    def is_file(self) -> bool:
        return bool(self._kind() == arrow_fs.FileType.File)

    def is_dir(self) -> bool:
        return bool(self._kind() == arrow_fs.FileType.Directory)

    def files_below(self) -> Iterator[StoredPath]:
        """Yield all files in a directory and below it."""
        below = arrow_fs.FileSelector(str(self.key), recursive=True, allow_not_found=True)
        for info in self._request(lambda: self._storage().get_file_info(below)):
            if info.type == arrow_fs.FileType.File:
                yield StoredPath(PurePosixPath(info.path), self.endpoint, self.region)

    def open(self) -> Any:
        """Open the file for random access."""
        return self._request(lambda: self._storage().open_input_file(str(self.key)))

    def stream(self) -> Any:
        """Open the file as a stream, decompressed if its name has such an ending."""
        return self._request(
            lambda: self._storage().open_input_stream(
                str(self.key), compression=compression(self.key), buffer_size=_BUFFER
            )
        )

    def state(self) -> tuple[object, ...] | None:
        """Return what changes when the file is written again: length, time and ETag; None without a file."""
        if not self.is_file():
            return None
        with self.open() as file:
            metadata = file.metadata()
        return tuple(metadata[name] for name in ("Content-Length", "Last-Modified", "ETag"))

    def size(self) -> int:
        """Return the size in bytes."""
        return int(self._request(lambda: self._storage().get_file_info(str(self.key)).size))

    def _kind(self) -> Any:
        return self._request(lambda: self._storage().get_file_info(str(self.key)).type)

    def _storage(self) -> Any:
        return _storage(*_connection_settings(self.endpoint, self.region))

    def _request(self, send: Callable[[], Result]) -> Result:
        """Return the storage's answer; of its errors, only the code is passed on."""
        try:
            return send()
        except (MissingPart, InvalidParameter):
            raise
        except (OSError, ValueError) as error:
            code = _CODE.search(str(error))
        reason = f" ({code[1]})" if code else ""
        raise DataError(
            f"the storage did not return {self}{reason}. Check the address, endpoint and region; {_WHERE_KEYS_ARE}"
        )


TablePath: TypeAlias = "Path | StoredPath"


def table_path(
    address: str | Path | StoredPath, *, endpoint: str | None = None, region: str | None = None
) -> TablePath:
    """Return a path, or an address that begins with ``file://`` or ``s3://``; no message repeats a key in one.

    Parameters
    ----------
    address : str or path
    endpoint, region : str, optional
        Of S3-compatible storage, as in `StoredPath`.
    """
    if isinstance(address, StoredPath):
        return address
    if _BROKEN_ADDRESS.match(str(address)):
        raise InvalidParameter("a Path loses one slash of an address. Pass the address as text.")
    if isinstance(address, Path) or "://" not in address:
        return Path(address)
    scheme, _, rest = address.partition("://")
    host = rest.partition("/")[0]
    if "@" in host or _OPTIONS_IN_ADDRESS.search(rest):
        raise InvalidParameter(
            f"an address must contain no key and no option, because others may see it. Remove them: {_WHERE_KEYS_ARE}, "
            "the endpoint in AWS_ENDPOINT_URL or, for a server, in owner.toml"
        )
    if scheme == "file" and host in ("", "localhost"):
        return Path(unquote(rest.removeprefix("localhost")))
    if scheme != "s3" or not host:
        raise InvalidParameter(
            "the address of a table must be a path, file:///directory/file.parquet or s3://bucket/directory/"
        )
    return StoredPath(PurePosixPath(rest), endpoint, region)


def check_endpoint(endpoint: str) -> str:
    """Return the endpoint of a storage; refuse one that is malformed, contains a key or is not encrypted."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InvalidParameter(
            "the endpoint of a storage must be https://host or https://host:port, without a key. Correct it; "
            f"{_WHERE_KEYS_ARE}"
        )
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InvalidParameter(
            "an endpoint must end with its host or port. Write the bucket in the address, s3://bucket/"
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise InvalidParameter("rows would be sent unencrypted. Use an endpoint that begins with https://")
    return endpoint


def _connection_settings(endpoint: str | None, region: str | None) -> tuple[str | None, ...]:
    """Return endpoint, region and certificate authority; the variables of AWS's tools state what is None."""
    variable = os.environ.get
    endpoint = endpoint or variable("AWS_ENDPOINT_URL_S3") or variable("AWS_ENDPOINT_URL") or None
    region = region or variable("AWS_REGION") or variable("AWS_DEFAULT_REGION") or None
    return endpoint, region, variable("AWS_CA_BUNDLE") or None


@cache
def _storage(endpoint: str | None, region: str | None, authority: str | None) -> Any:
    """Return a connection, which looks up its keys itself."""
    parts = urlsplit("https:" if endpoint is None else check_endpoint(endpoint))
    return arrow_fs.S3FileSystem(
        region=region, endpoint_override=parts.netloc or None, scheme=parts.scheme, tls_ca_file_path=authority
    )
