/*
 * A libnvidia-ml.so.1 that says what a text file says.
 *
 * FAKE_NVML_SCENARIO names the file; it is read again at every call, so that a
 * GPU can die, an error can appear and a call can hang while an agent runs.
 *
 *     driver = 580.126.01
 *     count = 2
 *     all.name = NVIDIA H100          every GPU, unless gpuN.name says otherwise
 *     gpu0.utilization = 87
 *     gpu1.* = !15                    every call about GPU 1 answers NVML_ERROR_GPU_IS_LOST
 *     gpu0.power = ~30                the call sleeps for 30 s, then answers NOT_SUPPORTED
 *     all.field.138 = 1024            a field; all.link3.138 is that of NVLink 3 alone
 *     init = !18                      nvmlInit answers LIB_RM_VERSION_MISMATCH
 *     event = 3 0 79                  event number 3: GPU 0 has XID 79; delivered once
 *
 * A key that is not there answers NVML_ERROR_NOT_SUPPORTED. Compiled with
 * -DOLD_DRIVER it lacks what drivers before R510 lack.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6,
    TOO_SMALL = 7, TIMEOUT = 10, VERSION_MISMATCH = 25
};
#define MAX_GPUS 16
#define MAX_PARTS 7
#define TEXT 1024

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { int gpu; int part; /* -1: the GPU itself */ } device;

static device gpus[MAX_GPUS];
static device parts[MAX_GPUS][MAX_PARTS];
static int initialised;
static long events_seen;

static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = 0;
    return text;
}

