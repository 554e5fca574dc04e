"""What the server tells of itself: figures for Prometheus and the description of its API."""

import asyncio
import json
from typing import Annotated, Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families as parsed
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from eligo.server.http.guard import Guard
from eligo.server.http.routes import ApiCall, Endpoint, openapi
from eligo.server.metrics import Census, Metrics, Spread


def figures(metrics: Metrics) -> dict[str, float]:
    """All samples, named with their labels."""
    found = {}
    for family in parsed(metrics.text().decode()):
        for sample in family.samples:
            found[" ".join([sample.name, *map(str, sample.labels.values())])] = sample.value
    return found


async def tasks(request: Request) -> Response:
    return JSONResponse({})


async def health(request: Request) -> Response:
    return JSONResponse({})


def test_requests_are_counted_by_route_and_status() -> None:
    metrics = Metrics()
    routes = [Route("/v1/workflows/{name}/tasks", tasks), Route("/health", health)]
    metrics.know(routes)
    guard = Guard(Router(routes), seen=metrics.seen)
    for path in ("/v1/workflows/a/tasks", "/v1/workflows/b/tasks", "/nothing", "/else", "/health"):
        asyncio.run(call(guard, path))
    found = figures(metrics)
    assert found["eligo_requests_total GET /v1/workflows/{name}/tasks 200"] == 2
    assert found["eligo_requests_total any other 404"] == 2
    assert found["eligo_requests_total GET /health 200"] == 1
    assert found["eligo_request_seconds_count /v1/workflows/{name}/tasks"] == 2
    assert found["eligo_bytes_sent_total"] > 100


async def call(guard: Guard, path: str) -> None:
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "scheme": "http", "root_path": ""}

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        pass

    await guard({**scope, "headers": [(b"host", b"localhost")]}, receive, send)


def test_how_things_stand_is_asked_when_it_is_wanted() -> None:
    gauges, counters = {"workflows": 2, "leases": 5, "clients": 6}, {"leases_lost": 1, "duplicates": 2}
    metrics = Metrics(census=lambda: Census({"eligible": 3, "executed": 4}, gauges, counters))
    metrics.committed(0.003, 7)
    metrics.committed(0.2, 1)
    found = figures(metrics)
    assert (found["eligo_tasks eligible"], found["eligo_tasks executed"]) == (3, 4)
    assert (found["eligo_workflows"], found["eligo_leases"], found["eligo_clients"]) == (2, 5, 6)
    assert (found["eligo_leases_lost_total"], found["eligo_duplicates_total"]) == (1, 2)
    assert (found["eligo_commit_seconds_count"], found["eligo_commit_seconds_bucket 0.005"]) == (2, 1)
    assert (found["eligo_commit_size_sum"], found["eligo_commit_size_bucket 1"]) == (8, 1)


def test_two_servers_have_figures_of_their_own() -> None:
    first, second = Metrics(), Metrics()
    first.committed(0.1, 1)
    assert figures(second)["eligo_commit_seconds_count"] == 0


def test_a_spread_counts_up_to_its_bounds() -> None:
    spread = Spread((1, 2))
    for value in (0.5, 1, 1.5, 9):
        spread.add(value)
    assert spread.buckets() == [("1", 2.0), ("2", 3.0), ("+Inf", 4.0)]
    assert spread.total == 12


class Wanted(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    seconds: float | None = None


class Piece(msgspec.Struct):
    task: str
    inputs: dict[str, int]


class Given(msgspec.Struct):
    pieces: list[Piece]


async def nothing(call: ApiCall) -> None:
    """The handler of an endpoint that is only described."""


TABLE = [
    Endpoint(method="POST", path="/v1/request", answer=nothing, takes=Wanted, gives=Given, scopes=("work",)),
    Endpoint(method="GET", path="/v1/workflows/{workflow}/tasks", answer=nothing, gives=list[Piece],
             query={"state": "only this state", "limit": "maximum number"}, scopes=("read",)),
    Endpoint(method="POST", path="/v1/workflows", answer=nothing, takes=bytes, gives=Given, status=201),
    Endpoint(method="GET", path="/health", answer=nothing, gives=dict[str, str]),
]  # fmt: skip


def test_the_description_is_made_from_the_types() -> None:
    document = json.loads(json.dumps(openapi(TABLE)))
    ask = document["paths"]["/v1/request"]["post"]
    assert ask["operationId"] == "post_request"
    assert ask["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Wanted"}
    assert [p["name"] for p in ask["parameters"]] == ["Idempotency-Key"]
    assert {"200", "400", "401", "413", "415", "422", "503"} <= set(ask["responses"])
    assert "Retry-After" in ask["responses"]["503"]["headers"]
    look = document["paths"]["/v1/workflows/{workflow}/tasks"]["get"]["parameters"]
    assert [(p["name"], p["in"], p["required"], p["schema"]["type"]) for p in look] == [
        ("workflow", "path", True, "string"), ("state", "query", False, "string"), ("limit", "query", False, "integer"),
    ]  # fmt: skip
    assert set(document["components"]["schemas"]) == {"Wanted", "Given", "Piece", "Problem"}
    assert set(ask["responses"]["401"]["content"]) == {"application/problem+json"}
    assert document["components"]["schemas"]["Wanted"]["properties"]["count"]["maximum"] == 1000
    submit = document["paths"]["/v1/workflows"]["post"]
    assert submit["requestBody"]["content"] == {"application/octet-stream": {}}
    assert {"201", "409"} <= set(submit["responses"])
    assert "security" not in submit


def test_all_that_it_refers_to_is_there() -> None:
    document = openapi(TABLE)
    names = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])
    identities = [way["operationId"] for ways in document["paths"].values() for way in ways.values()]
    assert len(set(identities)) == len(TABLE)
