"""The fixture node `board`: a network stack under load, sensors, an array being rebuilt, memory errors."""

import json
from dataclasses import replace

from tests.nodes.node import Node
from tests.nodes.plain_nodes import make_bare
from tests.nodes.proc_text import Machine

from nodescope.collect.sources.stack.infiniband import PARTS

NET = "sys/class/net"
HWMON = "sys/devices/platform/coretemp.0/hwmon/hwmon0"
MC = "sys/devices/system/edac/mc/mc0"
THERMAL = "sys/class/thermal"
CPU = "sys/devices/system/cpu"
RDMA = "sys/class/infiniband"


def make_board() -> Node:
    return replace(
        make_bare(),
        name="board",
        settings={"systemd": "dbus"},
        machine=Machine(cores=2, left_out=frozenset({"proc/diskstats", "proc/mounts", "proc/1/mounts"})),
        alter=lambda instant, files: files.update(board_files(instant)),
    )


def board_files(instant: int) -> dict[str, str]:
    return {
        **stack_files(instant),
        **interface_files("eth0", "up", "1", instant),
        **interface_files("eth1", "down", "0", instant),
        **bond_files(),
        **sensor_files(),
        **kernel_files(instant),
        **array_files(instant),
        **adapter_files(instant),
        **unit_files(),
    }


def stack_files(instant: int) -> dict[str, str]:
    """What the kernel counts of its protocols; 12 segments more are sent again at the second instant."""
    sent = 9_000 + 500 * instant
    again = 120 + 12 * instant
    established, listening = "01", "0A"
    rows = [(listening, 0, 0), (established, 16, 0), (established, 0, 512), ("06", 0, 0)]
    sockets = "".join(
        f"   {number}: 0100007F:1F90 0100007F:{number:04X} {state} {out:08X}:{into:08X} 00:00000000 00000000 0 0 {number}\n"
        for number, (state, out, into) in enumerate(rows)
    )
    header = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    )
    here = "proc/1/net"
    return {
        f"{here}/snmp": "Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 88000\n"
        "Icmp: InMsgs InErrors OutMsgs\nIcmp: 14 1 9\n"
        "Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs"
        f" InErrs OutRsts\nTcp: 1 -1 310 820 7 3 2 8000 {sent} {again} 4 15\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 440 2 1 430 1 0\n"
        "UdpLite: InDatagrams InErrors\nUdpLite: 0 0\n",
        f"{here}/netstat": "TcpExt: SyncookiesSent SyncookiesRecv SyncookiesFailed ListenOverflows ListenDrops"
        " TCPTimeouts TCPSynRetrans TCPOFOQueue TCPRcvQDrop\n"
        f"TcpExt: 1 2 3 {4 + instant} 5 60 70 80 90\n"
        "IpExt: InOctets OutOctets\nIpExt: 73400320 41943040\n",
        f"{here}/snmp6": "Ip6InOctets                     \t944\nIp6OutOctets                    \t6976\n"
        "Icmp6InMsgs                     \t4\nIcmp6InErrors                   \t1\nIcmp6OutMsgs                    \t88\n"
        "Udp6InDatagrams                 \t3\nUdp6NoPorts                     \t0\nUdp6InErrors                    \t0\n"
        "Udp6OutDatagrams                \t2\nUdp6RcvbufErrors                \t0\nUdp6SndbufErrors                \t0\n"
        "UdpLite6InErrors                \t0\n",
        f"{here}/sockstat": "sockets: used 213\nTCP: inuse 4 orphan 1 tw 1 alloc 9 mem 73\nUDP: inuse 3 mem 2\n"
        "UDPLITE: inuse 0\nRAW: inuse 1\nFRAG: inuse 0 memory 0\n",
        f"{here}/sockstat6": "TCP6: inuse 2\nUDP6: inuse 1\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n",
        f"{here}/softnet_stat": "".join(
            f"{5000 + core:08x} 00000001 00000002 {'00000000 ' * 5}00000003 00000004 00000005 00000006 {core:08x} 00000000 00000000\n"
            for core in (0, 1)
        ),
        f"{here}/tcp": header + sockets,
        f"{here}/tcp6": header,
        f"{here}/udp": header
        + "  10: 00000000:0044 00000000:0000 07 00000000:00000300 00:00000000 00000000 0 0 1 2\n",
        f"{here}/udp6": header,
        f"{here}/arp": "IP address       HW type     Flags       HW address            Mask     Device\n"
        "10.0.0.1         0x1         0x2         02:fc:00:00:00:02     *        eth0\n"
        "10.0.0.2         0x1         0x2         02:fc:00:00:00:03     *        eth0\n",
        f"{here}/stat/nf_conntrack": "entries clashres found new invalid ignore delete delete_list insert insert_failed"
        " drop early_drop icmp_error expect_new expect_create expect_delete search_restart\n"
        + f"{'0000002a ' + '00000001 ' * 16}\n"
        * 2,
        "proc/sys/net/netfilter/nf_conntrack_count": "42\n",
        "proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
    }


