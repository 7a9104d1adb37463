"""Reports: sections of sentences and small tables, written as Markdown, HTML or JSON; and their registry."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, ClassVar, Generic, TypeVar

from privlearn._version import __version__
from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.export.report.properties import FileProperties, ReleaseProperties
from privlearn.imports import register
from privlearn.release.html import page, property_table

_CSS = """
td, th { white-space: normal; text-align: left; vertical-align: top; } p, td { overflow-wrap: anywhere; }
pre { overflow-x: auto; }
"""


@dataclass(frozen=True)
class Section:
    """A heading, sentences, a table of two columns, text to copy verbatim, and a figure (SVG) for pages."""

    title: str
    sentences: tuple[str, ...] = ()
    table: Mapping[str, str] = field(default_factory=dict)
    verbatim: str = ""
    figure: str = ""


Properties = TypeVar("Properties", bound=FileProperties)


class Report(ABC, Generic[Properties]):
    """A report for one kind of reader.

    Attributes
    ----------
    name : str
        As in ``privlearn report --as NAME``.
    title : str
    default_format : str
    """

    name: ClassVar[str]
    title: ClassVar[str]
    default_format: ClassVar[str] = "md"

    @abstractmethod
    def sections(self, properties: Properties) -> list[Section]: ...

    def front_matter(self, properties: Properties) -> str:
        """Return the front matter of a Markdown file."""
        return ""

    def record(self, properties: Properties) -> Any:
        """Return plain JSON values."""
        sections = list(map(asdict, self.sections(properties)))
        for section in sections:
            del section["figure"]
        return {"report": self.name, "title": self.title, "sections": sections}


REPORTS: dict[str, type[Report[ReleaseProperties]]] = {}

Kind = TypeVar("Kind", bound=type[Report[ReleaseProperties]])


def register_report(kind: Kind) -> Kind:
    """Register a report under its name."""
    register(REPORTS, kind.name, kind, "report", ("title",))
    return kind


FORMATS = {"md": ".md", "html": ".html", "json": ".json"}


def write_report(properties: ReleaseProperties, name: str, form: str | None = None) -> str:
    """Return a report as text.

    Parameters
    ----------
    properties : ReleaseProperties
    name : {"model-card", "privacy-label", "registry", "checklist", "ethics", "sacro", "edpb"}
    form : {"md", "html", "json"}, optional
        By default the report's own.
    """
    if name not in REPORTS:
        meant = did_you_mean(name, REPORTS)
        raise InvalidParameter(f"unknown report {preview(name)}. Use one of: {', '.join(REPORTS)}{meant}")
    return render_report(REPORTS[name](), properties, form)


def render_report(report: Report[Properties], properties: Properties, form: str | None = None) -> str:
    """Return a report as text; the form is that of `write_report`."""
    form = form or report.default_format
    if form not in FORMATS:
        raise InvalidParameter(f"unknown format {preview(form)}. Use one of: {', '.join(FORMATS)}")
    if form == "json":
        return json.dumps(report.record(properties), indent=2, ensure_ascii=False) + "\n"
    return _markdown(report, properties) if form == "md" else _page(report, properties)


def _markdown(report: Report[Properties], properties: Properties) -> str:
    parts = [f"{report.front_matter(properties)}# {report.title}"]
    for section in report.sections(properties):
        parts += [f"## {_one_line(section.title)}", *map(_one_line, section.sentences)]
        if section.table:
            rows = [f"| {_one_line(name)} | {_one_line(value)} |" for name, value in section.table.items()]
            parts.append("\n".join(["| | |", "|---|---|", *rows]))
        if section.verbatim:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.verbatim)), default=0))
            parts.append(f"{fence}\n{section.verbatim}\n{fence}")
    return "\n\n".join([*parts, f"_{_origin()}_"]) + "\n"


def _page(report: Report[Properties], properties: Properties) -> str:
    body = "".join(map(_html_section, report.sections(properties)))
    return page(report.title, f"{body}<footer>{escape(_origin())}</footer>", css=_CSS)


def _html_section(section: Section) -> str:
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in section.sentences)
    verbatim = f"<pre>{escape(section.verbatim)}</pre>" if section.verbatim else ""
    return f"<h2>{escape(section.title)}</h2>{sentences}{property_table(section.table)}{verbatim}{section.figure}"


def _one_line(text: str) -> str:
    """Return text on one line, with escapes, so that names from a schema become neither Markdown nor HTML."""
    plain = escape(" ".join(text.split()), quote=False)
    for mark in "\\`*_[]|#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain


def _origin() -> str:
    return f"Written by privlearn {__version__} from the file and what was given with it; no row was read."
