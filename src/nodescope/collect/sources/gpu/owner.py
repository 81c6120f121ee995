"""
Whose process uses a GPU: from its pid over its cgroup to container and pod.

Drivers name processes by the host's pid, so this needs the host's pid
namespace (hostPID); without it the pid is all that is known, and a pid of
another namespace must not be taken for a neighbour's.
"""

import re

from nodescope.base.text import clean_text
from nodescope.collect.run.source import Context

Owner = dict[str, str]
# slurmstepd's cgroups: /system.slice/slurmstepd.scope/job_123/step_0, in v1 /slurm/uid_0/job_123/step_0.
JOB = re.compile(r"/slurm[^/]*(?:/uid_\d+)?/job_(\d+)(?:/|$)")


def read_owner(context: Context, pid: int) -> Owner:
    """Name, start, namespace, pod, container and pod UID; what cannot be read is left out."""
    stat = context.root.read_text(f"proc/{pid}/stat")
    if stat is None:
        return {}
    fields = stat[stat.rfind(")") + 1 :].split()
    owner = {"name": clean_text(stat[stat.find("(") + 1 : stat.rfind(")")])}
    # starttime is field 22 of the line, the 20th behind the name.
    if len(fields) > 19:
        owner["start"] = fields[19]
    return owner | read_pod(context, pid)


def read_pod(context: Context, pid: int) -> Owner:
    """Or the job of Slurm that it belongs to."""
    for line in (context.root.read_text(f"proc/{pid}/cgroup") or "").splitlines():
        if job := JOB.search(line):
            return {"job_id": job[1]}
        cgroup, member = context.live_containers.identify(line.split(":", 2)[-1])
        if cgroup.container_id or cgroup.pod_uid:
            if member:
                known = dict(member.entity.labels)
            else:
                # Not met by the tick yet: its pod can be named, guessing the container is the tick's.
                name = context.names.lookup(cgroup, is_sandbox=True)
                known = {"namespace": name.namespace, "pod": name.pod, "container": name.container}
            words = {key: known.get(key, "") for key in ("namespace", "pod", "container")}
            return {**words, "pod_uid": cgroup.pod_uid, "container_id": cgroup.container_id}
    return {}