def interface_files(name: str, state: str, carrier: str, instant: int) -> dict[str, str]:
    texts = {
        "operstate": state,
        "carrier": carrier,
        "carrier_changes": f"{2 + instant}",
        "carrier_up_count": "1",
        "carrier_down_count": f"{1 + instant}",
        "dormant": "0",
        "speed": "10000" if carrier == "1" else "-1",
        "duplex": "full",
        "statistics/rx_nohandler": "5",
        "address": "02:fc:00:00:00:01",
        "broadcast": "ff:ff:ff:ff:ff:ff",
        "ifalias": "",
        "addr_assign_type": "3",
        "dev_id": "0x0",
        "flags": "0x1003" if carrier == "1" else "0x1002",
        "ifindex": "2",
        "iflink": "2",
        "link_mode": "0",
        "mtu": "9000",
        "name_assign_type": "4",
        "netdev_group": "0",
        "tx_queue_len": "1000",
        "type": "1",
    }
    return {f"{NET}/{name}/{file}": f"{text}\n" for file, text in texts.items()}


def bond_files() -> dict[str, str]:
    """Two interfaces, one of which has lost its link."""
    return {
        f"{NET}/bonding_masters": "bond0\n",
        f"{NET}/bond0/bonding/slaves": "eth0 eth1\n",
        f"{NET}/bond0/lower_eth0/bonding_slave/mii_status": "up\n",
        f"{NET}/bond0/lower_eth1/bonding_slave/mii_status": "down\n",
    }


def sensor_files() -> dict[str, str]:
    """Every element of every kind of sensor that we know, on one chip; a machine has some of them."""
    elements = {
        "temp1": (
            ("input", 45000),
            ("max", 90000),
            ("min", 0),
            ("crit", 100000),
            ("crit_hyst", 98000),
            ("max_hyst", 88000),
            ("emergency", 105000),
            ("lcrit", -5000),
            ("alarm", 0),
            ("crit_alarm", 0),
            ("max_alarm", 0),
            ("fault", 0),
        ),
        "fan1": (("input", 2100), ("min", 600), ("max", 6000), ("target", 2000), ("alarm", 0), ("fault", 0)),
        "in1": (
            ("input", 12050),
            ("min", 11000),
            ("max", 13000),
            ("crit", 14000),
            ("lcrit", 10000),
            ("alarm", 0),
        ),
        "curr1": (("input", 1500), ("min", 0), ("max", 9000), ("crit", 12000)),
        "power1": (
            ("input", 18_000_000),
            ("average", 17_000_000),
            ("cap", 95_000_000),
            ("max", 99_000_000),
            ("crit", 120_000_000),
        ),
        "energy1": (("input", 3_000_000),),
        "humidity1": (("input", 41_000),),
        "pwm1": (("enable", 2),),
    }
    texts = {
        f"{HWMON}/{sensor}_{name}": f"{value}\n" for sensor, rows in elements.items() for name, value in rows
    }
    return {
        **texts,
        f"{HWMON}/pwm1": "128\n",
        f"{HWMON}/temp1_label": "Package id 0\n",
        f"{HWMON}/name": "coretemp\n",
        f"{HWMON}/device": "-> ../../../coretemp.0",
        "sys/class/hwmon/hwmon0": "-> ../../devices/platform/coretemp.0/hwmon/hwmon0",
        f"{THERMAL}/thermal_zone0/type": "x86_pkg_temp\n",
        f"{THERMAL}/thermal_zone0/temp": "48000\n",
        f"{THERMAL}/cooling_device0/type": "Processor\n",
        f"{THERMAL}/cooling_device0/cur_state": "1\n",
        f"{THERMAL}/cooling_device0/max_state": "10\n",
        "sys/class/power_supply/PSU1/online": "1\n",
        "sys/class/power_supply/PSU1/present": "1\n",
        "sys/class/power_supply/BAT0/online": "0\n",
        **{
            f"sys/class/power_supply/BAT0/{name}": f"{value}\n"
            for name, value in (
                ("capacity", 81),
                ("current_now", 1_200_000),
                ("voltage_now", 12_100_000),
                ("power_now", 14_000_000),
                ("energy_now", 36_000_000),
                ("energy_full", 50_000_000),
                ("charge_now", 3_000_000),
                ("temp", 281),
            )
        },
        **{
            f"{CPU}/cpu{core}/{name}": f"{value}\n"
            for core in (0, 1)
            for name, value in (
                ("thermal_throttle/core_throttle_count", 5),
                ("thermal_throttle/package_throttle_count", 30),
                ("topology/core_id", core),
                ("topology/physical_package_id", 0),
            )
        },
        "sys/bus/nd/devices/region0/size": "137438953472\n",
        "sys/bus/nd/devices/region0/nstype": "2\n",
        "etc/machine-id": "5f1c2c1e0a7b4b5c9d8e7f6a5b4c3d2e\n",
        "sys/class/dmi/id/product_uuid": "8c7d6e5f-4a3b-2c1d-0e9f-8a7b6c5d4e3f\n",
        "proc/sys/kernel/random/boot_id": "0b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e\n",
        f"{MC}/ce_count": "3\n",
        f"{MC}/ue_count": "1\n",
        f"{MC}/ce_noinfo_count": "0\n",
        f"{MC}/ue_noinfo_count": "0\n",
        f"{MC}/csrow0/ce_count": "3\n",
        f"{MC}/csrow0/ue_count": "1\n",
    }


