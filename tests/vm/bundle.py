"""
The image as the guest's runc runs it: its root file system on a disk, and a bundle.

The container's config.json is made from the DaemonSet's rendered manifest, as kubelet
and containerd would: arguments, environment, mounts, capabilities, memory limit,
read-only root, host's pids, a network of its own. Two things differ, because
Python is 11 to 18 times slower inside: no CPU limit, and no CPU budget.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.image import storage
from tests.manifests import parse_memory, read_pod
from tests.vm.guest.image import POD, ROOT
from tests.vm.parts import PartMissing, install
from tests.vm.root import find_libraries, write_image

CHECKOUT = Path(__file__).resolve().parents[2]
ROOM_MEGABYTES = 64
# What the downward API fills in.
FIELDS = {"spec.nodeName": "vm", "metadata.name": POD.pod}
# Mounts that every container has, as containerd makes them.
USUAL_MOUNTS = (
    ("/proc", "proc", ["nosuid", "noexec", "nodev"]),
    ("/dev", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
    ("/dev/pts", "devpts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
    ("/dev/shm", "tmpfs", ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),  # noqa: S108
    ("/dev/mqueue", "mqueue", ["nosuid", "noexec", "nodev"]),
    ("/sys", "sysfs", ["nosuid", "noexec", "nodev", "ro"]),
    ("/sys/fs/cgroup", "cgroup", ["nosuid", "noexec", "nodev", "relatime", "ro"]),
)
NAMESPACES = ("mount", "network", "uts", "ipc", "cgroup")


def render_mounts(pod: dict[str, Any], container: dict[str, Any]) -> list[dict[str, Any]]:
    volumes = {one["name"]: one for one in pod["volumes"]}
    made = [
        {"destination": point, "type": kind, "source": kind, "options": options}
        for point, kind, options in USUAL_MOUNTS
    ]
    for mount in container["volumeMounts"]:
        point, volume = mount["mountPath"], volumes[mount["name"]]
        if "hostPath" in volume:
            options = ["rbind", "rprivate", "ro" if mount.get("readOnly") else "rw"]
            made.append(
                {
                    "destination": point,
                    "type": "bind",
                    "source": volume["hostPath"]["path"],
                    "options": options,
                }
            )
        else:
            made.append({"destination": point, "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]})
    return made


def render_environment(container: dict[str, Any], image: dict[str, Any]) -> list[str]:
    named = {one["name"]: one.get("value") for one in container["env"]}
    for one in container["env"]:
        if "valueFrom" in one:
            named[one["name"]] = FIELDS[one["valueFrom"]["fieldRef"]["fieldPath"]]
    named["NODESCOPE_BUDGET_RATIO"] = "1"
    return [*image["Env"], *(f"{name}={value}" for name, value in named.items())]


def render_config(pod: dict[str, Any], image: dict[str, Any]) -> dict[str, Any]:
    """The container's config.json, of the OCI's runtime specification."""
    (container,) = (one for one in pod["containers"] if one["name"] == "agent")
    security = container["securityContext"]
    held = [f"CAP_{name}" for name in security["capabilities"]["add"]]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": security["runAsUser"], "gid": 0},
            "args": [*image["Entrypoint"], *container["args"]],
            "env": render_environment(container, image),
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), held),
            "noNewPrivileges": not security["allowPrivilegeEscalation"],
        },
        "root": {"path": str(ROOT), "readonly": security["readOnlyRootFilesystem"]},
        "hostname": POD.pod,
        "mounts": render_mounts(pod, container),
        "linux": {
            "cgroupsPath": POD.cgroup,
            "namespaces": [
                *({"type": name} for name in NAMESPACES),
                *([] if pod.get("hostPID") else [{"type": "pid"}]),
            ],
            "resources": {
                "devices": [{"allow": False, "access": "rwm"}],
                "memory": {"limit": parse_memory(container["resources"]["limits"]["memory"])},
            },
            "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    }


def buildah(*words: str) -> str:
    done = storage.run("buildah", *words)
    if done.returncode:
        raise PartMissing(f"buildah {words[0]}: {done.stderr.strip()[-400:]}")
    return done.stdout.strip()


def build_image() -> str:
    print("# building the image", flush=True)
    done = subprocess.run([CHECKOUT / "tests/image/build"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def write_image_disk(name: str, disk: Path) -> None:
    made = buildah("from", "--pull-never", name)
    try:
        root = Path(buildah("mount", made))
        megabytes = sum(file.lstat().st_size for file in root.rglob("*")) >> 20
        write_image(root, disk, f"{megabytes * 5 // 4 + ROOM_MEGABYTES}M")
    finally:
        buildah("rm", made)


def write_bundle(name: str, folder: Path) -> None:
    """config.json and runc, with the libraries that the guest's root may not have."""
    folder.mkdir()
    image = json.loads(buildah("inspect", "--type", "image", name))["OCIv1"]["config"]
    (folder / "config.json").write_text(json.dumps(render_config(read_pod(), image), indent=1))
    runc = Path(install("runc", "runc"))
    shutil.copy2(runc, folder / "runc")
    for library in find_libraries([runc]):
        if library.name.startswith("libseccomp"):
            shutil.copy2(library, folder / library.name)
