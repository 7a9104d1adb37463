"""RA12's figures: the experiment's parts."""

from __future__ import annotations

import numpy as np

from privlearn.papers import ra12


def test_sizes_are_whole_and_nobody_is_empty() -> None:
    for fractions in (*ra12.SKEWS, (1e-9, 1.0 - 1e-9), np.random.default_rng(0).dirichlet(np.ones(15))):
        sizes = ra12.party_sizes(fractions, 455)
        assert sizes.sum() == 455
        assert sizes.min() >= 1
        assert np.max(np.abs(sizes - 455 * np.asarray(fractions))) <= len(sizes)


def test_data_lies_in_the_unit_ball() -> None:
    splits = [ra12.simulate_split(np.random.default_rng(0)), *ra12.breast_cancer_splits(seed=0)]
    for split in splits:
        assert np.max(np.linalg.norm(np.vstack([split.rows, split.test_rows]), axis=1)) <= 1.0
    assert splits[0].rows.shape == splits[0].test_rows.shape == (1000, 10)
    cancer = splits[1:]
    assert sum(len(split.test_rows) for split in cancer) == 569
    assert all(len(split.rows) + len(split.test_rows) == 569 for split in cancer)


def test_weighted_aggregation_does_not_depend_on_the_smallest_party() -> None:
    """The same noise draws, hence the same error up to the local minimisers' differences."""
    split = ra12.simulate_split(np.random.default_rng(1))

    def error(name: str, skew: int) -> float:
        sizes = ra12.party_sizes(ra12.SKEWS[skew], 1000)
        return float(np.mean([split.error(ra12.train(name, split, sizes, 0.2, seed)) for seed in range(10)]))

    assert abs(error("LA weighted", 0) - error("LA weighted", 2)) < 0.02
    assert error("LA", 2) > error("LA", 0) + 0.1
