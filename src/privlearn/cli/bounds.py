"""`privlearn bounds`: what any mechanism can and cannot do, from public numbers alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.options import Force, check_writable

if TYPE_CHECKING:
    from privlearn.study.bounds_table import Case


def bounds(
    rows: Annotated[int, typer.Option(help="Number of records.", show_default=False)],
    regularization: Annotated[float, typer.Option("--lambda", help="Regularization.", show_default=False)],
    epsilon: Annotated[float, typer.Option(help="Privacy to look at.", show_default=False)],
    delta: Annotated[float, typer.Option(help="For Gaussian noise and PINP.")] = 1e-6,
    kernel: Annotated[str, typer.Option(help="linear, rbf or cauchy, with k(x, x) <= 1.")] = "rbf",
    columns: Annotated[int, typer.Option(help="Columns of the encoded rows.")] = 100,
    gamma: Annotated[float, typer.Option(help="Of the kernel, as in scikit-learn.")] = 1.0,
    accuracy: Annotated[float, typer.Option(help="Useful: no value is further off than this.")] = 0.5,
    failure: Annotated[float, typer.Option(help="Except with this probability.")] = 0.05,
    out: Annotated[
        Path | None, typer.Option(help="Also draw: .svg, .png or .pdf.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Show what the theorems promise and exclude, before touching any data.

    Upper and lower bounds of RBHT for the hinge loss, the noise of function release, and whether PINP's
    threshold leaves anything to answer. Reads no data.

    \b
    Example:
      privlearn bounds --rows 36000 --lambda 1e-3 --kernel rbf --gamma 2 \\
        --columns 104 --epsilon 1 --out bounds.svg
    """
    from privlearn.study.bounds_table import Case, table

    case = Case(rows, regularization, kernel, columns, gamma, epsilon, delta, accuracy, failure)
    lines = table(case)
    if out is not None:
        _draw(case, out, force)
    widths = [max(len(line[place]) for line in lines) for place in range(2)]
    for what, amount, meaning in lines:
        typer.echo(f"{what:<{widths[0]}}  {amount:>{widths[1]}}  {meaning}")
    if out is not None:
        typer.echo(f"Wrote {out}.")


def _draw(case: Case, out: Path, force: bool) -> None:
    from privlearn.release.atomic import write_atomically
    from privlearn.study.bounds_figure import draw_bounds
    from privlearn.study.drawing import kind_of_image

    kind = kind_of_image(out)
    check_writable(out, force)
    write_atomically(out, draw_bounds(case, kind))
