"""The OpenAPI document, built from the table of endpoints and the types of their messages."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from eligo.server.http.refusals import PROBLEM
from eligo.version import __version__

KEY = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "description": "A repeated call with the same key gets the same answer and has no further effect.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
}  # fmt: skip
IDENTIFIED = {"Eligo-Request": {"description": "Request id, as in the log.", "schema": {"type": "string"}}}
PATIENT = {"Retry-After": {"description": "Seconds to wait before the next try.", "schema": {"type": "integer"}}}
REFERENCE = "#/components/schemas/{name}"
#: statuses that every endpoint may answer with
EVERYWHERE = (400, 403, 408, 414, 421, 429, 431, 500, 503)


class Problem(msgspec.Struct):
    """An error (RFC 9457): `detail` is the reason in one sentence, `instance` the id of the request.

    `error` and `request` repeat them for older clients.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    error: str
    request: str


class Endpoint(NamedTuple):
    """One endpoint: its request and response types by status; bytes for anything but JSON."""

    method: str
    path: str
    says: str
    takes: Any = None
    gives: Mapping[int, Any] = {200: None}
    #: the types of what may follow the question mark; those that may be None can be left out
    query: Mapping[str, Any] = {}
    #: the statuses of refusals beside those that are everywhere
    refuses: Sequence[int] = ()
    #: the scopes of tokens that are good for it, any of them; none: it needs no token
    scopes: Sequence[str] = ()
    #: whether a POST goes without an idempotency key
    keyless: bool = False


def openapi(endpoints: Sequence[Endpoint], title: str = "eligo server") -> dict[str, Any]:
    """The OpenAPI 3.1 document of these endpoints."""
    types = [Problem, *(kind for endpoint in endpoints for kind in _types(endpoint))]
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    by_type = {str(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(endpoint: Endpoint) -> list[Any]:
    spoken = [endpoint.takes, *endpoint.gives.values(), *endpoint.query.values()]
    return [kind for kind in spoken if kind is not None and kind is not bytes]


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.says,
        "operationId": _identity(endpoint),
        "parameters": _parameters(endpoint, schemas),
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.takes is not None:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.takes, schemas)}
    if endpoint.scopes:
        operation["security"] = [{"token": []}, {}]  # a server for this machine alone may do without
        operation["description"] = (
            f"Needs a token with the scope {' or '.join(endpoint.scopes)}, unless the server runs without tokens."
        )
    return operation


def _identity(endpoint: Endpoint) -> str:
    """A name for an operation.

    >>> _identity(Endpoint("POST", "/v1/clients/{client}/approve", ""))
    'post_clients_client_approve'
    """
    return "_".join([endpoint.method.lower(), *re.findall(r"[a-z0-9]+", endpoint.path.removeprefix("/v1").lower())])


def _parameters(endpoint: Endpoint, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    for name, kind in endpoint.query.items():
        schema, needed = _without_null(schemas[str(kind)])
        named.append({"name": name, "in": "query", "required": needed, "schema": schema})
    return [*named, KEY] if endpoint.method == "POST" and not endpoint.keyless else named


def _without_null(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema of what is given, and whether it must be: nobody writes null after a question mark."""
    choices = schema.get("anyOf", ())
    non_null = [choice for choice in choices if choice != {"type": "null"}]
    if len(non_null) == len(choices):
        return schema, True
    return (non_null[0] if len(non_null) == 1 else {"anyOf": non_null}), False


def _responses(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in endpoint.gives.items():
        responses[str(status)] = _response(status, kind, schemas)
    body = {413, 415, 422} if endpoint.takes is not None else set()
    guarded = {401} if endpoint.scopes else set()
    named = {404} if "{" in endpoint.path else set()
    for status in sorted({*EVERYWHERE, *endpoint.refuses, *body, *guarded, *named} - set(endpoint.gives)):
        responses[str(status)] = _response(status, None if endpoint.method == "HEAD" else Problem, schemas)
    return responses


def _response(status: int, kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    headers = IDENTIFIED | (PATIENT if status in {429, 503} else {})
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase, "headers": headers}
    if kind is not None:
        response["content"] = _content(kind, schemas)
    return response


def _content(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    if kind is bytes:
        return {"application/octet-stream": {}}
    return {PROBLEM if kind is Problem else "application/json": {"schema": schemas[str(kind)]}}
