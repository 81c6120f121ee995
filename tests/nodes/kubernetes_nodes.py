"""Fixture nodes of Kubernetes: each cgroup driver, container runtime and cgroup version."""

from tests.nodes.bundles import containerd_file, crio_file, docker_file
from tests.nodes.cgroup_text import Group
from tests.nodes.cgroup_tree import cgroup1_tree, hybrid_tree
from tests.nodes.kernel_text import MIB
from tests.nodes.node import Node
from tests.nodes.pods import (
    API,
    BATCH,
    DATABASE,
    FRESH,
    PROXY,
    WEB,
    all_processes,
    batch_group,
    container_id,
    database_group,
    pause_group,
    web_group,
)
from tests.nodes.proc_text import Machine


def make_cgroup2_systemd() -> Node:
    """systemd driver: containerd and CRI-O pods, Docker and Podman beside them."""
    web, batch = WEB.systemd_folder(), BATCH.systemd_folder()
    database, proxy, fresh = DATABASE.systemd_folder(), PROXY.systemd_folder(), FRESH.systemd_folder()
    app = f"cri-containerd-{WEB.container('app')}.scope"
    leaving = batch_group(batch, f"crio-{BATCH.container('main')}.scope")
    docker = f"system.slice/docker-{container_id('docker/redis')}.scope"
    podman = f"machine.slice/libpod-{container_id('podman/caddy')}.scope"
    conmon = f"machine.slice/libpod-conmon-{container_id('podman/caddy')}.scope"
    staying = (
        pause_group(web, f"cri-containerd-{WEB.container('pause')}.scope", 2100),
        # A service manager inside the container nests a cgroup of its own.
        web_group(web, app, pids=(2101,)),
        Group(f"{web}/{app}/init.scope", pids=(2102,)),
        database_group(database, f"cri-containerd-{DATABASE.container('postgres')}.scope"),
        Group(f"{proxy}/crio-{PROXY.container('kube-proxy')}.scope", pids=(2501,), cores=0.01),
        Group(f"{proxy}/crio-conmon-{PROXY.container('kube-proxy')}.scope", pids=(), cores=0.0),
        Group(docker, pids=(2801,), cores=0.02, memory_max=512 * MIB),
        Group(f"system.slice/docker-{container_id('docker/memcached')}.scope", pids=(2802,), cores=0.01),
        Group(f"{podman}/container", pids=(2901,), cores=0.01),
        Group(podman, cores=0.01),
        Group(conmon, pids=(2950,), cores=0.0),
        Group("system.slice/sshd.service", cores=0.0),
    )
    arriving = Group(
        f"{fresh}/crio-{FRESH.container('main')}.scope", pids=(2701,), cores=0.4, cpu_usec=300_000
    )
    groups = (*staying, leaving)
    return Node(
        "cgroup2-systemd",
        "2",
        settings={"cgroup_levels": True},
        groups=groups,
        later_groups=(*staying, arriving),
        processes=all_processes((*groups, arriving)),
        pod_logs=(
            WEB.log_folder("app"),
            BATCH.log_folder("main"),
            DATABASE.log_folder("postgres"),
            PROXY.log_folder("kube-proxy"),
            FRESH.log_folder("main"),
        ),
        container_logs=(WEB.log_file("app"), DATABASE.log_file("postgres"), BATCH.log_file("main")),
        alter=lambda _, files: files.update(
            {
                **containerd_file(WEB, "app", "registry.example/shop/web:1.4"),
                **containerd_file(WEB, "pause", "registry.k8s.io/pause:3.10", "sandbox"),
                **crio_file(PROXY, "kube-proxy", "registry.k8s.io/kube-proxy:v1.35.8"),
                **docker_file("redis", "redis:7"),
            }
        ),
    )


def make_cgroup2_cgroupfs() -> Node:
    """cgroupfs driver: kubepods/<qos>/pod<uid>/<id>, no scopes; a static pod."""
    groups = (
        pause_group(WEB.cgroupfs_folder(), WEB.container("pause"), 2100),
        web_group(WEB.cgroupfs_folder(), WEB.container("app")),
        batch_group(BATCH.cgroupfs_folder(), BATCH.container("main")),
        database_group(DATABASE.cgroupfs_folder(), DATABASE.container("postgres")),
        Group(f"{API.cgroupfs_folder()}/{API.container('kube-apiserver')}", pids=(2601,), cores=0.1),
        Group(f"docker/{container_id('docker/redis')}", pids=(2801,), cores=0.02),
    )
    return Node(
        "cgroup2-cgroupfs",
        "2",
        groups=groups,
        processes=all_processes(groups),
        pod_logs=(
            WEB.log_folder("app"),
            BATCH.log_folder("main"),
            API.log_folder("kube-apiserver"),
        ),
    )


