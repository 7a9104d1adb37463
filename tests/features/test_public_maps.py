"""Public feature maps: norms, one row at a time, and descriptions that rebuild them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl

from privlearn.errors import DataError, InvalidParameter, ReleaseError
from privlearn.features import (
    FEATURE_MAPS,
    MapEncoder,
    PublicMap,
    ScatteringFeatures,
    TextFeatures,
    WeightsFeatures,
    map_from_dict,
)

RNG = np.random.default_rng(0)


def example(name: str, directory: Path) -> tuple[PublicMap, Any]:
    """Return a map and rows for it."""
    if name == "text":
        return TextFeatures(dimension=256), ["a cat", "", "ein Hund, ein Haus", "a cat and a dog"] * 20
    if name == "weights":
        path = directory / "encoder.npz"
        np.savez(path, weight_0=RNG.normal(size=(6, 8)), bias_0=np.ones(8), weight_1=RNG.normal(size=(8, 5)))
        return WeightsFeatures(str(path)), RNG.normal(size=(70, 6))
    return ScatteringFeatures((16, 16), projections=40), RNG.integers(0, 256, size=(70, 16, 16)).astype(
        np.uint8
    )


@pytest.mark.parametrize("name", sorted(FEATURE_MAPS))
def test_a_map_is_public_and_reads_one_row_at_a_time(name: str, tmp_path: Path) -> None:
    features, X = example(name, tmp_path)
    rows = features.read(X)
    for kind in ("float32", "float64"):
        vectors = features.transform(rows, kind)
        assert vectors.shape == (len(rows), features.dimension)
        assert np.all(np.sum(vectors.astype(np.longdouble) ** 2, axis=1) <= 1.0)
        order = RNG.permutation(len(rows))[:33]
        assert np.array_equal(features.transform(rows[order], kind), vectors[order])
        assert np.array_equal(features.transform(rows[7:8], kind)[0], vectors[7])
    again = map_from_dict(features.to_dict())
    assert again == features
    assert again.digest == features.digest
    assert np.array_equal(again.transform(rows[:3]), features.transform(rows[:3]))
    with pytest.raises(InvalidParameter, match="does not describe"):
        map_from_dict(features.to_dict() | {"other": 1})


@pytest.mark.parametrize("shape", [(28, 28), (12, 20), (16, 16, 3), (256,)])
def test_scattering_reads_images_colours_and_signals(shape: tuple[int, ...]) -> None:
    features = ScatteringFeatures(shape, value_bounds=(-1, 1), projections=0)
    X = RNG.normal(size=(5, *shape))
    vectors = features.transform(features.read(X))
    assert vectors.shape == (5, features.n_coefficients)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.array_equal(vectors, features.transform(features.read(np.clip(X, -1, 1))))  # clamped


def test_scattering_hardly_moves_with_a_shift_but_sees_a_direction() -> None:
    features = ScatteringFeatures((28, 28))
    image = np.zeros((28, 28))
    image[6:22, 13:15] = 255.0
    shifted, turned = np.roll(image, 1, axis=1), image.T
    one, two, three = features.transform(features.read(np.array([image, shifted, turned])))
    assert one @ two > 0.8 > one @ three


def test_whitened_features_of_other_pictures_share_the_variance_more_evenly() -> None:
    """The map has not seen these pictures: discs at random positions, of random sizes."""
    rows, columns = np.mgrid[:16, :16]
    x, y = RNG.uniform(3, 13, (2, 300, 1, 1))
    pictures = 255.0 * (np.hypot(rows - y, columns - x) < RNG.uniform(1, 6, (300, 1, 1)))

    def directions(whiten: bool) -> float:
        """Return the number of directions of equal variance that have the same ratio of moments."""
        features = ScatteringFeatures((16, 16), projections=200, whiten=whiten)
        variances = np.linalg.eigvalsh(np.cov(features.transform(features.read(pictures)).T))
        return float(variances.sum() ** 2 / (variances**2).sum())

    assert directions(True) > 1.5 * directions(False)


def test_wrong_inputs_are_refused() -> None:
    features = ScatteringFeatures((8, 8))
    with pytest.raises(DataError, match="shape"):
        features.read(np.zeros((3, 9, 9)))
    with pytest.raises(DataError, match="NaN"):
        features.read(np.full((1, 8, 8), np.nan))
    with pytest.raises(DataError, match="list of texts"):
        TextFeatures().read([1, 2])
    with pytest.raises(InvalidParameter, match="value_bounds"):
        ScatteringFeatures((8, 8), value_bounds=(1, 0))
    with pytest.raises(InvalidParameter, match="whiten"):
        ScatteringFeatures((8, 8), whiten="yes")  # type: ignore[arg-type]


def test_another_file_of_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", weight_0=np.eye(3))
    described = WeightsFeatures("a.npz").to_dict()
    np.savez("a.npz", weight_0=2 * np.eye(3))
    with pytest.raises(ReleaseError, match="another file"):
        map_from_dict(described).transform(np.eye(3))
    with pytest.raises(InvalidParameter, match="expected"):
        WeightsFeatures("a.npz", sha256=described["sha256"])
    Path("a.npz").unlink()
    with pytest.raises(ReleaseError, match=r"a\.npz"):
        map_from_dict(described).transform(np.eye(3))


@pytest.mark.filterwarnings("error")
def test_a_row_that_overflows_a_network_has_features_of_zero(tmp_path: Path) -> None:
    """A refusal, or a warning, would show that such a row is there."""
    np.savez(tmp_path / "a.npz", weight_0=np.full((2, 3), 1e30))
    features = WeightsFeatures(str(tmp_path / "a.npz"))
    ordinary, huge = [1.0, 2.0], [[1e300, 1e300], [1e300, -1e300], [3e38, 3e38]]
    alone, *others = features.transform(np.array([ordinary, *huge]))
    assert np.array_equal(alone, features.transform(np.array([ordinary]))[0])
    assert np.linalg.norm(alone) == pytest.approx(1.0)
    assert not np.any(others)


def test_features_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", weight_0=RNG.normal(size=(2000, 513)))
    encoder = MapEncoder(WeightsFeatures(str(tmp_path / "a.npz")))
    X = RNG.normal(size=(30, 2000))
    with threadpoolctl.threadpool_limits(1, "blas"):
        one: Any = encoder.encode(X)
    with threadpoolctl.threadpool_limits(2, "blas"):
        two: Any = encoder.encode(X)
    assert np.array_equal(one, two)


def test_onnx_files_are_run_row_by_row(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    matrix = RNG.normal(size=(4, 3)).astype(np.float32)
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["z"])],
        "encoder",
        [helper.make_tensor_value_info("x", kind, [None, 4])],
        [helper.make_tensor_value_info("z", kind, [None, 3])],
        [onnx.numpy_helper.from_array(matrix, "w")],
    )
    path = tmp_path / "encoder.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    features = WeightsFeatures(str(path))
    X = RNG.normal(size=(9, 4))
    expected = X @ matrix
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1.0)
    assert np.allclose(features.transform(X), expected, atol=1e-6)
