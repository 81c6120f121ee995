from nodescope.base.quantity import is_share
from nodescope.base.quantity import render_bytes as byte_quantity
from nodescope.base.quantity import render_number as rounded
from nodescope.base.quantity import render_quantity as quantity
from nodescope.base.quantity import render_seconds as duration
from nodescope.base.quantity import render_slope as per_time
from nodescope.base.text import capitalise as capitalised
from nodescope.base.text import render_metric as spoken
from nodescope.base.text import render_unknown as unknown_name
from nodescope.base.time_range import render_time as clock

__all__ = [
    "byte_quantity",
    "capitalised",
    "clock",
    "duration",
    "is_share",
    "per_time",
    "quantity",
    "rounded",
    "spoken",
    "unknown_name",
]
