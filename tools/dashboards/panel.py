"""
The few kinds of panel that our dashboards are made of, on Grafana's own builders.

A query is a pair: the expression and the legend. `NODE` is the selector that
every expression carries: our job, and the nodes chosen at the top of the page.
"""

from collections.abc import Iterable
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Query = tuple[str, str]
Board = dashboard.Dashboard
Panel = TypeVar("Panel", timeseries.Panel, stat.Panel, statetimeline.Panel)

NODE = 'job="nodescope",node=~"$node"'
RATE = "$__rate_interval"
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
TAG = "nodescope"
# Grafana's grid is 24 wide.
THIRD, HALF, WHOLE, SIXTH = 8, 12, 24, 4
LINES_HEIGHT, NUMBER_HEIGHT = 8, 4


def build_board(uid: str, title: str, description: str) -> Board:
    """An empty page with the choice of the data source and of nodes, and links to its sisters."""
    board = (
        Board(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .editable()
    )
    sisters = dashboard.DashboardLink("nodescope").type(DashboardLinkType.DASHBOARDS).tags([TAG])
    board.link(sisters.as_dropdown(True).keep_time(True).include_vars(True))
    board.with_variable(dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus"))
    return board.with_variable(choice("node", "Node", 'label_values(up{job="nodescope"}, node)'))


def choice(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """A list to choose from; all by default, and all means also what has an empty label."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
    )


def row(title: str) -> dashboard.Row:
    return dashboard.Row(title)


def lines(
    title: str, unit: str, *queries: Query, about: str = "", span: int = HALF, stacked: bool = False
) -> timeseries.Panel:
    """Series over time."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .unit(unit)
        .span(span)
        .height(LINES_HEIGHT)
        .min(0)
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.BOTTOM)
            .calcs(["mean", "max", "lastNotNull"])
            .show_legend(True)
        )
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(25)
    return add_queries(panel, queries)


def number(
    title: str, unit: str, query: str, *steps: tuple[float | None, str], about: str = "", span: int = SIXTH
) -> stat.Panel:
    """The newest value, large; `steps` are (from, colour), the first of them from None."""
    panel = stat.Panel().title(title).description(about).datasource(SOURCE).unit(unit)
    panel.span(span).height(NUMBER_HEIGHT)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    thresholds = [Threshold(value=value, color=color) for value, color in steps or ((None, "blue"),)]
    panel.thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(thresholds))
    return add_queries(panel, [(query, "")])


def states(title: str, *queries: Query, about: str = "", span: int = WHOLE) -> statetimeline.Panel:
    """On and off over time, one line a series."""
    panel = statetimeline.Panel().title(title).description(about).datasource(SOURCE)
    panel.span(span).height(LINES_HEIGHT).show_value(VisibilityMode.NEVER)
    return add_queries(panel, queries)


def listing(title: str, query: str, *hidden: str, about: str = "", span: int = WHOLE) -> table.Panel:
    """The series of this moment as a table; `hidden` labels are left out."""
    panel = table.Panel().title(title).description(about).datasource(SOURCE)
    panel.span(span).height(LINES_HEIGHT).show_header(True)
    target = prometheus.Dataquery().expr(query).ref_id("A").instant().format(PromQueryFormat.TABLE)
    left_out = dict.fromkeys(("Time", "__name__", "job", "instance", *hidden), True)
    panel.with_transformation(DataTransformerConfig(id_val="organize", options={"excludeByName": left_out}))
    return panel.with_target(target)


def add_queries(panel: Panel, queries: Iterable[Query]) -> Panel:
    # Grafana's editor mixes up targets without a letter of their own.
    for letter, (expression, legend) in zip("ABCDEFGH", queries, strict=False):
        panel.with_target(prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(letter))
    return panel
