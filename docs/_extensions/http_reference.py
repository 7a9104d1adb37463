"""The directive ``privlearn-http``: every path and model, from the OpenAPI description of the server.

``python docs/_extensions/http_reference.py`` prints the same as Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from privlearn.server.server import bare_app


class HttpReference(SphinxDirective):
    """One section per tag, and one for the models."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(reference(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("privlearn-http", HttpReference)
    return {"parallel_read_safe": True}


def reference() -> str:
    """Return the reference as Markdown."""
    description = bare_app().openapi()
    statuses = ["## Statuses", "", "| status | meaning |", "|---|---|", *_reasons(description), ""]
    sections = [_section(description, tag) for tag in description["tags"]]
    models = [_model(name, model) for name, model in sorted(description["components"]["schemas"].items())]
    parts = ["\n".join(statuses), *sections, "## Models\n\nThe JSON of requests and answers.\n", *models]
    return "\n".join(parts).rstrip() + "\n"


def _reasons(description: dict[str, Any]) -> Iterator[str]:
    told: dict[str, str] = {}
    for _, _, operation in _operations(description):
        refused = {status: operation["responses"][status]["description"] for status in _refused(operation)}
        told |= refused
    return (f"| {status} | {told[status]} |" for status in sorted(told))


def _section(description: dict[str, Any], tag: dict[str, str]) -> str:
    parts = [f"## {tag['name'].capitalize()}\n\n{tag['description']}\n"]
    for path, method, operation in _operations(description):
        if tag["name"] in operation["tags"]:
            parts.append(_operation(path, method, operation))
    return "\n".join(parts)


def _operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    lines = [
        f"### {operation['summary']}",
        "",
        f"`{method.upper()} {path}`",
        "",
        operation["description"],
        "",
    ]
    if "parameters" in operation:
        lines += ["| parameter | in | meaning |", "|---|---|---|"]
        lines += [f"| `{p['name']}` | {p['in']} | {p['description']} |" for p in operation["parameters"]]
        lines += [""]
    if "requestBody" in operation:
        lines += [f"- Body: {_contents(operation['requestBody']['content'])}"]
    answers = {status: answer for status, answer in operation["responses"].items() if status < "400"}
    lines += [
        f"- Answer {status}: {_contents(answer.get('content', {}))}" for status, answer in answers.items()
    ]
    lines += [f"- Refused with {', '.join(_refused(operation))}"] if _refused(operation) else []
    return "\n".join([*lines, ""])


def _refused(operation: dict[str, Any]) -> list[str]:
    return sorted(status for status in operation["responses"] if status >= "400")


def _contents(contents: dict[str, Any]) -> str:
    return (
        ", ".join(f"`{kind}`{_named(content.get('schema', {}))}" for kind, content in contents.items())
        or "empty"
    )


def _named(schema: dict[str, Any]) -> str:
    """The model of a content, if it has one."""
    reference = schema.get("items", schema).get("$ref")
    if reference is None:
        return ""
    name = reference.rsplit("/", 1)[1]
    return f" (a list of [{name}](#{name.lower()}))" if "items" in schema else f" ([{name}](#{name.lower()}))"


def _model(name: str, model: dict[str, Any]) -> str:
    members = model["properties"]
    rows = [f"| `{member}` | {described['description']} |" for member, described in members.items()]
    lines = [f"### {name}", "", model["description"], "", "| member | meaning |", "|---|---|", *rows, ""]
    for example in model.get("examples", []):
        ordered = {member: example[member] for member in members if member in example}
        lines += ["```json", json.dumps(ordered, indent=1), "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(reference(), end="")
