"""Three parties with 5, 25 and 70 % of Adult against one holder of all, at epsilon 1 and delta 1e-5.

Parties neither centre their rows nor spread them over fine features: a single holder gains half a point by that.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from privlearn import PrivateSVC, Schema
from privlearn.data import load_adult
from privlearn.parties import JointTraining, train_together

needs_adult = pytest.mark.skipif(not os.environ.get("PRIVLEARN_DATA"), reason="PRIVLEARN_DATA is not set")
SCHEMA = Path(__file__).parents[2] / "examples" / "adult.schema.yaml"


@needs_adult
def test_within_a_point_of_a_single_holder() -> None:
    table, schema = load_adult(), Schema.load(SCHEMA)
    order = np.random.default_rng(0).permutation(table.num_rows)
    train, test = np.split(order, [int(0.8 * len(order))])
    cuts = np.cumsum([int(0.05 * len(train)), int(0.25 * len(train))])
    tables = {name: table.take(part) for name, part in zip("abc", np.split(train, cuts), strict=True)}
    sizes = {name: part.num_rows for name, part in tables.items()}
    agreement = JointTraining(schema=schema, parties=sizes, epsilon=1.0, delta=1e-5, loss="huber_hinge")
    assert agreement.mechanism.rounds <= 25
    held_out = table.take(test)
    truth = np.array(held_out["income"].to_pylist())
    joint, single = [], []
    for seed in range(2):
        release = train_together(agreement, tables, random_state=seed)
        joint.append(np.mean(release.model.predict(held_out) != truth))
        alone = PrivateSVC(epsilon=1.0, delta=1e-5, schema=schema, random_state=seed).fit(table.take(train))
        single.append(1.0 - alone.score(held_out))
    assert np.mean(joint) < np.mean(single) + 0.01
