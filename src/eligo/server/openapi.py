"""The description of the API, made from the table of its addresses and the types of what is said there."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from eligo.server.refusing import PROBLEM
from eligo.version import __version__

KEY = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "description": "The same key again gets the same answer, and nothing is done twice. Without one every call counts.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
}  # fmt: skip
IDENTIFIED = {"Eligo-Request": {"description": "The id of the request, as in the log.", "schema": {"type": "string"}}}
PATIENT = {"Retry-After": {"description": "Seconds after which to come again.", "schema": {"type": "integer"}}}
REFERENCE = "#/components/schemas/{name}"
#: what anybody may be told anywhere
EVERYWHERE = (400, 403, 408, 414, 421, 429, 431, 500, 503)


class Problem(msgspec.Struct):
    """A refusal, by RFC 9457: `detail` says why in one sentence, `instance` is the id of the request.

    `error` and `request` say the same again, for older clients.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    error: str
    request: str


class Endpoint(NamedTuple):
    """One method at one address: what it takes and what it gives, by status; bytes for anything that is no JSON."""

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
    """The OpenAPI 3.1 document of these."""
    types = [Problem, *(kind for endpoint in endpoints for kind in _types(endpoint))]
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    known = {str(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, known)
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


def _operation(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "summary": endpoint.says,
        "operationId": _identity(endpoint),
        "parameters": _parameters(endpoint, known),
        "responses": _responses(endpoint, known),
    }
    if endpoint.takes is not None:
        said["requestBody"] = {"required": True, "content": _content(endpoint.takes, known)}
    if endpoint.scopes:
        said["security"] = [{"token": []}, {}]  # a server for this machine alone may do without
        said["description"] = f"Needs a token with the scope {' or '.join(endpoint.scopes)}, where tokens are on."
    return said


def _identity(endpoint: Endpoint) -> str:
    """A name for an operation.

    >>> _identity(Endpoint("POST", "/v1/clients/{client}/approve", ""))
    'post_clients_client_approve'
    """
    return "_".join([endpoint.method.lower(), *re.findall(r"[a-z0-9]+", endpoint.path.removeprefix("/v1").lower())])


def _parameters(endpoint: Endpoint, known: dict[str, Any]) -> list[dict[str, Any]]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    for name, kind in endpoint.query.items():
        schema, needed = _without_null(known[str(kind)])
        named.append({"name": name, "in": "query", "required": needed, "schema": schema})
    return [*named, KEY] if endpoint.method == "POST" and not endpoint.keyless else named


def _without_null(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema of what is given, and whether it must be: nobody writes null after a question mark."""
    choices = schema.get("anyOf", ())
    given = [choice for choice in choices if choice != {"type": "null"}]
    if len(given) == len(choices):
        return schema, True
    return (given[0] if len(given) == 1 else {"anyOf": given}), False


def _responses(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in endpoint.gives.items():
        responses[str(status)] = _response(status, kind, known)
    body = {413, 415, 422} if endpoint.takes is not None else set()
    guarded = {401} if endpoint.scopes else set()
    named = {404} if "{" in endpoint.path else set()
    for status in sorted({*EVERYWHERE, *endpoint.refuses, *body, *guarded, *named} - set(endpoint.gives)):
        responses[str(status)] = _response(status, None if endpoint.method == "HEAD" else Problem, known)
    return responses


def _response(status: int, kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    headers = IDENTIFIED | (PATIENT if status in {429, 503} else {})
    said: dict[str, Any] = {"description": HTTPStatus(status).phrase, "headers": headers}
    if kind is not None:
        said["content"] = _content(kind, known)
    return said


def _content(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    if kind is bytes:
        return {"application/octet-stream": {}}
    return {PROBLEM if kind is Problem else "application/json": {"schema": known[str(kind)]}}