def kernel_files(instant: int) -> dict[str, str]:
    timex = {
        "state": 0,
        "offset": -1_200_000,
        "freq": -327_680,
        "maxerror": 16_000,
        "esterror": 120,
        "status": 0x2001,
        "constant": 7,
        "tick": 10_000,
        "ppsfreq": 0,
        "jitter": 0,
        "shift": 0,
        "stabil": 0,
        "jitcnt": 0,
        "calcnt": 0,
        "errcnt": 0,
        "stbcnt": 0,
        "tai": 37,
    }
    return {
        "calls/timex.json": json.dumps(timex, indent=1) + "\n",
        "proc/schedstat": "version 15\ntimestamp 4295000000\n"
        + "".join(
            f"cpu{core} 0 0 0 0 0 0 {10**12 + instant * 4 * 10**8} {10**11 + instant * 10**8} {20_000 + instant * 40}\n"
            "domain0 00000003 0 0 0\n"
            for core in (0, 1)
        ),
        "proc/sys/kernel/pid_max": "4194304\n",
        "proc/sys/kernel/threads-max": "192699\n",
        "proc/sys/kernel/hung_task_detect_count": "1\n",
        "proc/sys/kernel/random/entropy_avail": "256\n",
        "proc/sys/kernel/random/poolsize": "256\n",
    }


def adapter_files(instant: int) -> dict[str, str]:
    """Every counter that we know, on one port of one adapter; the second port's state cannot be read as a number."""
    here = f"{RDMA}/mlx5_0"
    port = f"{here}/ports/1"
    counters = {
        f"{port}/{part}/{file}": f"{number + 100 * instant}\n"
        for part, files in PARTS.items()
        if part
        for number, file in enumerate(files, 1)
    }
    return {
        **counters,
        f"{here}/board_id": "MT_0000000359\n",
        f"{here}/fw_ver": "20.31.1014\n",
        f"{here}/hca_type": "MT4123\n",
        f"{port}/state": "4: ACTIVE\n",
        f"{port}/phys_state": "5: LinkUp\n",
        f"{port}/rate": "100 Gb/sec (4X EDR)\n",
        f"{here}/ports/2/state": "DOWN\n",
        f"{here}/ports/2/counters/port_rcv_data": "N/A (no PMA)\n",
    }


def unit_files() -> dict[str, str]:
    """What systemd answers over D-Bus; `services` is the node whose units are told by their cgroups."""
    most = 2**64 - 1
    sshd = {"type": "notify", "restarts": 0, "tasks": 1, "most_tasks": 4915, "started": 1_689_990_000.5}
    agent = {"type": "simple", "restarts": 7, "tasks": most, "most_tasks": most, "started": 0}
    asked = {
        "units": [
            {"name": "sshd.service", "state": "active", **sshd},
            {"name": "backup.service", "state": "activating", **agent},
            {
                "name": "backup.timer",
                "state": "active",
                "triggered": 1_689_995_000.0,
                "started": 1_689_990_001.0,
            },
            {"name": "sshd.socket", "state": "inactive", "accepted": 12, "connections": 1, "refused": 3},
        ],
        "states": ["active", "active", "activating", "inactive", "inactive"],
        "state": "running",
        "version": "252.39-1~deb12u2",
    }
    return {"calls/systemd.json": json.dumps(asked, indent=1) + "\n"}


def array_files(instant: int) -> dict[str, str]:
    done = 16_775_552 + instant * 259_783
    return {
        "proc/mdstat": "Personalities : [raid1] [raid0]\n"
        "md6 : active raid1 sdb2[2](F) sdc[1](S) sda2[0]\n"
        "      195310144 blocks [2/1] [U_]\n"
        f"      [=>...................]  recovery =  8.5% ({done}/195310144) finish=17.0min speed=259783K/sec\n\n"
        "md7 : active raid0 sda1[0] sdb1[1]\n      314159265 blocks 64k chunks\n\nunused devices: <none>\n",
        "sys/block/md6/md/raid_disks": "2\n",
        "sys/block/md6/md/degraded": "1\n",
    }
