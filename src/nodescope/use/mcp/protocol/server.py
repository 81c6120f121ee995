"""
The protocol: the official SDK's low-level server around our tools and prompts.

Both eras of the protocol are the SDK's business: one server object, one
endpoint. Arguments are checked by us, because the SDK's own messages about
wrong ones tell a model nothing it can act on.
"""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.caching import CacheableMethod
from mcp.shared.exceptions import MCPError

from nodescope import __version__
from nodescope.base.clock import stopwatch_seconds
from nodescope.base.errors import NodescopeError
from nodescope.base.log import Log
from nodescope.base.quantity import render_seconds
from nodescope.base.text import clean_text
from nodescope.base.time_range import DAY_MS, parse_moment
from nodescope.serve.allocator import give_back_memory
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import LISTED_SCHEMA, fit
from nodescope.use.mcp.protocol.argument import build_schema, check_arguments
from nodescope.use.mcp.protocol.completion import complete
from nodescope.use.mcp.protocol.errors import DeadlinePassed, ToolMisused, render_no_such
from nodescope.use.mcp.protocol.instructions import INSTRUCTIONS
from nodescope.use.mcp.protocol.message import INVALID_PARAMS
from nodescope.use.mcp.protocol.prompts import PROMPTS, build_prompt
from nodescope.use.mcp.protocol.resources import RESOURCES, read_resource
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools import TOOLS

log = Log("mcp")

# Tools and prompts change with the program, not while it runs.
UNCHANGING = CacheHint(ttl_ms=3_600_000, scope="public")
CACHED: tuple[CacheableMethod, ...] = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
ERROR_CHARACTERS = 1_500
HOUR_MS = 3_600_000
# A call that took longer has read much; what it freed would stay with the C library.
LONG_SECONDS = 0.2

Context = ServerRequestContext[Any]


def build_server(fleet: Fleet) -> Server[Any]:
    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await answer_call(fleet, params.name, params.arguments or {})

    async def complete_argument(_: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        values = await complete(fleet, params.argument.name, params.argument.value)
        return types.CompleteResult(completion=types.Completion(values=values))

    return Server(
        "nodescope",
        version=__version__,
        title="nodescope",
        description="What every container on a node does, once a second: answers, not series.",
        instructions=INSTRUCTIONS,
        cache_hints=dict.fromkeys(CACHED, UNCHANGING),
        get_tool_input_schema=lambda name: build_schema(TOOLS[name].arguments) if name in TOOLS else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=read_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=fetch_resource,
        on_completion=complete_argument,
    )


# What is the same whatever the nodes are.


async def list_tools(*_: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[describe_tool(tool) for tool in TOOLS.values()])


async def list_prompts(*_: object) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[prompt.describe() for prompt in PROMPTS.values()])


async def list_resources(*_: object) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=RESOURCES)


async def list_templates(*_: object) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


async def read_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    try:
        return build_prompt(params.name, params.arguments or {})
    except ToolMisused as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error


async def fetch_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    try:
        return read_resource(uri)
    except ToolMisused as error:
        raise MCPError(INVALID_PARAMS, str(error), {"uri": uri}) from error


async def answer_call(fleet: Fleet, name: str, given: Mapping[str, Any]) -> types.CallToolResult:
    """A tool's answer, or an error that tells how to fix the call."""
    tool = TOOLS.get(name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, render_no_such("tool", name, TOOLS))
    began = stopwatch_seconds()
    try:
        answer = await tool.run(fleet, check_arguments(name, tool.arguments, given))
    except NodescopeError as error:
        log.info("call refused", tool=name, reason=str(error)[:200])
        shorter = suggest_shorter(tool, given) if isinstance(error, DeadlinePassed) else ""
        text, content = clean_text(f"{error}{shorter}", ERROR_CHARACTERS), None
    else:
        text, content = fit(answer)
    if stopwatch_seconds() - began > LONG_SECONDS:
        give_back_memory()
    said = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[said], structured_content=content, is_error=content is None)


def suggest_shorter(tool: Tool, given: Mapping[str, Any]) -> str:
    """A quarter of the span that was too long, in the tool's own arguments."""
    taken = {one.name for one in tool.arguments}
    if "minutes" in taken:
        return f"; shorten the span to minutes={max(1, int(given.get('minutes') or 15) // 4)}"
    if not {"from", "a_from"} & taken:
        return "; name one node, or start nodescope mcp with a longer --deadline"
    names = ("from", "to") if "from" in taken else ("b_from", "b_to")
    # Relative times have the same zero, whichever it is.
    now_ms = 2 * DAY_MS
    start, end = (parse_moment(str(given[name]), now_ms) if given.get(name) else None for name in names)
    end = now_ms if end is None else end
    seconds = max(60.0, (end - (end - HOUR_MS if start is None else start)) / 4000)
    return f"; shorten the span to {render_seconds(seconds)} (for example {names[0]}=-{seconds / 60:.0f}m)"


def describe_tool(tool: Tool) -> types.Tool:
    """As short as it can be: every client pays for the list before its first question."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=build_schema(tool.arguments),
        output_schema=LISTED_SCHEMA,
        annotations=types.ToolAnnotations(
            read_only_hint=True,
            idempotent_hint=True,
        ),
    )
