"""
XID errors: what the driver writes to the kernel's log, as NVML events.

Each is delivered once, to whoever waits; so a thread of its own waits. A GPU
that fell off the bus (XID 79) can no longer say who it is: events are told
apart by the handle they were registered with.
"""

import ctypes
import threading
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.log import Log
from nodescope.collect.sources.nvidia.nvml import TIMEOUT

log = Log("nvidia")

XID_EVENT = 8
WAIT_MS = 500
# After an error that is no timeout, so that a broken driver is not hammered.
PAUSE_SECONDS = 5.0
# The driver knows some 170 XIDs; more different ones are not believable.
KINDS = 200


@dataclass(slots=True)
class XidWatch:
    """Counts XIDs per GPU and kind from its start on."""

    binding: Any
    clock: Clock
    counts: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)
    """uuid -> xid -> (count, wall seconds of the last); a GPU without events is there, empty."""
    _places: dict[int, str] = field(default_factory=dict)
    _events: Any = None
    _thread: threading.Thread | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, handles: dict[str, Any]) -> None:
        """Register every GPU that offers XID events; without any there is no thread."""
        try:
            self._events = self.binding.nvmlEventSetCreate()
        except self.binding.NVMLError:
            return
        for uuid, handle in handles.items():
            try:
                self.binding.nvmlDeviceRegisterEvents(handle, XID_EVENT, self._events)
            except self.binding.NVMLError:
                continue
            self._places[address(handle)] = uuid
            self.counts.setdefault(uuid, {})
        if self._places:
            self._thread = threading.Thread(target=self._run, name="nvidia-xid", daemon=True)
            self._thread.start()

    def snapshot(self) -> dict[str, dict[str, tuple[int, float]]]:
        with self._lock:
            return {uuid: dict(kinds) for uuid, kinds in self.counts.items()}

    def stop(self) -> bool:
        """Whether the thread ended, so that NVML may be shut down."""
        self._stop.set()
        if self._thread:
            self._thread.join(timeout=4 * WAIT_MS / 1000)
            if self._thread.is_alive():
                return False
        if self._events is not None:
            try:
                self.binding.nvmlEventSetFree(self._events)
            except self.binding.NVMLError:
                pass
        return True

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                event = self.binding.nvmlEventSetWait_v2(self._events, WAIT_MS)
            except self.binding.NVMLError as error:
                if error.value != TIMEOUT:
                    self._stop.wait(PAUSE_SECONDS)
                continue
            self._note(event)

    def _note(self, event: Any) -> None:
        uuid = self._places.get(address(event.device))
        if uuid is None or not event.eventType & XID_EVENT:
            return
        xid = str(int(event.eventData))
        log.warning("xid", uuid=uuid, xid=xid)
        with self._lock:
            kinds = self.counts[uuid]
            if xid in kinds or len(kinds) < KINDS:
                kinds[xid] = (kinds.get(xid, (0, 0.0))[0] + 1, self.clock.wall_ns() / 1e9)


def address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
