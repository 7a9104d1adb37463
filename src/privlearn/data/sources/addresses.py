"""Where a table is: a path of this machine, or an address in S3-compatible storage. One place turns words into either.

Keys to the storage never stand in an address. They are found as AWS's own tools find them: in the variables
``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``, in the file that ``AWS_SHARED_CREDENTIALS_FILE`` names (by default
``~/.aws/credentials``, where ``AWS_PROFILE`` chooses a part), or from the machine's own role.
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

from privlearn.errors import DataError, InvalidParameter, MissingPart
from privlearn.heavy import arrow_fs
from privlearn.listening import is_loopback

Result = TypeVar("Result")

_BUFFER = 1 << 20  # bytes; small reads of a header would be a request each
_OPTIONS_IN_ADDRESS = re.compile(r"\?\w+=")
_BROKEN_ADDRESS = re.compile(r"(s3|file):/[^/]")
_CODE = re.compile(r"AWS Error (\w+)")
_WHERE_KEYS_ARE = (
    "keys to the storage are found as AWS's tools find them (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the file "
    "~/.aws/credentials)"
)


@dataclass(frozen=True, order=True)
class StoredPath:
    """A file, folder or pattern in a bucket, with what readers of files need of `pathlib.Path`.

    Parameters
    ----------
    place : PurePosixPath
        The bucket, and the names below it.
    endpoint, region : str, optional
        Of the storage; by default the variables ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL``, and ``AWS_REGION``.
    """

    place: PurePosixPath
    endpoint: str | None = None
    region: str | None = None

    def __str__(self) -> str:
        return f"s3://{self.place}"

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def suffix(self) -> str:
        return self.place.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        return self.place.parts

    def above(self, parts: int) -> StoredPath:
        """The folder that the first so many parts of the address name."""
        return StoredPath(PurePosixPath(*self.parts[:parts]), self.endpoint, self.region)

    def relative_to(self, root: StoredPath) -> PurePosixPath:
        return self.place.relative_to(root.place)

    def is_file(self) -> bool:
        return bool(self._kind() == arrow_fs.FileType.File)

    def is_dir(self) -> bool:
        return bool(self._kind() == arrow_fs.FileType.Directory)

    def files_below(self) -> Iterator[StoredPath]:
        """All files in a folder and in folders below it."""
        below = arrow_fs.FileSelector(str(self.place), recursive=True, allow_not_found=True)
        for found in self._asked(lambda: self._storage().get_file_info(below)):
            if found.type == arrow_fs.FileType.File:
                yield StoredPath(PurePosixPath(found.path), self.endpoint, self.region)

    def open(self) -> Any:
        """To read here and there."""
        return self._asked(lambda: self._storage().open_input_file(str(self.place)))

    def stream(self) -> Any:
        """To read from the beginning; unpacked if the name says that it is packed."""
        return self._asked(
            lambda: self._storage().open_input_stream(
                str(self.place), compression="detect", buffer_size=_BUFFER
            )
        )

    def state(self) -> tuple[object, ...] | None:
        """What changes when the file is written again: length, time, and the storage's own mark of its content."""
        if not self.is_file():
            return None
        with self.open() as file:
            about = file.metadata()
        return tuple(about[name] for name in ("Content-Length", "Last-Modified", "ETag"))

    def size(self) -> int:
        """In bytes."""
        return int(self._asked(lambda: self._storage().get_file_info(str(self.place)).size))

    def _kind(self) -> Any:
        return self._asked(lambda: self._storage().get_file_info(str(self.place)).type)

    def _storage(self) -> Any:
        return _storage(*_as_told(self.endpoint, self.region))

    def _asked(self, ask: Callable[[], Result]) -> Result:
        """What the storage answers; its own words are withheld, and only the name of its error is told."""
        try:
            return ask()
        except (MissingPart, InvalidParameter):
            raise
        except (OSError, ValueError) as error:
            found = _CODE.search(str(error))
        code = f" ({found[1]})" if found else ""
        raise DataError(
            f"the storage did not give {self}{code}: check the address, endpoint and region; {_WHERE_KEYS_ARE}"
        )


TablePath: TypeAlias = "Path | StoredPath"


def table_path(
    place: str | Path | StoredPath, *, endpoint: str | None = None, region: str | None = None
) -> TablePath:
    """A path, or an address that begins with ``file://`` or ``s3://``; no message repeats a key that stands in one.

    Parameters
    ----------
    place : str or path
    endpoint, region : str, optional
        Of S3-compatible storage, as in `StoredPath`.
    """
    if isinstance(place, StoredPath):
        return place
    if _BROKEN_ADDRESS.match(str(place)):
        raise InvalidParameter("give an address as text: a Path loses one of its slashes")
    if isinstance(place, Path) or "://" not in place:
        return Path(place)
    scheme, _, rest = place.partition("://")
    host = rest.partition("/")[0]
    if "@" in host or _OPTIONS_IN_ADDRESS.search(rest):
        raise InvalidParameter(
            f"an address of a table must hold no key and no option, they would be seen: {_WHERE_KEYS_ARE}, the "
            "endpoint in AWS_ENDPOINT_URL or, for a server, in owner.toml"
        )
    if scheme == "file" and host in ("", "localhost"):
        return Path(unquote(rest.removeprefix("localhost")))
    if scheme != "s3" or not host:
        raise InvalidParameter(
            "an address of a table is a path, file:///folder/file.parquet or s3://bucket/folder/: give one of these"
        )
    return StoredPath(PurePosixPath(rest), endpoint, region)


def check_endpoint(endpoint: str) -> str:
    """Refuse the address of a storage that cannot be used, that holds a key, or that rows would leave in the clear."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InvalidParameter(
            "an endpoint of a storage is https://host or https://host:port, without a key: "
            f"write it like that; {_WHERE_KEYS_ARE}"
        )
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InvalidParameter(
            "an endpoint ends with its host or port: the bucket stands in the address, s3://bucket/"
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise InvalidParameter(
            "rows would come from the storage in the clear: give an endpoint that begins with https://"
        )
    return endpoint


def _as_told(endpoint: str | None, region: str | None) -> tuple[str | None, ...]:
    """What was said, or else what the variables of AWS's tools say; and whom to trust."""
    told = os.environ.get
    endpoint = endpoint or told("AWS_ENDPOINT_URL_S3") or told("AWS_ENDPOINT_URL") or None
    region = region or told("AWS_REGION") or told("AWS_DEFAULT_REGION") or None
    return endpoint, region, told("AWS_CA_BUNDLE") or None


@cache
def _storage(endpoint: str | None, region: str | None, authority: str | None) -> Any:
    """A connection; it looks for keys by itself."""
    parts = urlsplit("https:" if endpoint is None else check_endpoint(endpoint))
    return arrow_fs.S3FileSystem(
        region=region,
        endpoint_override=parts.netloc or None,
        scheme=parts.scheme,
        tls_ca_file_path=authority,
    )
