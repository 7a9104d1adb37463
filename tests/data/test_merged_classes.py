"""Labels that count as one class."""

from __future__ import annotations

from privlearn.data import Schema, SchemaEncoder


def test_each_label_is_its_class() -> None:
    target = {
        "name": "y",
        "classes": ["no", "some", "all"],
        "merge": {"all": ["every", "each"], "no": ["none"]},
    }
    columns = {"a": {"type": "number", "lower": 0, "upper": 1}}
    schema = Schema.from_dict({"name": "t", "columns": columns, "target": target})
    labels = ["no", "none", "some", "all", "every", "each"]
    assert SchemaEncoder(schema).encode_labels(labels).tolist() == [0, 0, 1, 2, 2, 2]
    assert Schema.from_dict(schema.to_dict()) == schema


def test_numbers_are_labels_too() -> None:
    target = {"name": "y", "classes": [0, 1], "merge": {1: [2, 3]}, "weights": {1: 2}}
    columns = {"a": {"type": "number", "lower": 0, "upper": 1}}
    schema = Schema.from_dict({"name": "t", "columns": columns, "target": target})
    assert SchemaEncoder(schema).encode_labels([0, 3, 2, 1]).tolist() == [0, 1, 1, 1]
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.target is not None
    assert schema.target.class_weights == [1.0, 2.0]
