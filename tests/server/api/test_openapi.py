"""The description of the interface is complete."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import pytest

from privlearn.server import api, bare_app
from privlearn.server.api.requests import body_models
from privlearn.server.http import PROBLEM_JSON

ROOT = Path(__file__).parents[3]
DESCRIPTION = bare_app().openapi()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in DESCRIPTION["paths"].items()
    for method, operation in operations.items()
}
VERBS = {
    "GET /v1/me",
    "GET /v1/events",
    "GET /v1/datasets",
    "GET /v1/datasets/{name}",
    "GET /v1/datasets/{name}/budget",
    "GET /v1/analysts",
    "POST /v1/analysts",
    "PATCH /v1/analysts/{name}",
    "PUT /v1/analysts/{name}/shares/{dataset}",
    "DELETE /v1/analysts/{name}/shares/{dataset}",
    "GET /v1/keys",
    "POST /v1/keys",
    "POST /v1/keys/{id}/rotation",
    "DELETE /v1/keys/{id}",
    "GET /v1/sources",
    "POST /v1/datasets",
    "POST /v1/datasets/{name}/versions",
    "POST /v1/datasets/{name}/retirement",
    "GET /v1/datasets/{name}/synthetic",
    "GET /v1/kinds",
    "POST /v1/jobs",
    "POST /v1/estimates",
    "GET /v1/jobs",
    "GET /v1/jobs/{id}",
    "GET /v1/approvals",
    "GET /v1/approvals/{id}",
    "POST /v1/approvals/{id}",
    "GET /v1/results",
    "GET /v1/results/{id}",
    "GET /v1/results/{id}/content",
    "DELETE /v1/sessions/{id}",
    "DELETE /v1/jobs/{id}",
    "POST /v1/sessions/{id}/predictions",
    "POST /v1/verify",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /.well-known/privlearn.pem",
}
WITHOUT_KEY = {"GET /healthz", "GET /readyz", "GET /.well-known/privlearn.pem"}


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = DESCRIPTION["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found


def test_every_verb_is_described() -> None:
    assert set(OPERATIONS) == VERBS


@pytest.fixture(params=OPERATIONS, ids=lambda name: name.replace("/", " "))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def operation(name: str) -> dict[str, Any]:
    return OPERATIONS[name]


def test_it_says_what_it_does(operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert len(operation["description"]) > len(operation["summary"]) // 2
    assert operation["tags"]


def test_it_needs_a_key(name: str, operation: dict[str, Any]) -> None:
    assert ("security" in operation) == (name not in WITHOUT_KEY)


def test_its_errors_are_problems(name: str, operation: dict[str, Any]) -> None:
    errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
    assert name in ("GET /healthz", "GET /.well-known/privlearn.pem") or "503" in errors
    assert name in WITHOUT_KEY or {"401", "429"} <= set(errors)
    for answer in errors.values():
        assert answer["description"]
        (content,) = answer["content"].items()
        assert content == (PROBLEM_JSON, {"schema": {"$ref": "#/components/schemas/Problem"}})


def test_its_answer_has_an_example(operation: dict[str, Any]) -> None:
    (answer,) = [answer for status, answer in operation["responses"].items() if status < "400"]
    if answer["description"] == "The content." or "content" not in answer:
        return
    shown = [content for content in answer["content"].values() if _has_example(content)]
    assert shown, answer


def _has_example(content: dict[str, Any]) -> bool:
    schema = content["schema"]
    of_items = schema.get("items", schema) if schema.get("type") == "array" else schema
    return "example" in content or "examples" in resolved(of_items)


def test_its_parameters_and_body_have_examples(operation: dict[str, Any]) -> None:
    for parameter in operation.get("parameters", []):
        assert parameter["description"]
        assert parameter["schema"].get("examples") or parameter.get("examples"), parameter
    contents = operation.get("requestBody", {}).get("content", {})
    texts = [content for kind, content in contents.items() if kind in ("application/json", "text/csv")]
    assert all(_has_example(content) for content in texts)


@pytest.mark.parametrize("model", DESCRIPTION["components"]["schemas"])
def test_every_member_of_a_model_is_explained(model: str) -> None:
    schema = DESCRIPTION["components"]["schemas"][model]
    assert schema["description"]
    for member, described in schema["properties"].items():
        assert described.get("description"), member


def test_examples_of_answers_fit_their_models() -> None:
    names = (module.name for module in pkgutil.iter_modules(api.__path__))
    modules = [importlib.import_module(f"{api.__name__}.{name}") for name in names]
    models = [*body_models(), *(model for module in modules for model in vars(module).values())]
    for model in models:
        for example in getattr(model, "model_config", {}).get("json_schema_extra", {}).get("examples", []):
            model.model_validate(example)


def test_the_page_describes_every_path_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx", reason="the documentation's tools are not installed: `make docs` does that")
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")
    page, description = importlib.import_module("http_reference").reference(), bare_app().openapi()
    assert [path for path in description["paths"] if f" {path}`" not in page] == []
    assert [name for name in description["components"]["schemas"] if f"### {name}\n" not in page] == []
