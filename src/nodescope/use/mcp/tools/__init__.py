"""
The tools, one file each; a tool is added by writing its file and one line here.

Their order is the order in which a question is usually worked out, and stays
the same: clients keep the list.
"""

from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools import (
    analyze_container,
    compare_windows,
    explain_incident,
    find_metrics,
    list_containers,
    list_metrics,
    list_nodes,
    rightsize,
    scan,
    summarize_container,
    summarize_node,
    top_containers,
    what_is_wrong,
)

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        what_is_wrong.TOOL,
        list_nodes.TOOL,
        summarize_node.TOOL,
        top_containers.TOOL,
        list_containers.TOOL,
        summarize_container.TOOL,
        analyze_container.TOOL,
        explain_incident.TOOL,
        compare_windows.TOOL,
        rightsize.TOOL,
        scan.TOOL,
        find_metrics.TOOL,
        list_metrics.TOOL,
    )
}
