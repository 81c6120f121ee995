"""The built web app, or a plain page that says that it is missing."""

import mimetypes
from pathlib import Path

from starlette.responses import FileResponse, HTMLResponse, Response

from nodescope.base.text import clean_text
from nodescope.serve.json_response import make_error

STATIC = Path(__file__).parent / "static"
# Built files carry a hash in their name: what has the name never changes.
FOREVER = "public, max-age=31536000, immutable"
NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nodescope</title></head>
<body><h1>nodescope</h1>
<p>The web page is missing from this installation. Install nodescope again; in a checkout,
<code>git checkout src/nodescope/use/viewer/static</code> brings it back.</p>
<p>The API is here all the same: <a href="/api/instance">/api/instance</a>,
<a href="/api/containers">/api/containers</a>, <a href="/api/metrics">/api/metrics</a>,
<a href="/openapi.json">/openapi.json</a>.</p></body></html>
"""
# The page of a node is also at /: where many nodes are behind other viewers, / leads to theirs.
PAGES = {"/": "index.html", "/node": "index.html", "/cluster": "cluster.html"}
# Not every machine knows these; a script of the wrong type is not run.
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def find_file(static: Path, name: str) -> Path | None:
    """A file inside the folder; None where there is none, or could be none of that name."""
    try:
        file = (static / name).resolve()
        return file if file.is_relative_to(static.resolve()) and file.is_file() else None
    except (OSError, ValueError):
        # Longer than a name may be, or with a zero byte.
        return None


def serve_page(path: str, static: Path = STATIC) -> Response:
    """A file of the build; anything else that is no file of it is not found."""
    name = PAGES.get(path) or path.strip("/")
    file = find_file(static, name)
    if file is None and name in PAGES.values():
        return HTMLResponse(NOT_BUILT, headers={"Cache-Control": "no-cache"})
    if file is None:
        shown = clean_text(path, 80)
        return make_error(404, "not found", f"no {shown}; the page is at /, the data at /api/...")
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    cache = FOREVER if name.startswith("assets/") else "no-cache"
    return FileResponse(file, media_type=kind, headers={"Cache-Control": cache})
