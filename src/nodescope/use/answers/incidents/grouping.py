"""Lives of one workload together."""

import re

from nodescope.use.answers.containers import Life


def workload_key(life: Life) -> str:
    owner = life.subject.details.get("owner") or ""
    name = owner.partition("/")[2]
    if not name:
        pod = life.pod or life.name
        name = re.sub(r"(-[a-z0-9]{6,10})?-[a-z0-9]{5}$", "", pod)
    return f"{life.namespace}/{name}" if life.namespace else name
