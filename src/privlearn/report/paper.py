"""A paper: sections of sentences and small tables, written as Markdown, HTML or JSON; and the list of papers."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, ClassVar, TypeVar

from privlearn._version import __version__
from privlearn.errors import InvalidParameter, did_you_mean, shown
from privlearn.extensions import enlist
from privlearn.report.facts import Facts
from privlearn.study.page_style import CSS

_CSS = """
td, th { white-space: normal; text-align: left; vertical-align: top; } p, td { overflow-wrap: anywhere; }
pre { overflow-x: auto; }
"""


@dataclass(frozen=True)
class Section:
    """A heading, sentences, a table of two columns, and text to be copied as it is."""

    title: str
    sentences: tuple[str, ...] = ()
    table: Mapping[str, str] = field(default_factory=dict)
    verbatim: str = ""


class Paper(ABC):
    """What one kind of reader is told.

    Attributes
    ----------
    name : str
        As in ``privlearn report --as NAME``.
    title : str
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def sections(self, facts: Facts) -> list[Section]: ...

    def front_matter(self, facts: Facts) -> str:
        """What stands above a Markdown file."""
        return ""

    def record(self, facts: Facts) -> Any:
        """Plain JSON values."""
        return {"paper": self.name, "title": self.title, "sections": list(map(asdict, self.sections(facts)))}


PAPERS: dict[str, type[Paper]] = {}

Kind = TypeVar("Kind", bound=type[Paper])


def register_paper(kind: Kind) -> Kind:
    """Make a paper known by its name."""
    enlist(PAPERS, kind.name, kind, "paper", ("title",))
    return kind


FORMATS = {"md": ".md", "html": ".html", "json": ".json"}


def write_paper(facts: Facts, name: str, form: str = "md") -> str:
    """One paper as text.

    Parameters
    ----------
    facts : Facts
    name : {"model-card", "privacy-label", "registry", "checklist", "ethics"}
    form : {"md", "html", "json"}
    """
    if name not in PAPERS:
        meant = did_you_mean(name, PAPERS)
        raise InvalidParameter(f"there is no paper {shown(name)}: {', '.join(PAPERS)}{meant}")
    if form not in FORMATS:
        raise InvalidParameter(f"papers are written as {', '.join(FORMATS)}, not as {shown(form)}")
    paper = PAPERS[name]()
    if form == "json":
        return json.dumps(paper.record(facts), indent=2, ensure_ascii=False) + "\n"
    return _markdown(paper, facts) if form == "md" else _page(paper, facts)


def _markdown(paper: Paper, facts: Facts) -> str:
    parts = [f"{paper.front_matter(facts)}# {paper.title}"]
    for section in paper.sections(facts):
        parts += [f"## {_one_line(section.title)}", *map(_one_line, section.sentences)]
        if section.table:
            rows = [f"| {_one_line(name)} | {_one_line(fact)} |" for name, fact in section.table.items()]
            parts.append("\n".join(["| | |", "|---|---|", *rows]))
        if section.verbatim:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.verbatim)), default=0))
            parts.append(f"{fence}\n{section.verbatim}\n{fence}")
    return "\n\n".join([*parts, f"_{_origin()}_"]) + "\n"


def _page(paper: Paper, facts: Facts) -> str:
    body = "".join(map(_html_section, paper.sections(facts)))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(paper.title)}</title><style>{CSS}{_CSS}</style></head><body>
<h1>{escape(paper.title)}</h1>{body}<footer>{escape(_origin())}</footer></body></html>
"""


def _html_section(section: Section) -> str:
    parts: Iterable[str] = (f"<p>{escape(sentence)}</p>" for sentence in section.sentences)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(fact)}</td></tr>'
        for name, fact in section.table.items()
    )
    table = f"<table><tbody>{rows}</tbody></table>" if rows else ""
    verbatim = f"<pre>{escape(section.verbatim)}</pre>" if section.verbatim else ""
    return f"<h2>{escape(section.title)}</h2>{''.join(parts)}{table}{verbatim}"


def _one_line(text: str) -> str:
    """A schema's names may hold anything: nothing of them may become Markdown's own marks or HTML."""
    plain = escape(" ".join(text.split()), quote=False)
    for mark in "\\`*_[]|#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain


def _origin() -> str:
    return f"Written by privlearn {__version__} from the release and what was given with it; no row was read."
