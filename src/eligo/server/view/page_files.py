"""The page itself, as browsers get it: its files, and nothing from anywhere else."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from eligo.pages.html import ABSENT, ASSETS, asset

#: where the page is; for anybody, since there is nothing in it
PATHS = {"/": "index.html", "/page/page.js": "page.js", "/page/page.css": "page.css"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}  # fmt: skip
PLAIN = "<!DOCTYPE html><title>eligo</title><p>The server is running, but {}.</p>"


def page_routes() -> list[Route]:
    """The addresses of the page."""
    return [Route(path, _file, methods=["GET"]) for path in PATHS]


async def _file(request: Request) -> Response:
    name = PATHS[request.url.path]
    body = asset(name)
    if body is None:
        return Response(PLAIN.format(ABSENT), 404, HEADERS, ASSETS["index.html"])
    return Response(body, headers=HEADERS, media_type=ASSETS[name])
