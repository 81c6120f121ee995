"""Annotations: what people and programs noted about a node's data, and a way to add one."""

import json
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from nodescope.base.clock import SystemClock
from nodescope.base.errors import HttpFailed, RequestRejected
from nodescope.base.findings.annotation import Annotation, parse_annotation_request
from nodescope.base.text import clean_text
from nodescope.read.files.annotations import add_annotation
from nodescope.serve.body import read_body
from nodescope.serve.http_client import HttpClient, parse_endpoint
from nodescope.serve.json_response import make_refusal
from nodescope.use.answers.refusal import bad_request
from nodescope.use.answers.wire import Json
from nodescope.use.viewer import shapes
from nodescope.use.viewer.request import NodeName, Served, Viewer, make_json, work

BODY_BYTES, BODY_SECONDS = 4096, 10.0
AGENT_SECONDS = 5.0

router = APIRouter()


@router.get("/api/annotations", response_model=shapes.AnnotationsJson)
async def list_annotations(viewer: Served, node: NodeName = "") -> Response:
    return await work(viewer, lambda: make_json(answer_annotations(viewer, node)))


def answer_annotations(viewer: Viewer, node: str) -> Json:
    notes = {note.id: note for one in viewer.view(node).nodes for note in one.notes}
    return {"annotations": [note.to_json() for note in sorted(notes.values(), key=lambda note: note.at)]}


@router.post("/api/annotations", response_model=shapes.AnnotationJson)
async def annotate(viewer: Served, request: Request, node: NodeName = "") -> Response:
    """`{"text": "deployed 2.1 here", "at": EPOCH_SECONDS}`; without `at` it is of now."""
    try:
        body = await read_body(request.scope, request.receive, BODY_BYTES, BODY_SECONDS)
        note = parse_annotation_request(body, SystemClock().wall_ns() / 1e9)
    except RequestRejected as error:
        return make_refusal(error)
    await run_in_threadpool(keep_note, viewer, node, note)
    return make_json(note.to_json(), {"Cache-Control": "no-store"})


def keep_note(viewer: Viewer, node: str, note: Annotation) -> None:
    """In the data folder; where this process may not write there, through the agent, whose folder it is."""
    viewer.view(node)
    folder = viewer.folders.folder_of(node)
    if folder is None and viewer.folders.agent is None:
        raise bad_request("several data folders, or files alone, are served: name one with node=")
    reason = write_note(folder, note) if folder else "it has no data folder"
    if reason and not (viewer.folders.agent and send_note(viewer, note)):
        raise bad_request(f"this viewer cannot keep annotations: {reason}")


def write_note(folder: Path, note: Annotation) -> str:
    """Why it could not be written; empty where it was."""
    try:
        add_annotation(folder, note)
    except OSError as error:
        return f"{clean_text(str(folder), 200)}: {error.strerror}"
    return ""


def send_note(viewer: Viewer, note: Annotation) -> bool:
    agent = viewer.folders.agent
    if agent is None:
        return False
    headers = {"Content-Type": "application/json"}
    if agent.token:
        headers["Authorization"] = f"Bearer {agent.token}"
    client = HttpClient(parse_endpoint(agent.address, agent.tls), AGENT_SECONDS, 2**16)
    try:
        answer = client.request("POST", "/annotations", headers, json.dumps(note.to_json()).encode())
    except HttpFailed:
        return False
    finally:
        client.close()
    return answer.status == 200
