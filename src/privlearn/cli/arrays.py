"""The options of commands whose rows are arrays with a public feature map: images, signals and texts in .npz files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import parse_number
from privlearn.errors import DataError, InvalidParameter

if TYPE_CHECKING:
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.data.schema.schema import Schema
    from privlearn.features.public_map import PublicMap


@dataclass(frozen=True)
class MapOptions:
    """The public feature map that takes the place of a schema's columns."""

    features: Annotated[
        str | None,
        typer.Option(
            metavar="MAP",
            help="Instead of a schema's columns, for rows that are arrays: scattering (images, signals), text, or the "
            "file of a public network (.onnx, .npz).",
        ),
    ] = None
    image_shape: Annotated[
        str | None,
        typer.Option(
            metavar="HxW", help="With --features scattering: 28x28, 32x32x3 with colours, 500 for a signal."
        ),
    ] = None
    value_range: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="With --features scattering: public bounds of a pixel.",
            show_default="0,255 for bytes",
        ),
    ] = None

    def feature_map(self) -> PublicMap:
        """Return the map that the options name."""
        from privlearn.features import ScatteringFeatures
        from privlearn.features.map_encoder import choose_map

        if self.features != "scattering":
            if self.image_shape is not None or self.value_range is not None:
                raise InvalidParameter(
                    "--image-shape and --value-range are for --features scattering. Omit them."
                )
            return choose_map(self.features, None)
        if self.image_shape is None or not re.fullmatch(r"\d{1,6}(x\d{1,6}){0,2}", self.image_shape):
            raise InvalidParameter("--features scattering needs the shape of a row. Add --image-shape 28x28.")
        shape = tuple(map(int, self.image_shape.split("x")))
        return ScatteringFeatures(shape, _pair("--value-range", self.value_range or "0,255"))


@dataclass(frozen=True)
class ArrayOptions(MapOptions):
    """The public feature map, and the public properties of the target of arrays."""

    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="With --features: the labels that may occur: 0..9, or no,yes."),
    ] = None
    target_range: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="With --features: public bounds of a number to predict."),
    ] = None

    def draft(self, schema: Path | None, name: str, refused: dict[str, Any]) -> SchemaDraft:
        """Return the schema's draft or, with --features, a description of arrays X and y.

        ``refused`` has the values of options that describe or read tables.
        """
        from privlearn.data.schema.draft import SchemaDraft

        if self.features is None:
            if any((self.image_shape, self.value_range, self.classes, self.target_range)):
                raise InvalidParameter(
                    "--image-shape, --value-range, --classes and --target-range describe arrays. Add --features, or "
                    "omit them."
                )
            if schema is None:
                raise InvalidParameter("--schema is missing. Add --schema FILE, or --features for arrays.")
            return SchemaDraft.load(schema)
        for option, value in (refused | {"--schema": schema}).items():
            if value is not None:
                raise InvalidParameter(
                    f"{option} is for tables, and --features for arrays. Omit one of them."
                )
        columns = {"X": {"type": "text"}}
        return SchemaDraft.from_dict(
            {"name": name, "columns": columns, "target": self._target(), "one_row_per_person": True}
        )

    def settings(self, description: Schema, model: str) -> dict[str, Any]:
        """Return the settings of an estimator that describe the rows."""
        target = description.target
        if self.features is None or target is None:
            return {"schema": description}
        if (model == "regression") != (target.bounds is not None):
            needed = "--target-range LOW,HIGH" if model == "regression" else "--classes A,B,..."
            raise InvalidParameter(
                f"--model {model} needs another kind of target. Add {needed}, or omit --model."
            )
        declared = {"target_bounds": target.bounds} if target.bounds else {"classes": list(target.classes)}
        return {"features": self.feature_map(), **declared}

    def read(self, table: str) -> tuple[Any, Any]:
        """PRIVATE: return rows and answers."""
        from privlearn.data.sources.array_files import read_arrays

        X, y = read_arrays(table, ("X", "y"))
        if self.features == "scattering" and self.value_range is None and X.dtype != "uint8":
            raise DataError(
                f"the array 'X' has the type {X.dtype}, not bytes. Add the public bounds of its numbers, such as "
                "--value-range 0,1."
            )
        return X, y

    def _target(self) -> dict[str, Any]:
        if (self.classes is None) == (self.target_range is None):
            raise InvalidParameter(
                "--features needs what is public about y. Add either --classes 0..9 or --target-range 0,100."
            )
        if self.target_range is not None:
            lower, upper = _pair("--target-range", self.target_range)
            return {"name": "y", "lower": lower, "upper": upper}
        return {"name": "y", "classes": _labels(str(self.classes))}


def _labels(text: str) -> list[Any]:
    """Return a list of labels: whole numbers if all are, else texts.

    >>> _labels("0..3"), _labels("no,yes")
    ([0, 1, 2, 3], ['no', 'yes'])
    """
    if ends := re.fullmatch(r"(\d{1,6})\.\.(\d{1,6})", text):
        return list(range(int(ends[1]), int(ends[2]) + 1))
    labels = [part.strip() for part in text.split(",")]
    return (
        [int(label) for label in labels]
        if all(re.fullmatch(r"-?\d{1,15}", each) for each in labels)
        else labels
    )


def _pair(option: str, text: str) -> tuple[float, float]:
    lower, comma, upper = text.partition(",")
    if not comma:
        raise InvalidParameter(f"{option} must be two numbers, such as 0,255.")
    return parse_number(lower), parse_number(upper)
