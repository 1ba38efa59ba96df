"""The API documentation: one HTML page generated from the OpenAPI document, without scripts or external files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from tenure.server.openapi import document
from tenure.server.openapi.operations import THEMES

Schema = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")


class Operation(NamedTuple):
    method: str
    path: str
    spec: dict[str, Any]


@cache
def html() -> bytes:
    """The whole page."""
    doc = document()
    themes: dict[str, list[Operation]] = {name: [] for name in THEMES}
    for operation in operations(doc):
        themes[operation.spec["tags"][0]].append(operation)
    about = "".join(f"<p>{_marked(part)}</p>" for part in doc["info"]["description"].strip().split("\n\n"))
    links = "".join(f'<a href="#{name}">{name}</a>' for name in (*themes, "types"))
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        '<title>tenure: the HTTP API</title><link rel=stylesheet href="/docs/style.css">',
        f"<h1>The HTTP API</h1><p>tenure {escape(doc['info']['version'])} · ",
        '<a href="/openapi.json">openapi.json</a></p>',
        about,
        f"<nav>{links}</nav>",
        *(_theme(name, found) for name, found in themes.items()),
        _types(doc["components"]["schemas"]),
    ]
    return "".join(parts).encode()


@cache
def style() -> bytes:
    return files("tenure.server").joinpath("docs_page.css").read_bytes()


def operations(doc: dict[str, Any]) -> Iterator[Operation]:
    """Each operation of the document, in order."""
    for path, methods in doc["paths"].items():
        for method in METHODS:
            if method in methods:
                yield Operation(method, path, methods[method])


def _theme(name: str, found: list[Operation]) -> str:
    return f"<section id={name}><h2>{name}</h2>{''.join(map(_operation, found))}</section>"


def _operation(operation: Operation) -> str:
    method, path, spec = operation
    role = spec["x-tenure-role"]
    head = (
        f"<span class='method {method}'>{method.upper()}</span><code>{escape(path)}</code>"
        f"<span class=role>{role or 'open'}</span><p>{_marked(spec['summary'])}</p>"
    )
    inside = [_parameters(spec.get("parameters", ())), _body(spec.get("requestBody")), _answers(spec["responses"])]
    return (
        f"<details id={spec['operationId']}><summary>{head}</summary>"
        f"<div class=inside>{''.join(filter(None, inside))}</div></details>"
    )


def _parameters(given: list[Schema]) -> str:
    found = [resolved(parameter) for parameter in given]
    rows = [
        (f"<code>{p['name']}</code>", p["in"], type_of(p["schema"]), _marked(p.get("description", ""))) for p in found
    ]
    return _table("Parameters", ("name", "in", "type", ""), rows)


def _body(given: Schema | None) -> str:
    if given is None:
        return ""
    content = given["content"].get("application/json")
    if content is None:
        return f"<h3>Body</h3><p>{escape(', '.join(given['content']))}</p>"
    fields = _fields("Body", resolved(content["schema"]))
    if "example" not in content:
        return fields
    example = json.dumps(content["example"], indent=2, ensure_ascii=False)
    return f"{fields}<h3>Example</h3><pre>{escape(example)}</pre>"


def _answers(given: dict[str, Schema]) -> str:
    rows = []
    for status, answer in given.items():
        found = resolved(answer)
        types = " or ".join(type_of(content["schema"]) for content in found.get("content", {}).values())
        rows.append((status, types, _marked(found["description"])))
    return _table("Answers", ("status", "body", ""), rows)


def _types(schemas: dict[str, Schema]) -> str:
    # Bodies are shown with their operations.
    sent = {name for name in schemas if name.endswith(("Body", "Command"))} - {"AnyCommand"}
    shown = {name: schema for name, schema in schemas.items() if name not in sent}
    parts = [
        f"<details id=type-{name}><summary><span class=method>type</span><code>{name}</code><span></span>"
        f"<p>{_marked(schema.get('description', ''))}</p></summary>"
        f"<div class=inside>{_fields('Fields', schema)}</div></details>"
        for name, schema in sorted(shown.items())
    ]
    return f"<section id=types><h2>types</h2>{''.join(parts)}</section>"


def _fields(title: str, schema: Schema) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (
            f"<code>{escape(name)}</code>", type_of(part), "" if name in required else _unless(part),
            _marked(part.get("description", "")),
        )
        for name, part in schema.get("properties", {}).items()
    ]  # fmt: skip
    return _table(title, ("name", "type", "", ""), rows)


def _unless(schema: Schema) -> str:
    default = schema.get("default")
    is_shown = isinstance(default, (int, float, str)) and default != ""
    return f"default {escape(json.dumps(default))}" if is_shown else "optional"


def _table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    cells = "".join(f"<tr>{''.join(f'<td>{cell}' for cell in row)}" for row in rows)
    return f"<h3>{title}</h3><div class=scroll><table><tr>{''.join(f'<th>{h}' for h in head)}{cells}</table></div>"


# --- texts --------------------------------------------------------------------------------------------------


def resolved(schema: Schema) -> Schema:
    """The schema that a reference points to."""
    while "$ref" in schema:
        found: Any = document()
        for word in schema["$ref"].removeprefix("#/").split("/"):
            found = found[word]
        schema = found
    return schema


def type_of(schema: Schema) -> str:
    """The type of a value as short HTML."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"<a href='#type-{name}'>{name}</a>"
    if "enum" in schema:
        words = ", ".join(escape(str(word)) for word in schema["enum"][:12])
        return f"{words} …" if len(schema["enum"]) > 12 else words
    if "const" in schema:
        return escape(json.dumps(schema["const"]))
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return " or ".join(type_of(one) for one in several)
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return ", ".join(f"{name}: {type_of(part)}" for name, part in schema["properties"].items())
    return f"{schema.get('format', kind)}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    low, high = (schema.get(word) for word in ("minimum", "maximum"))
    if low is not None and high is not None:
        return f" {low:,g}–{high:,.15g}" if high < 1e15 else f" from {low:g}"
    return f" up to {schema['maxLength']} characters" if "maxLength" in schema else ""


def _marked(text: str) -> str:
    """The markup of descriptions: `code` and *emphasis*."""
    shown = escape(" ".join(text.split()))
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", shown)
    return re.sub(r"\*(\w[^*]*)\*", r"<em>\1</em>", shown)
