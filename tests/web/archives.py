"""Archives for the browser: the demo's stories, and names that were made to break a page."""

from pathlib import Path

from nodescope.keep.demo.archive import ROTATION_MS, cut_files, write_demo_file, write_node
from nodescope.keep.demo.plan import plan_node
from nodescope.keep.demo.samples import run_of
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import MS_PER_HOUR, DataFolder, clean_identifier
from nodescope.keep.session import Session, render_time, write_session

END_MS = 1_770_000_000_000
SCRIPT = "<script>window.broken = 1</script>"
IMAGE = "<img src=x onerror='window.broken = 2'>"
RIGHT_TO_LEFT = "pod-\u202egnp.exe-\u05e9\u05dc\u05d5\u05dd"
LONG = "n" * 1024
HOSTILE = (SCRIPT, IMAGE, RIGHT_TO_LEFT, LONG, '"; DROP TABLE pods; --', "=cmd()|x")


def write_demo(folder: Path, hours: float = 1.0, containers: int = 10, node: str = "demo-1") -> Path:
    write_node(DemoRequest(folder, hours, containers, 7, END_MS, node), "0", lambda _: None)
    return folder


def write_hostile(folder: Path) -> Path:
    """Ten minutes of containers in pods that nobody should have named so."""
    request = DemoRequest(folder, 1 / 6, 6, 7, END_MS, "demo-1")
    disk, data = Disk(), DataFolder(folder)
    disk.make_folder(data.path)
    node = plan_node(request)
    names = dict(zip(dict.fromkeys(life.pod for life in node.lives), HOSTILE, strict=False))
    for life in node.lives:
        life.pod = names.get(life.pod, life.pod)
    start_ms = END_MS - round(request.hours * MS_PER_HOUR)
    started = render_time(start_ms * 1_000_000)
    identifier = clean_identifier(request.node)
    write_session(
        disk,
        data,
        Session(
            run_of(request),
            identifier,
            started,
            request.node,
            "demo",
            1000,
            ROTATION_MS / 1000,
            "0",
            {"demo": "true"},
        ),
    )
    for number, span in enumerate(cut_files(start_ms, END_MS)):
        write_demo_file(disk, data, request, node, span, number + 1)
    return folder
