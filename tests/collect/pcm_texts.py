"""CSV texts of every generation of PCM, small enough to read."""

MODERN = (
    "System,System,System,System,System,System,System,System Core C-States,System Pack C-States,System,"
    "Socket 0,Core0 (Socket 0),Core0 (Socket 0),Core1 (Socket 0),Core1 (Socket 0),\n"
    "Date,Time,IPC,INST,ACYC,TIME(ticks),READ,C0res%,C2res%,Proc Energy (Joules),IPC,IPC,L3MISS,IPC,L3MISS,\n"
    "2025-07-19,18:27:08.085,0.95,59.83,63.29,2400.00,1.80,0.10,4.02,18.41,0.95,1.21,0.01,1.54,0.02,\n"
    "2025-07-19,18:27:09.085,0.90,90.00,100.00,2400.00,1.90,0.20,4.12,19.41,0.90,1.31,0.03,1.44,0.04,"
)
LEGACY = (
    "System;;;;;System Pack C-States;;Socket0;;\n"
    "Date;Time;EXEC;READ;TIME(ticks);C6res%;Proc Energy (Joules);IPC;TEMP;\n"
    "2017-04-14;13:52:31.359;0.00245;0.761;3.41e+03;50.1;2.37;0.589;N/A;\n"
    "2017-04-14;13:52:32.359;0.00345;0.861;3.41e+03;50.2;2.47;0.689;69;\n"
)
# 202104 to 202302: the group cells of the TMA columns are empty.
SPARSE_TMA = (
    "System,System,System,,,,,System,Socket 0,\n"
    "Date,Time,L2MPI,Frontend_bound(%),Bad_Speculation(%),Backend_Bound(%),Retiring(%),READ,IPC,\n"
    "2021-05-01,10:00:00.000,0.0025,37,34,17,11,1.80,0.95,\n"
)
POWER_PLANES = (
    "System,System,Power Plane 0 Energy (Joules),Power Plane 0 Energy (Joules),"
    "Power Plane 1 Energy (Joules),Power Plane 1 Energy (Joules),\n"
    "Date,Time,SKT0,SKT0,SKT1,SKT1,\n"
    "2024-05-01,10:00:00.000,1.00,2.00,3.00,4.00,\n"
)
OFFLINE = (
    "System,System,Core0 (Socket-1),Core1 (Socket 0),\n"
    "Date,Time,IPC,IPC,\n"
    "2024-05-01,10:00:00.000,0.50,-1.00,\n"
)
DIES = (
    "System,System,SKT0.0,SKT0.1,Core0 (Socket10),\n"
    "Date,Time,IPC,IPC,IPC,\n"
    "2026-05-01,10:00:00.000,0.50,0.60,0.70,\n"
)
MEMORY = (
    ",,SKT0,SKT0,SKT0,System,System,System\n"
    "Date,Time,Ch0Read,Ch1Read,Mem Read (MB/s),Read,Write,Memory\n"
    "2023-10-29,23:26:56.564,  170.40,,  758.60,   1092.72,    836.29,   1929.01\n"
    "2023-10-29,23:26:57.564,  171.40,,  759.60,   1192.72,    936.29,   2129.01\n"
)
PCIE = (
    "Skt,PCIRdCur,RFO\n0,10875256,1222606\n1,9920484,46844\n"
    "Skt,PCIRdCur,RFO\n0,20875256,2222606\n1,19920484,56844\n"
)
MERGED = (
    "System - Date,System - Time,System Core C-States - C0res%,Core3 (Socket 0) - IPC\r\n"
    "2025-07-06,00:32:06.314,17.23,1.11\r\n"
    "2025-07-06,00:32:11.316,18.68,1.01\r\n"
)
ALL = {
    "modern": MODERN,
    "legacy": LEGACY,
    "sparse_tma": SPARSE_TMA,
    "power_planes": POWER_PLANES,
    "offline": OFFLINE,
    "dies": DIES,
    "memory": MEMORY,
    "pcie": PCIE,
    "merged": MERGED,
}
