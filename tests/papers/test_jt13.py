"""JT13's experiments: Lambda from LibSVM's C, TDDL in the span of its probes, sentences that follow the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from privlearn.papers import jt13_covertype, jt13_regression, jt13_url
from privlearn.papers.jt13_regression import Bench
from privlearn.papers.learners import DEFAULT_DELTA, TargetSplit


@pytest.fixture
def bench() -> Bench:
    random = np.random.default_rng(0)
    drawn = sparse.csr_array(sparse.random_array((120, 400), density=0.05, rng=random))
    rows = sparse.csr_array(drawn.multiply(0.9 / np.sqrt(drawn.multiply(drawn).sum(axis=1))[:, np.newaxis]))
    targets = np.clip(np.asarray(rows @ random.normal(size=400)), -1.0, 1.0)
    split = TargetSplit(rows[:80], targets[:80], rows[100:], targets[100:])
    return Bench(split, rows[80:100])


def test_lambda_is_libsvm_s_c() -> None:
    """n losses weighted by C = 0.001 against |w|^2 / 2, the kernel being 8 at most."""
    assert jt13_covertype.paper_regularization(500_000) == pytest.approx(1 / 500 / 8)


def test_tddl_without_noise_gives_the_minimiser_s_answers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = bench._points @ bench._learner.plain(0.1)
    noisy = bench._tddl(strength=0.1, epsilon=1.0, seed=[0])
    assert np.max(np.abs(bench._points @ noisy - answers)) > 0.1
    monkeypatch.setattr(
        "privlearn.mechanisms.release.tddl.add_laplace", lambda answers, scale, randomness: answers
    )
    model = bench._tddl(strength=0.1, epsilon=1.0, seed=[0])
    np.testing.assert_allclose(bench._points @ model, answers, atol=1e-8)


def test_rows_seen_from_the_points_have_their_inner_products(bench: Bench) -> None:
    seen = bench._span.parts(bench._points)
    np.testing.assert_allclose(seen @ seen.T, (bench._points @ bench._points.T).toarray(), atol=1e-8)
    assert np.max(np.linalg.norm(bench._span.parts(bench._split.rows), axis=1)) <= 1.0


def test_the_best_lambda_is_taken_in_hindsight() -> None:
    errors = {
        ("a", "TDDL", 1.0, 0.1): [3.0, 1.0],
        ("a", "TDDL", 1.0, 1.0): [1.0, 2.0],
        ("a", "x", 1.0, None): [9.0],
    }
    best = list(jt13_regression.best_in_hindsight(errors))
    assert [(row["algorithm"], row["lambda"], row["error"]) for row in best] == [
        ("TDDL", 1.0, 1.5),
        ("x", None, 9.0),
    ]


def covertype_sentence(tddl: float) -> str:
    errors = {jt13_covertype.TDDL: tddl, jt13_covertype.DEFAULT: 0.23}
    rows = [
        {"algorithm": name, "epsilon": epsilon, "error": error}
        for name, error in errors.items()
        for epsilon in jt13_covertype.EPSILONS
    ]
    rows.append({"algorithm": jt13_covertype.PLAIN, "epsilon": None, "error": 0.24})
    return jt13_covertype._agreement(tuple(rows), 500_000, 300)


def test_covertype_s_sentence_follows_the_numbers() -> None:
    assert "was seen at 0 of 3 epsilons" in covertype_sentence(0.5)
    assert "ahead of TDDL at 5 of 5" in covertype_sentence(0.5)
    assert "was seen at 3 of 3 epsilons" in covertype_sentence(0.22)
    assert "ahead of TDDL at 0 of 5" in covertype_sentence(0.22)


def test_simulated_rows_are_as_sparse_as_the_url_data() -> None:
    """120 filled cells in a row, 26,832 different columns in 4,027 rows; norm 1."""
    rows = jt13_url.simulate_rows(4027, 3_231_961, np.random.default_rng(0), block=1000)
    assert rows.shape == (4027, 3_231_961)
    assert rows.indices.dtype == np.int32
    assert rows.nnz / 4027 == pytest.approx(120, rel=0.1)
    assert len(np.unique(rows.indices)) == pytest.approx(26_832, rel=0.2)
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    assert np.all((norms <= 1.0) & (norms > 0.999999))
    assert all(len(np.unique(rows[[place]].indices)) == rows[[place]].nnz for place in range(20))


def test_simulated_labels_are_balanced_and_learnable() -> None:
    split, points = jt13_url.simulate_split(2000, 500, seed=0, test=1000)
    assert abs(np.mean(split.signs)) < 0.2
    assert points.shape == (jt13_url.POINTS, 500)
    found: dict[str, float] = {}
    for algorithm, _, _, error in jt13_url._errors(split, points, (1.0,), [0]):
        found[algorithm] = error
    assert found["non-private"] < 0.2
    assert set(found) == set(jt13_url._LOOKS)


def test_the_url_sentence_follows_the_numbers() -> None:
    rows = [
        {"data": data, "algorithm": algorithm, "epsilon": epsilon, "error": error}
        for data in (jt13_url.REAL, jt13_url.SIMULATED)
        for algorithm, epsilon, error in [
            (jt13_url.PLAIN, None, 0.01),
            (jt13_url.TDDL, 1.0, 0.3),
            (jt13_url.RA12, 1.0, 0.5 if data == jt13_url.REAL else 0.2),
            (DEFAULT_DELTA, 1.0, 0.1),
        ]
    ]
    told = jt13_url._agreement(tuple(rows))
    assert "loses to TDDL, was seen at 1 of 2" in told
    assert "below TDDL at 2 of 2" in told
    assert "no results on this data set" in told
