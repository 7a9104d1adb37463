"""Every kernel is symmetric, positive semidefinite, bounded as it says, and refuses what it cannot use."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import pairwise

from privlearn.errors import DataError, InvalidParameter
from privlearn.features import (
    KERNELS,
    Kernel,
    ShiftInvariantKernel,
    kernel_from_dict,
    kernel_from_name,
    kernel_names,
)
from tests.support.feature_cases import SHIFT_INVARIANT, VECTOR_KERNELS, WORDS, ball, spectrum

over_kernels = pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=str)
CANARY = 7364518209.0


def test_the_list_is_tested_whole() -> None:
    assert {kernel.name for kernel in VECTOR_KERNELS} | {"precomputed"} == set(KERNELS)
    assert {kernel.name for kernel in SHIFT_INVARIANT} == set(kernel_names(ShiftInvariantKernel))
    assert {kernel.name for kernel, _ in DEFINITIONS} == set(kernel_names()), "write its formula out below"


@over_kernels
def test_symmetric_and_positive_semidefinite(kernel: Kernel) -> None:
    points = ball(60)
    gram = kernel(points, points)
    assert gram.shape == (60, 60)
    assert gram.dtype == np.float64
    assert_allclose(gram, gram.T, rtol=1e-13)
    assert np.linalg.eigvalsh(gram)[0] > -1e-12 * kernel.bound
    assert_allclose(kernel.diagonal(points), np.diagonal(gram), rtol=1e-12)


@over_kernels
def test_the_bound_holds_on_the_unit_ball_and_is_attained(kernel: Kernel) -> None:
    diagonal = kernel.diagonal(ball(500))
    assert diagonal.max() <= kernel.bound * (1 + 1e-12)
    assert_allclose(kernel.diagonal(np.eye(3)), kernel.bound, rtol=1e-12)


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=str)
def test_rounding_never_lifts_a_value_above_one(kernel: Kernel) -> None:
    points = ball(300)
    assert kernel(points, points + 1e-12).max() <= 1.0


DEFINITIONS: list[tuple[Kernel, Callable[..., Any]]] = [
    (kernel_from_name("linear"), pairwise.linear_kernel),
    (
        kernel_from_name("polynomial", gamma=0.4, degree=4, coef0=0.2),
        lambda X, Z: pairwise.polynomial_kernel(X, Z, gamma=0.4, degree=4, coef0=0.2),
    ),
    (kernel_from_name("rbf", gamma=1.7), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=1.7)),
    (kernel_from_name("laplacian", gamma=1.7), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=1.7)),
    (
        kernel_from_name("cauchy", gamma=1.7),
        lambda X, Z: np.prod(1 / (1 + 1.7**2 * (X[:, None] - Z[None]) ** 2), axis=2),
    ),
]


@pytest.mark.parametrize(("kernel", "reference"), DEFINITIONS, ids=lambda value: getattr(value, "name", ""))
def test_values_are_those_of_the_definition(kernel: Kernel, reference: Callable[..., Any]) -> None:
    X, Z = 3 * ball(30, 1), ball(20, 2)  # outside the ball too
    assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-11)


@over_kernels
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_sparse_equals_dense(kernel: Kernel, container: Any) -> None:
    X, Z = ball(30, 1), ball(20, 2)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0.0
    Z[:, :2] = 0.0
    Z[0] = X[4] = 0.0
    expected = kernel(X, Z)
    for left, right in [(container(X), container(Z)), (container(X), Z), (X, container(Z))]:
        assert_allclose(kernel(left, right), expected, rtol=1e-12, atol=1e-15)
    assert_allclose(kernel.diagonal(container(X)), kernel.diagonal(X), rtol=1e-12)


@over_kernels
def test_duplicate_entries_of_a_sparse_matrix_count_as_their_sum(kernel: Kernel) -> None:
    twice = sparse.coo_array(([0.3, 0.4], ([0, 0], [1, 1])), shape=(1, 3))
    untidy = sparse.csr_array((np.array([0.3, 0.4]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    dense = np.array([[0.0, 0.7, 0.0]])
    for given in (twice, untidy):
        assert_allclose(kernel.diagonal(given), kernel.diagonal(dense), rtol=1e-14)
        assert_allclose(kernel(given, np.eye(3)), kernel(dense, np.eye(3)), rtol=1e-14)
    assert untidy.nnz == 2


@over_kernels
def test_described_in_json_and_made_again(kernel: Kernel) -> None:
    again = kernel_from_dict(json.loads(json.dumps(kernel.to_dict())))
    assert again == kernel
    assert again.bound == kernel.bound
    with pytest.raises(AttributeError):
        kernel.bound = 0.0


def test_parameters_of_numpy_types_are_described_in_json_too() -> None:
    kernel = kernel_from_name("polynomial", gamma=np.float32(0.5), degree=np.int64(2), coef0=np.float64(1))  # type: ignore[arg-type]
    assert json.loads(json.dumps(kernel.to_dict())) == {
        "kernel": "polynomial",
        "gamma": 0.5,
        "degree": 2,
        "coef0": 1.0,
    }


def test_a_function_is_described_by_its_name_and_has_to_be_given_again() -> None:
    kernel = kernel_from_name(spectrum, bound=1.0)
    assert kernel.name == "spectrum"
    described = json.loads(json.dumps(kernel.to_dict()))
    assert kernel_from_dict(described, spectrum) == kernel
    with pytest.raises(InvalidParameter, match=r"spectrum.*function="):
        kernel_from_dict(described)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 1.0, "more": 2},
        {"kernel": "sigmoid", "gamma": 1.0},
        {"kernel": ["rbf"], "gamma": 1.0},
        {"kernel": "rbf", "gamma": "1"},
        {"kernel": "callable", "name": "f"},
        [],
        None,
    ],
)
def test_other_descriptions_are_refused(content: Any) -> None:
    with pytest.raises(InvalidParameter):
        kernel_from_dict(content)


@pytest.mark.parametrize("name", ["polynomial", "rbf", "laplacian", "cauchy"])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.0, -1.0, np.nan, np.inf, None, True])
def test_gamma_is_a_public_number_above_zero(name: str, gamma: Any) -> None:
    with pytest.raises(InvalidParameter, match="gamma"):
        kernel_from_name(name, gamma=gamma)


@pytest.mark.parametrize(
    "settings",
    [
        {"degree": 2.5},
        {"degree": 0},
        {"degree": -1},
        {"degree": True},
        {"coef0": -0.1},
        {"coef0": np.inf},
        {"coef0": "1"},
        {"gamma": 1e200, "degree": 2},
        {"gamma": 1e-200, "degree": 2, "coef0": 0.0},
    ],
)
def test_polynomials_that_are_no_bounded_kernels_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        kernel_from_name("polynomial", **settings)


@pytest.mark.parametrize("kernel", ["sigmoid", "", "RBF", None, 3])
def test_unknown_kernels_are_refused_with_the_list(kernel: Any) -> None:
    with pytest.raises(InvalidParameter, match="laplacian"):
        kernel_from_name(kernel)


@pytest.mark.parametrize("kernel", ["precomputed", spectrum])
def test_who_cannot_know_the_bound_asks_for_it(kernel: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"bound=1\.0"):
        kernel_from_name(kernel)
    bounds: tuple[Any, ...] = (0.0, -1.0, np.inf, np.nan, "1")
    for bound in bounds:
        with pytest.raises(InvalidParameter, match="bound"):
            kernel_from_name(kernel, bound=bound)


def test_who_knows_the_bound_takes_no_other() -> None:
    with pytest.raises(InvalidParameter, match="Omit kernel_bound"):
        kernel_from_name("rbf", bound=2.0)


def test_a_kernel_stays_what_it_is() -> None:
    assert kernel_from_name(SHIFT_INVARIANT[0]) is SHIFT_INVARIANT[0]


@over_kernels
@pytest.mark.parametrize(
    "points",
    [
        [[np.nan, 0.0]],
        [[np.inf, 0.0]],
        [["7364518209", "x"]],
        [[CANARY + 1j, 0.0]],
        [1.0, 2.0],
        [[1.0], [1.0, 2.0]],
        sparse.csr_array([[np.nan, 0.0]]),
        sparse.csr_array([[CANARY + 1j, 0.0]]),
    ],
)
def test_what_is_no_matrix_of_finite_numbers_is_refused(kernel: Kernel, points: Any) -> None:
    for call in (lambda: kernel(points, np.eye(2)), lambda: kernel.diagonal(points)):
        with pytest.raises(DataError) as caught:
            call()
        assert "7364518209" not in str(caught.value)


@over_kernels
def test_points_of_other_width_are_refused(kernel: Kernel) -> None:
    with pytest.raises(DataError, match="2 and 3 columns"):
        kernel(np.eye(2), np.eye(3))


@pytest.mark.parametrize("kernel", VECTOR_KERNELS[:4], ids=str)
def test_points_outside_the_ball_exceed_the_bound(kernel: Kernel) -> None:
    with pytest.raises(DataError, match="norm at most 1") as caught:
        kernel.diagonal([[1.0 + 1e-6, 0.0]])
    assert "1.000001" not in str(caught.value)
    with pytest.raises(DataError):
        kernel.check([[1e200, 0.0]])


def test_values_that_overflow_are_refused() -> None:
    for name in ("linear", "polynomial", "rbf"):
        with pytest.raises(DataError, match="NaN or infinite"):
            kernel_from_name(name)([[1e200]], [[1e200]])


class TestCallable:
    def test_texts_as_points(self) -> None:
        kernel = Kernel.from_callable(spectrum, bound=1.0, name="letter pairs")
        gram = kernel(WORDS, WORDS)
        assert kernel.name == "letter pairs"
        assert_allclose(gram, gram.T)
        assert np.linalg.eigvalsh(gram)[0] > -1e-12
        assert_array_equal(kernel.diagonal(WORDS), np.diagonal(gram))

    def test_sparse_results_and_arrays_as_points(self) -> None:
        kernel = Kernel.from_callable(lambda X, Z: sparse.csr_array(X) @ sparse.csr_array(Z).T, bound=1.0)
        assert_allclose(kernel(ball(4), ball(3)), ball(4) @ ball(3).T)

    def test_a_value_above_the_bound_is_refused_and_not_quoted(self) -> None:
        kernel = Kernel.from_callable(lambda X, Z: np.full((len(X), len(Z)), CANARY), bound=2.0, name="mine")
        with pytest.raises(DataError, match=r"'mine' exceeds its bound 2") as caught:
            kernel.diagonal(["x"])
        assert "7364518209" not in str(caught.value)
        rounded = Kernel.from_callable(lambda X, Z: np.full((len(X), len(Z)), 2 + 1e-12), bound=2.0)
        assert rounded.diagonal(["x"]) > 2.0

    @pytest.mark.parametrize(
        "function",
        [
            lambda X, Z: np.zeros(len(X)),
            lambda X, Z: np.zeros((len(Z), len(X))),
            lambda X, Z: np.full((len(X), len(Z)), np.nan),
            lambda X, Z: np.full((len(X), len(Z)), -np.inf),
            lambda X, Z: [["one", "two", "three"]] * len(X),
            lambda X, Z: None,
        ],
    )
    def test_results_that_are_no_gram_matrix_are_refused(self, function: Callable[..., Any]) -> None:
        with pytest.raises(DataError, match="kernel 'bad'"):
            Kernel.from_callable(function, bound=1.0, name="bad")(WORDS[:2], WORDS[:3])

    def test_an_error_inside_the_function_does_not_show_the_point(self) -> None:
        def careless(X: Any, Z: Any) -> Any:
            raise KeyError(f"no entry for {X[0]}")

        with pytest.raises(DataError) as caught:
            Kernel.from_callable(careless, bound=1.0)(["Xylophon-Quirk"], ["a"])
        assert "Xylophon" not in str(caught.value)
        assert caught.value.__context__ is None

    def test_one_text_is_no_list_and_no_points_are_none(self) -> None:
        kernel = Kernel.from_callable(spectrum, bound=1.0)
        nothing: tuple[Any, ...] = ("fever", [], 3)
        for points in nothing:
            with pytest.raises(DataError):
                kernel(points, WORDS)

    def test_only_functions(self) -> None:
        with pytest.raises(InvalidParameter, match="function"):
            Kernel.from_callable("rbf", bound=1.0)  # type: ignore[arg-type]


class TestPrecomputed:
    gram: NDArray[np.float64] = kernel_from_name("rbf")(ball(6), ball(6))
    kernel = kernel_from_name("precomputed", bound=1.0)

    def test_rows_are_points(self) -> None:
        assert_array_equal(self.kernel(self.gram[:2], self.gram), self.gram[:2])
        assert_array_equal(self.kernel(sparse.csr_array(self.gram[:2]), self.gram), self.gram[:2])
        assert_allclose(self.kernel.diagonal(self.gram), 1.0)

    def test_other_shapes_are_refused(self) -> None:
        with pytest.raises(DataError, match="5 columns, there are 6"):
            self.kernel(self.gram[:, :5], self.gram)
        with pytest.raises(DataError, match="square"):
            self.kernel.diagonal(self.gram[:4])

    @pytest.mark.parametrize("value", [CANARY, -CANARY, 1.001, np.nan])
    def test_values_beyond_the_bound_are_refused_and_not_quoted(self, value: float) -> None:
        wrong = self.gram.copy()
        wrong[2, 3] = value
        for call in (lambda: self.kernel(wrong, self.gram), lambda: self.kernel.check(wrong)):
            with pytest.raises(DataError) as caught:
                call()
            assert "7364518209" not in str(caught.value)