def kind_groups(outer: str) -> tuple[Group, ...]:
    prefix = "kubelet-kubepods"
    web, batch = WEB.systemd_folder(prefix), BATCH.systemd_folder(prefix)
    return (
        pause_group(f"{outer}{web}", f"cri-containerd-{WEB.container('pause')}.scope", 2100),
        web_group(f"{outer}{web}", f"cri-containerd-{WEB.container('app')}.scope"),
        batch_group(f"{outer}{batch}", f"cri-containerd-{BATCH.container('main')}.scope"),
        Group(f"{outer}kubelet.slice/kubelet.service", cores=0.05),
        Group(f"{outer}system.slice/containerd.service", cores=0.02),
    )


def make_kind() -> Node:
    """A node of kind, seen from inside: kubelet.slice/kubelet-kubepods.slice."""
    groups = kind_groups("")
    return Node(
        "kind",
        "2",
        machine=Machine(hostname="demo-worker"),
        groups=groups,
        processes=all_processes(groups),
        pod_logs=(WEB.log_folder("app"), BATCH.log_folder("main")),
    )


def make_kind_host() -> Node:
    """The same cluster seen from the host: containers inside a container."""
    outer = f"system.slice/docker-{container_id('docker/demo-worker')}.scope"
    init = Group(f"{outer}/init.scope", pids=(2810,), cores=0.0)
    groups = (Group(outer, cores=0.9), init, *kind_groups(f"{outer}/"))
    return Node(
        "kind-host",
        "2",
        groups=groups,
        processes=all_processes(groups),
    )


def make_cgroup1() -> Node:
    """v1 controllers with cpu,cpuacct together: Docker and kubepods, an older kernel, two NUMA nodes, huge pages."""
    machine = Machine(
        kernel="5.10.0-28-amd64",
        has_irq_pressure=False,
        left_out=frozenset({"proc/pressure", "proc/sys/kernel/arch"}),
    )
    groups = (
        pause_group(WEB.cgroupfs_folder(), WEB.container("pause"), 2100),
        web_group(WEB.cgroupfs_folder(), WEB.container("app")),
        database_group(DATABASE.cgroupfs_folder(), DATABASE.container("postgres")),
        Group(f"docker/{container_id('docker/redis')}", pids=(2801,), cores=0.02),
        Group("system.slice/sshd.service", cores=0.0),
    )
    return Node(
        "cgroup1",
        "1",
        machine=machine,
        groups=groups,
        processes=all_processes(groups),
        tree=cgroup1_tree,
        container_logs=(WEB.log_file("app"), DATABASE.log_file("postgres")),
        alter=lambda _, files: files.update(page_files(f"{WEB.cgroupfs_folder()}/{WEB.container('app')}")),
    )


def page_files(container: str) -> dict[str, str]:
    """Where the memory of a container lies on a machine with two NUMA nodes and huge pages of 2 MB."""
    numa = "".join(
        f"{start}{kind}={low + high} N0={low} N1={high}\n"
        for start in ("", "hierarchical_")
        for kind, low, high in (
            ("total", 900, 40),
            ("file", 300, 10),
            ("anon", 600, 30),
            ("unevictable", 0, 0),
        )
    )
    used = {"usage_in_bytes": 4 * MIB, "max_usage_in_bytes": 6 * MIB, "failcnt": 2, "limit_in_bytes": 8 * MIB}
    return {
        "sys/devices/system/node/node0/cpulist": "0-1\n",
        "sys/devices/system/node/node1/cpulist": "2-3\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "64\n",
        f"sys/fs/cgroup/memory/{container}/memory.numa_stat": numa,
        **{
            f"sys/fs/cgroup/hugetlb/{container}/hugetlb.2MB.{name}": f"{value}\n"
            for name, value in used.items()
        },
    }


def make_hybrid() -> Node:
    """systemd's hybrid layout: v1 controllers, pressure and cpu.stat from the v2 tree."""
    machine = Machine(kernel="5.15.0-101-generic", has_irq_pressure=False)
    web, database = WEB.systemd_folder(), DATABASE.systemd_folder()
    groups = (
        pause_group(web, f"cri-containerd-{WEB.container('pause')}.scope", 2100),
        web_group(web, f"cri-containerd-{WEB.container('app')}.scope"),
        database_group(database, f"cri-containerd-{DATABASE.container('postgres')}.scope"),
        Group(f"system.slice/docker-{container_id('docker/redis')}.scope", pids=(2801,), cores=0.02),
    )
    return Node(
        "hybrid",
        "hybrid",
        machine=machine,
        groups=groups,
        processes=all_processes(groups),
        tree=hybrid_tree,
        pod_logs=(WEB.log_folder("app"), DATABASE.log_folder("postgres")),
    )