/* The last line with this key; "!N" is an error, "~N" a pause of N seconds. */
static int look_up(const char *key, char *value)
{
    const char *path = getenv("FAKE_NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[TEXT], found[TEXT] = "";
    int is_there = 0;
    if (!file) return UNSUPPORTED;
    while (fgets(line, sizeof line, file)) {
        char *equals = strchr(line, '=');
        if (!equals) continue;
        *equals = 0;
        if (strcmp(trim(line), key)) continue;
        snprintf(found, sizeof found, "%s", trim(equals + 1));
        is_there = 1;
    }
    fclose(file);
    if (!is_there) return UNSUPPORTED;
    if (found[0] == '!') return atoi(found + 1);
    if (found[0] == '~') { sleep((unsigned)atoi(found + 1)); return UNSUPPORTED; }
    snprintf(value, TEXT, "%s", found);
    return SUCCESS;
}

static int ask(const device *d, const char *name, char *value)
{
    char key[128];
    int answer;
    if (!initialised) return UNINITIALIZED;
    if (!d) return INVALID;
    snprintf(key, sizeof key, "gpu%d.*", d->gpu);
    answer = look_up(key, value);
    if (answer != SUCCESS && answer != UNSUPPORTED) return answer;
    if (d->part >= 0) {
        snprintf(key, sizeof key, "gpu%d.mig%d.%s", d->gpu, d->part, name);
        return look_up(key, value);
    }
    snprintf(key, sizeof key, "gpu%d.%s", d->gpu, name);
    answer = look_up(key, value);
    if (answer != UNSUPPORTED) return answer;
    snprintf(key, sizeof key, "all.%s", name);
    return look_up(key, value);
}

static int ask_u64(const device *d, const char *name, u64 *out)
{
    char value[TEXT];
    int answer = ask(d, name, value);
    if (answer == SUCCESS) *out = strtoull(value, NULL, 0);
    return answer;
}

static int ask_u32(const device *d, const char *name, u32 *out)
{
    u64 wide = 0;
    int answer = ask_u64(d, name, &wide);
    if (answer == SUCCESS) *out = (u32)wide;
    return answer;
}

static int ask_text(const device *d, const char *name, char *out, u32 size)
{
    char value[TEXT];
    int answer = ask(d, name, value);
    if (answer == SUCCESS) snprintf(out, size, "%s", value);
    return answer;
}

static int system_text(const char *key, char *out, u32 size)
{
    char value[TEXT];
    int answer = look_up(key, value);
    if (answer == SUCCESS) snprintf(out, size, "%s", value);
    return answer;
}

/* -- the library ------------------------------------------------------- */

int nvmlInitWithFlags(u32 flags)
{
    char value[TEXT];
    int answer = look_up("init", value);
    (void)flags;
    if (answer != SUCCESS && answer != UNSUPPORTED) return answer;
    initialised++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    if (!initialised) return UNINITIALIZED;
    initialised--;
    return SUCCESS;
}

const char *nvmlErrorString(int number)
{
    static char text[40];
    snprintf(text, sizeof text, "error %d", number);
    return text;
}

int nvmlSystemGetDriverVersion(char *out, u32 size) { return system_text("driver", out, size); }
int nvmlSystemGetNVMLVersion(char *out, u32 size) { return system_text("driver", out, size); }

int nvmlDeviceGetCount_v2(u32 *count)
{
    char value[TEXT];
    int answer;
    if (!initialised) return UNINITIALIZED;
    answer = look_up("count", value);
    if (answer == SUCCESS) *count = (u32)atoi(value);
    return answer;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, device **out)
{
    char key[64], value[TEXT];
    u32 count = 0;
    int answer = nvmlDeviceGetCount_v2(&count);
    if (answer != SUCCESS) return answer;
    if (index >= count || index >= MAX_GPUS) return INVALID;
    snprintf(key, sizeof key, "gpu%u.handle", index);
    answer = look_up(key, value);
    if (answer != SUCCESS && answer != UNSUPPORTED) return answer;
    gpus[index].gpu = (int)index;
    gpus[index].part = -1;
    *out = &gpus[index];
    return SUCCESS;
}

/* -- identity ---------------------------------------------------------- */

int nvmlDeviceGetIndex(device *d, u32 *out) { *out = (u32)d->gpu; return SUCCESS; }
int nvmlDeviceGetName(device *d, char *out, u32 size) { return ask_text(d, "name", out, size); }
int nvmlDeviceGetUUID(device *d, char *out, u32 size) { return ask_text(d, "uuid", out, size); }
int nvmlDeviceGetSerial(device *d, char *out, u32 size) { return ask_text(d, "serial", out, size); }
int nvmlDeviceGetVbiosVersion(device *d, char *out, u32 size) { return ask_text(d, "vbios", out, size); }

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(device *d, struct pci *out)
{
    memset(out, 0, sizeof *out);
    return ask_text(d, "pci", out->bus_id, sizeof out->bus_id);
}

/* -- readings ---------------------------------------------------------- */

struct rates { u32 gpu, memory; };
int nvmlDeviceGetUtilizationRates(device *d, struct rates *out)
{
    int answer = ask_u32(d, "utilization", &out->gpu);
    return answer ? answer : ask_u32(d, "memory_busy", &out->memory);
}

struct memory { u64 total, free, used; };
int nvmlDeviceGetMemoryInfo(device *d, struct memory *out)
{
    u64 reserved = 0;
    int answer = ask_u64(d, "memory.total", &out->total);
    if (answer) return answer;
    if ((answer = ask_u64(d, "memory.used", &out->used))) return answer;
    /* Version 1 counts what the driver reserves as used. */
    if (ask_u64(d, "memory.reserved", &reserved) == SUCCESS) out->used += reserved;
    out->free = out->total - out->used;
    return SUCCESS;
}

#ifndef OLD_DRIVER
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(device *d, struct memory_v2 *out)
{
    int answer;
    if (out->version != (sizeof *out | 2u << 24)) return VERSION_MISMATCH;
    out->reserved = 0;
    if ((answer = ask_u64(d, "memory.total", &out->total))) return answer;
    if ((answer = ask_u64(d, "memory.used", &out->used))) return answer;
    ask_u64(d, "memory.reserved", &out->reserved);
    out->free = out->total - out->used - out->reserved;
    return SUCCESS;
}
#endif

int nvmlDeviceGetTemperature(device *d, u32 sensor, u32 *out)
{
    return sensor ? INVALID : ask_u32(d, "temperature", out);
}
int nvmlDeviceGetPowerUsage(device *d, u32 *out) { return ask_u32(d, "power", out); }
int nvmlDeviceGetEnforcedPowerLimit(device *d, u32 *out) { return ask_u32(d, "power_limit", out); }
int nvmlDeviceGetTotalEnergyConsumption(device *d, u64 *out) { return ask_u64(d, "energy", out); }
int nvmlDeviceGetFanSpeed(device *d, u32 *out) { return ask_u32(d, "fan", out); }
int nvmlDeviceGetPerformanceState(device *d, u32 *out) { return ask_u32(d, "state", out); }
int nvmlDeviceGetPcieReplayCounter(device *d, u32 *out) { return ask_u32(d, "pcie.replays", out); }
int nvmlDeviceGetCurrPcieLinkGeneration(device *d, u32 *out) { return ask_u32(d, "pcie.generation", out); }
int nvmlDeviceGetCurrPcieLinkWidth(device *d, u32 *out) { return ask_u32(d, "pcie.width", out); }
int nvmlDeviceGetRetiredPagesPendingStatus(device *d, u32 *out) { return ask_u32(d, "pages.pending", out); }

int nvmlDeviceGetPcieThroughput(device *d, u32 counter, u32 *out)
{
    return ask_u32(d, counter ? "pcie.receive" : "pcie.transmit", out);
}

int nvmlDeviceGetClockInfo(device *d, u32 type, u32 *out)
{
    static const char *names[] = {"clock.graphics", "clock.sm", "clock.memory", "clock.video"};
    return type < 4 ? ask_u32(d, names[type], out) : INVALID;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksEventReasons(device *d, u64 *out) { return ask_u64(d, "reasons", out); }
#endif
int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, u64 *out) { return ask_u64(d, "reasons", out); }

int nvmlDeviceGetTotalEccErrors(device *d, u32 error, u32 counter, u64 *out)
{
    char name[32];
    snprintf(name, sizeof name, "ecc.%u.%u", error, counter);
    return ask_u64(d, name, out);
}

int nvmlDeviceGetRemappedRows(device *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed)
{
    char value[TEXT];
    int answer = ask(d, "rows", value);
    if (answer) return answer;
    return sscanf(value, "%u %u %u %u", corrected, uncorrected, pending, failed) == 4 ? SUCCESS : INVALID;
}

int nvmlDeviceGetEncoderUtilization(device *d, u32 *out, u32 *period_us)
{
    *period_us = 167000;
    return ask_u32(d, "encoder", out);
}

int nvmlDeviceGetDecoderUtilization(device *d, u32 *out, u32 *period_us)
{
    *period_us = 167000;
    return ask_u32(d, "decoder", out);
}

#ifndef OLD_DRIVER
struct field { u32 id, scope; long long at, latency; u32 type; int answer; union { double d; u64 u; } value; };
int nvmlDeviceGetFieldValues(device *d, int count, struct field *fields)
{
    char value[TEXT];
    int answer = ask(d, "uuid", value);
    if (answer) return answer;
    for (int i = 0; i < count; i++) {
        char name[32];
        int is_of_link = fields[i].id == 138 || fields[i].id == 139 || (fields[i].id >= 161 && fields[i].id <= 165);
        if (is_of_link && fields[i].scope != ~0u)
            snprintf(name, sizeof name, "link%u.%u", fields[i].scope, fields[i].id);
        else
            snprintf(name, sizeof name, "field.%u", fields[i].id);
        fields[i].type = 3;
        fields[i].answer = ask_u64(d, name, &fields[i].value.u);
    }
    return SUCCESS;
}
#endif

/* -- NVLink as GPUs before Hopper have it: linkN.state, linkN.error.COUNTER -- */

int nvmlDeviceGetNvLinkState(device *d, u32 link, u32 *out)
{
    char name[32];
    snprintf(name, sizeof name, "link%u.state", link);
    return ask_u32(d, name, out);
}

int nvmlDeviceGetNvLinkErrorCounter(device *d, u32 link, u32 counter, u64 *out)
{
    char name[48];
    snprintf(name, sizeof name, "link%u.error.%u", link, counter);
    return ask_u64(d, name, out);
}

/* -- processes: "pid:bytes" or "pid:bytes:instance", - for unknown bytes -- */

struct process { u32 pid; u64 memory; u32 gpu_instance, compute_instance; };
static int list_processes(device *d, const char *name, u32 *count, struct process *out)
{
    char value[TEXT], *rest = NULL;
    struct process found[32];
    u32 number = 0;
    int answer = ask(d, name, value);
    if (answer) return answer;
    for (char *word = strtok_r(value, " ,", &rest); word && number < 32; word = strtok_r(NULL, " ,", &rest)) {
        struct process *p = &found[number++];
        char *bytes = strchr(word, ':'), *instance = bytes ? strchr(bytes + 1, ':') : NULL;
        p->pid = (u32)atoi(word);
        p->memory = !bytes || bytes[1] == '-' ? ~0ull : strtoull(bytes + 1, NULL, 0);
        p->gpu_instance = instance ? (u32)atoi(instance + 1) : ~0u;
        p->compute_instance = instance ? 0 : ~0u;
    }
    if (*count < number) { *count = number; return TOO_SMALL; }
    *count = number;
    if (number) memcpy(out, found, number * sizeof *found);
    return SUCCESS;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetComputeRunningProcesses_v3(device *d, u32 *n, struct process *out)
{
    return list_processes(d, "compute", n, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, u32 *n, struct process *out)
{
    return list_processes(d, "graphics", n, out);
}
#endif
int nvmlDeviceGetComputeRunningProcesses_v2(device *d, u32 *n, struct process *out)
{
    return list_processes(d, "compute", n, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(device *d, u32 *n, struct process *out)
{
    return list_processes(d, "graphics", n, out);
}

/* "pid:sm:time" of the samples newer than the caller has seen. */
struct share { u32 pid; u64 at_us; u32 sm, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(device *d, struct share *out, u32 *count, u64 since_us)
{
    char value[TEXT], *rest = NULL;
    struct share found[32];
    u32 number = 0;
    int answer = ask(d, "shares", value);
    if (answer) return answer;
    memset(found, 0, sizeof found);
    for (char *word = strtok_r(value, " ,", &rest); word && number < 32; word = strtok_r(NULL, " ,", &rest)) {
        struct share *s = &found[number];
        if (sscanf(word, "%u:%u:%llu", &s->pid, &s->sm, &s->at_us) == 3 && s->at_us > since_us) number++;
    }
    if (!number) return NOT_FOUND;
    if (!out || *count < number) { *count = number; return TOO_SMALL; }
    *count = number;
    memcpy(out, found, number * sizeof *found);
    return SUCCESS;
}

/* -- MIG ----------------------------------------------------------------- */

int nvmlDeviceGetMigMode(device *d, u32 *current, u32 *pending)
{
    int answer = ask_u32(d, "mig", current);
    *pending = *current;
    return answer;
}

int nvmlDeviceGetMaxMigDeviceCount(device *d, u32 *count)
{
    (void)d;
    *count = MAX_PARTS;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device *d, u32 index, device **out)
{
    char key[64], value[TEXT];
    if (index >= MAX_PARTS) return INVALID;
    snprintf(key, sizeof key, "gpu%d.mig%u.uuid", d->gpu, index);
    if (look_up(key, value) != SUCCESS) return NOT_FOUND;
    parts[d->gpu][index].gpu = d->gpu;
    parts[d->gpu][index].part = (int)index;
    *out = &parts[d->gpu][index];
    return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(device *d, u32 *out) { return ask_u32(d, "instance", out); }
int nvmlDeviceGetComputeInstanceId(device *d, u32 *out) { return ask_u32(d, "compute_instance", out); }

struct attributes { u32 multiprocessors, others[7]; u64 memory_mib; };
int nvmlDeviceGetAttributes_v2(device *d, struct attributes *out)
{
    memset(out, 0, sizeof *out);
    return ask_u32(d, "multiprocessors", &out->multiprocessors);
}

/* -- events ---------------------------------------------------------------- */

int nvmlEventSetCreate(void **set) { static int one; *set = &one; return SUCCESS; }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }

int nvmlDeviceRegisterEvents(device *d, u64 types, void *set)
{
    char value[TEXT];
    int answer = ask(d, "events", value);
    (void)types; (void)set;
    return answer;
}

struct event { device *d; u64 type, data; u32 gpu_instance, compute_instance; };
int nvmlEventSetWait_v2(void *set, struct event *out, u32 timeout_ms)
{
    char value[TEXT];
    long number;
    int gpu;
    u64 xid;
    (void)set;
    if (look_up("event", value) == SUCCESS && sscanf(value, "%ld %d %llu", &number, &gpu, &xid) == 3
        && number > events_seen && gpu >= 0 && gpu < MAX_GPUS) {
        events_seen = number;
        out->d = &gpus[gpu];
        out->type = 8;
        out->data = xid;
        out->gpu_instance = out->compute_instance = ~0u;
        return SUCCESS;
    }
    usleep(timeout_ms * 1000 < 20000 ? timeout_ms * 1000 : 20000);
    return TIMEOUT;
}

#ifndef OLD_DRIVER
/*
 * Counters over time (GPM, Hopper and later): "gpm = 1" where a GPU has them; "gpm.5 = 42.5" is what metric 5
 * answers between any two samples, "gpm.sample = !10" a sample that cannot be taken.
 */
typedef struct { device *of; } sample;
typedef struct {
    u32 id; int result; double value;
    struct { char *brief, *full, *unit; } info;
} gpm_metric;
typedef struct { u32 version, count; sample *first, *second; gpm_metric metrics[]; } gpm_question;

int nvmlGpmQueryDeviceSupport(device *d, u32 *support)
{
    char value[TEXT];
    support[1] = ask(d, "gpm", value) == SUCCESS && atoi(value);
    return SUCCESS;
}

int nvmlGpmSampleAlloc(sample **out)
{
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}

int nvmlGpmSampleFree(sample *one) { free(one); return SUCCESS; }

int nvmlGpmSampleGet(device *d, sample *one)
{
    char value[TEXT];
    int answer = ask(d, "gpm.sample", value);
    one->of = d;
    return answer == UNSUPPORTED ? SUCCESS : answer;
}

int nvmlGpmMetricsGet(gpm_question *question)
{
    if (question->version != 1) return VERSION_MISMATCH;
    if (!question->first->of || question->first->of != question->second->of) return INVALID;
    for (u32 place = 0; place < question->count; place++) {
        gpm_metric *metric = &question->metrics[place];
        char key[64], value[TEXT];
        snprintf(key, sizeof key, "gpm.%u", metric->id);
        metric->result = ask(question->first->of, key, value);
        if (metric->result == SUCCESS) metric->value = atof(value);
    }
    return SUCCESS;
}
#endif
