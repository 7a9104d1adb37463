"""`WeightsFeatures`: a public encoder in a file of weights, named by the SHA-256 of the file.

An ``.npz`` file has the layers of a network: ``weight_0`` of shape (inputs, outputs) and optionally ``bias_0``, then
``weight_1``, and so on, with ``max(0, x)`` between layers. An ``.onnx`` file is run by onnxruntime. Both are run on one
row at a time, so that a row's features depend on that row alone. The file is not part of a release.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import DataError, InvalidParameter, ReleaseError
from privlearn.features.public_map import PublicMap, register_feature_map

ENDINGS = (".npz", ".onnx")
MAX_BYTES = 1 << 31

_paths: dict[str, Path] = {}
"""Files that were opened in this process, by SHA-256."""


@register_feature_map
class WeightsFeatures(PublicMap):
    """Features of a public encoder: its outputs, divided by their norm where it is above 1.

    Parameters
    ----------
    file : str
        Path of an ``.npz`` or ``.onnx`` file; a release states its name. To predict, put the file in the current
        directory, or create ``WeightsFeatures(path)`` before.
    sha256 : str, optional
        Expected digest; another file is refused.
    input_shape, dimension
        Read from the file; a release states them.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "encoder.npz")
    >>> np.savez(path, weight_0=np.ones((4, 3)))
    >>> WeightsFeatures(path).dimension
    3
    """

    name = "weights"
    settings = ("file", "sha256", "input_shape", "dimension")

    def __init__(
        self, file: str, sha256: str | None = None, input_shape: Any = None, dimension: int | None = None
    ) -> None:
        self.file = Path(file).name
        if Path(file).suffix not in ENDINGS:
            raise InvalidParameter(f"weights must be in a file that ends with {' or '.join(ENDINGS)}")
        if sha256 is not None and input_shape is not None and dimension is not None:
            self.sha256, self.input_shape, self.dimension = sha256, tuple(input_shape), dimension
            return
        digest = _digest(Path(file))
        if sha256 not in (None, digest):
            raise InvalidParameter(
                f"{self.file} has the SHA-256 {digest}, not the expected one. Pass the right file."
            )
        _paths[digest] = Path(file)
        self.sha256 = digest
        self.input_shape = self._network.input_shape
        self.dimension = len(self._network(np.zeros(self.input_shape, dtype=np.float32)))

    @cached_property
    def _network(self) -> Any:
        path = _paths.get(self.sha256, Path(self.file))
        if not path.exists():
            raise ReleaseError(
                f"the features need {self.file} (SHA-256 {self.sha256}), which is not part of a release. Put it in "
                "the current directory"
            )
        if _digest(path) != self.sha256:
            raise ReleaseError(
                f"{self.file} is another file than the one with SHA-256 {self.sha256}. Replace it"
            )
        return _Layers(path) if path.suffix == ".npz" else _Onnx(path)

    def _fill(self, X: Any, out: Any) -> None:
        """Write the features; a row whose outputs are not finite has features 0, since a refusal would depend on it."""
        max_input = np.finfo(np.float32).max
        for index, row in enumerate(X):
            with np.errstate(all="ignore"):  # a warning would depend on the row
                inputs = np.clip(row, -max_input, max_input).astype(np.float32).reshape(self.input_shape)
                outputs = self._network(inputs).astype(np.float64)
            if outputs.shape != (self.dimension,):
                raise DataError("the encoder's outputs have different lengths. Use one with a fixed length.")
            if not np.isfinite(outputs).all():
                outputs = np.zeros(self.dimension)
            largest = max(float(np.max(np.abs(outputs))), np.finfo(np.float64).tiny)
            scaled = outputs / largest  # no square overflows
            # In exact arithmetic this is outputs / max(norm, 1).
            out[index] = scaled / max(float(np.sqrt(scaled @ scaled)), 1.0 / largest)


class _Layers:
    """A network in an ``.npz`` file."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as arrays:
            content = {name: np.asarray(arrays[name], dtype=np.float32) for name in arrays.files}
        weights = [
            content.pop(f"weight_{index}") for index in range(len(content)) if f"weight_{index}" in content
        ]
        self._layers = [(weight, content.pop(f"bias_{index}", None)) for index, weight in enumerate(weights)]
        fits = all(weight.ndim == 2 for weight in weights) and all(
            before.shape[1] == after.shape[0] for before, after in pairwise(weights)
        )
        if content or not weights or not fits:
            raise InvalidParameter(
                f"{path.name} must contain weight_0, bias_0, weight_1, ...: matrices of shape (inputs, outputs)"
            )
        self.input_shape = (weights[0].shape[0],)

    def __call__(self, row: NDArray[np.float32]) -> Any:
        for index, (weight, bias) in enumerate(self._layers):
            row = (np.maximum(row, 0.0) if index else row) @ weight
            row = row if bias is None else row + bias
        return row


class _Onnx:
    """A network in an ``.onnx`` file with one input and one output, on one core."""

    def __init__(self, path: Path) -> None:
        try:
            runtime = import_module("onnxruntime")
        except ModuleNotFoundError:
            raise InvalidParameter("an .onnx file needs onnxruntime: pip install onnxruntime") from None
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0]
        self.input_shape = tuple(self._input.shape[1:])
        if not self.input_shape or not all(isinstance(side, int) for side in self.input_shape):
            raise InvalidParameter(
                f"{path.name} must state the shape of a row: only its first dimension may be open"
            )

    def __call__(self, row: NDArray[np.float32]) -> Any:
        (outputs, *_) = self._session.run(None, {self._input.name: row[np.newaxis]})
        return np.asarray(outputs, dtype=np.float32).reshape(-1)


def _digest(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise InvalidParameter(f"there is no file {path.name} of at most 2 GB here. Check its path.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
