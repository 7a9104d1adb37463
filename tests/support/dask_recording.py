"""A Dask preload, or a wrapper here: every message that a process sends, before it is encrypted, into a file.

``RECORDING`` names a folder; messages that are sent while it has a file ``loaded`` are kept apart from earlier ones.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from distributed.comm import tcp
from distributed.comm.utils import to_frames


async def recorded(*arguments: Any, **settings: Any) -> list[Any]:
    frames: list[Any] = await to_frames(*arguments, **settings)
    folder = Path(os.environ["RECORDING"])
    phase = "after" if (folder / "loaded").exists() else "before"
    with (folder / f"{phase}-{os.getpid()}").open("ab") as file:
        for frame in frames:
            file.write(bytes(frame))
    return frames


if "RECORDING" in os.environ:
    tcp.to_frames = recorded
