"""One honest try of random trees: leaves of public trees next to the default features, at several shares of the norm.

    PRIVLEARN_DATA=... python benchmarks/random_trees.py [covertype adult ...] [--epsilons 1 4] [--splits 2]

Trees are drawn from the schema and a public seed, never from rows: a node takes any column, and cuts its range at
a uniform point, a list into two random halves. A row is in one leaf of each tree. Rows are the default features, at the
resolution that a fit chose, times sqrt(1 - share), and the leaves times sqrt(share / trees). Zero-out, delta 1e-5,
`PrivateSVC`. Prints mean test errors; share 0 is the default.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import sparse
from tables import encoded, load

from privlearn import PrivateSVC
from privlearn.data import CategoryColumn, SchemaEncoder

MAX_ROWS = 62_500


def leaves(encoder: SchemaEncoder, table: Any, trees: int, depth: int) -> sparse.csr_array:
    """Return the indicator of each row's leaf in each tree, over the root of the number of trees."""
    cells, columns = encoder.cells(table), list(encoder.schema.columns.items())
    random, rows = np.random.default_rng(7), table.num_rows
    indices = np.empty((rows, trees), dtype=np.int64)
    for tree in range(trees):
        node = np.zeros(rows, dtype=np.int64)
        for level in range(depth):
            right = np.zeros(rows, dtype=bool)
            for index in range(2**level):
                name, column = columns[random.integers(len(columns))]
                here = np.flatnonzero(node == index)
                values = np.asarray(cells[name])[here]
                if isinstance(column, CategoryColumn):
                    half = random.random(len(column.values) + 1) < 0.5
                    right[here] = half[np.clip(values, 0, len(column.values)).astype(int)]
                else:
                    right[here] = values > random.random()
            node = 2 * node + right
        indices[:, tree] = node + tree * 2**depth
    numbers = np.full(indices.size, trees**-0.5)
    starts = np.arange(rows + 1) * trees
    return sparse.csr_array((numbers, indices.ravel(), starts), shape=(rows, trees * 2**depth))


def errors(
    table: Any, schema: Any, labels: np.ndarray, epsilon: float, seed: int, arguments: argparse.Namespace
) -> list[float]:
    """Return the test error for each share."""
    order = np.random.default_rng(seed).permutation(len(labels))[:MAX_ROWS]
    table, labels = table.take(order), labels[order]
    cut = int(0.8 * len(labels))
    settings: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": 1e-5,
        "neighbours": "zero_out",
        "random_state": seed,
    }
    plain = PrivateSVC(schema=schema, **settings).fit(table.slice(0, cut))
    encoder: Any = plain.release_.model.encoder
    rows, trees = (
        sparse.csr_array(encoder.encode(table)),
        leaves(encoder, table, arguments.trees, arguments.depth),
    )
    result = []
    for share in arguments.shares:
        both = sparse.csr_array(sparse.hstack([np.sqrt(1.0 - share) * rows, np.sqrt(share) * trees]))
        model = PrivateSVC(norm_bound=1.0, fit_intercept=False, classes=[0, 1], **settings)
        result.append(1.0 - model.fit(both[:cut], labels[:cut]).score(both[cut:], labels[cut:]))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=["covertype", "adult", "bank_marketing"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.15, 0.3])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--depth", type=int, default=7)
    arguments = parser.parse_args()
    for name in arguments.names:
        table, schema = load(name)
        labels = encoded(table, schema).labels
        for epsilon in arguments.epsilons:
            found = np.mean(
                [errors(table, schema, labels, epsilon, seed, arguments) for seed in range(arguments.splits)],
                axis=0,
            )
            cells = ", ".join(
                f"{share:g}: {error:.4f}" for share, error in zip(arguments.shares, found, strict=True)
            )
            print(f"{name} epsilon {epsilon:g}, share: error {cells}", flush=True)


if __name__ == "__main__":
    main()
