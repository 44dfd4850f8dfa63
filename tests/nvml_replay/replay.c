/* A libnvidia-ml.so.1 that plays a scenario: what each counter says from when on.
 *
 * NVML_REPLAY_SCENARIO names a text file of lines "SECONDS DEVICE KEY VALUE"; a value holds until
 * the next line for the same device and key. NVML_REPLAY_START_NS is second 0 on CLOCK_MONOTONIC.
 * Devices are gpu0, gpu1, … and mig0, mig1, … (with the keys "parent", "gi" and "ci"), and "system".
 * A key that is not there is Not Supported; the value "error N" returns N; the key "lost" returns
 * its value from every call on the device. The entry points are those that the sampler uses; that
 * which would set something is in a second file, made from the binding, and aborts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };
enum { MOST_LINES = 1024, MOST_DEVICES = 32, MOST_METRICS = 16 };

typedef struct { double at_s; char device[16], key[32], value[96]; } Line;
typedef struct { char id[16]; } Device;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;
typedef struct { char legacy[16]; unsigned domain, bus, device, ids[2]; char bus_id[32]; } Pci;
typedef union { double d; unsigned ui; unsigned long ul; unsigned long long ull; } Value;
typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    int result;
    Value value;
} FieldValue;
typedef struct { Device *device; double at_s, integral[MOST_METRICS]; } GpmSample;
typedef struct { unsigned id; int result; double value; const char *texts[3]; } GpmMetric;
typedef struct { unsigned version, count; GpmSample *first, *second; GpmMetric metrics[]; } GpmQuery;

static Line lines[MOST_LINES];
static Device devices[MOST_DEVICES];
static int line_count, device_count, opened, samples;
static double start_s;

static double clock_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double now_s(void) { return clock_s() - start_s; }

__attribute__((constructor)) static void load(void) {
    const char *path = getenv("NVML_REPLAY_SCENARIO"), *start = getenv("NVML_REPLAY_START_NS");
    char text[256];
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) {
        fprintf(stderr, "nvml replay: no scenario\n");
        abort();
    }
    start_s = start ? atof(start) * 1e-9 : clock_s();
    while (fgets(text, sizeof text, file)) {
        Line *line = &lines[line_count];
        if (text[0] == '#' || text[0] == '\n') continue;
        if (line_count == MOST_LINES || sscanf(text, "%lf %15s %31s %95[^\n]", &line->at_s,
                                               line->device, line->key, line->value) != 4) {
            fprintf(stderr, "nvml replay: cannot read: %s", text);
            abort();
        }
        line_count++;
        int known = 0;
        for (int i = 0; i < device_count; i++) known |= !strcmp(devices[i].id, line->device);
        if (!known && device_count < MOST_DEVICES) strcpy(devices[device_count++].id, line->device);
    }
    fclose(file);
}

/* The value that holds at a time: the last line that has come, in the file's order. */
static const char *value_at(const char *device, const char *key, double at_s) {
    const char *found = NULL;
    for (int i = 0; i < line_count; i++)
        if (lines[i].at_s <= at_s && !strcmp(lines[i].device, device) && !strcmp(lines[i].key, key))
            found = lines[i].value;
    return found;
}

static double integral_of(const char *device, const char *key, double until_s) {
    double sum = 0, since_s = 0;
    const char *value = NULL;
    for (int i = 0; i < line_count; i++) {
        if (lines[i].at_s > until_s || strcmp(lines[i].device, device) || strcmp(lines[i].key, key))
            continue;
        if (value) sum += atof(value) * (lines[i].at_s - since_s);
        value = lines[i].value;
        since_s = lines[i].at_s;
    }
    return value ? sum + atof(value) * (until_s - since_s) : sum;
}

static int is_mig(const Device *device) { return !strncmp(device->id, "mig", 3); }

static int state_of(const Device *device) {
    if (!opened) return UNINITIALIZED;
    const char *lost = value_at(device->id, "lost", now_s());
    const char *hang = value_at(device->id, "hang", now_s());
    if (hang) sleep((unsigned)atoi(hang));
    return lost ? atoi(lost) : SUCCESS;
}

static int text_of(const Device *device, const char *key, const char **text) {
    int state = state_of(device);
    if (state) return state;
    *text = value_at(device->id, key, now_s());
    if (!*text) return NOT_SUPPORTED;
    return strncmp(*text, "error ", 6) ? SUCCESS : atoi(*text + 6);
}

static int copy_of(const Device *device, const char *key, char *out, unsigned size) {
    const char *text;
    int result = text_of(device, key, &text);
    if (!result) snprintf(out, size, "%s", text);
    return result;
}

static int whole_of(const Device *device, const char *key, unsigned long long *out) {
    const char *text;
    int result = text_of(device, key, &text);
    if (!result) *out = strtoull(text, NULL, 0);
    return result;
}

static int unsigned_of(const Device *device, const char *key, unsigned *out) {
    unsigned long long value;
    int result = whole_of(device, key, &value);
    if (!result) *out = (unsigned)value;
    return result;
}

/* Library */

int nvmlInitWithFlags(unsigned flags) {
    const char *failure = value_at("system", "init", now_s());
    (void)flags;
    if (failure) return atoi(failure);
    opened++;
    return SUCCESS;
}

int nvmlShutdown(void) {
    if (!opened) return UNINITIALIZED;
    opened--;
    return SUCCESS;
}

/* What has been opened and not closed; for the tests. */
int replay_held(void) { return opened + samples; }

const char *nvmlErrorString(int code) {
    return code == 15 ? "GPU is lost" : "an error of the replay";
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    const char *text = value_at("system", "driver", now_s());
    snprintf(out, size, "%s", text ? text : "550.54.15");
    return opened ? SUCCESS : UNINITIALIZED;
}

/* Devices */

int nvmlDeviceGetCount_v2(unsigned *out) {
    *out = 0;
    for (int i = 0; i < device_count; i++) *out += !strncmp(devices[i].id, "gpu", 3);
    return opened ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    char id[16];
    snprintf(id, sizeof id, "gpu%u", index);
    for (int i = 0; i < device_count; i++)
        if (!strcmp(devices[i].id, id)) {
            *out = &devices[i];
            const char *refused = value_at(id, "handle", now_s());
            return refused ? atoi(refused + 6) : SUCCESS;
        }
    return INVALID;
}

int nvmlDeviceGetName(Device *d, char *out, unsigned size) { return copy_of(d, "name", out, size); }
int nvmlDeviceGetUUID(Device *d, char *out, unsigned size) { return copy_of(d, "uuid", out, size); }

int nvmlDeviceGetPciInfo_v3(Device *device, Pci *out) {
    memset(out, 0, sizeof *out);
    return copy_of(device, "bus", out->bus_id, sizeof out->bus_id);
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    int result = unsigned_of(device, "mig_mode", current);
    *pending = *current;
    return result;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *out) {
    *out = 7;
    return state_of(device);
}

static int belongs(const Device *mig, const Device *gpu) {
    const char *parent = is_mig(mig) ? value_at(mig->id, "parent", now_s()) : NULL;
    return parent && !strcmp(parent, gpu->id);
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **out) {
    for (int i = 0; i < device_count; i++)
        if (belongs(&devices[i], device) && !index--) {
            *out = &devices[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(Device *device, unsigned *out) { return unsigned_of(device, "gi", out); }
int nvmlDeviceGetComputeInstanceId(Device *device, unsigned *out) { return unsigned_of(device, "ci", out); }

/* Counters */

int nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *out) {
    if (out->version != (sizeof(MemoryV2) | 2u << 24)) return 13;
    int result = whole_of(device, "memory.reserved", &out->reserved);
    if (!result) result = whole_of(device, "memory.used", &out->used);
    if (!result) result = whole_of(device, "memory.total", &out->total);
    if (!result) out->free = out->total - out->used - out->reserved;
    return result;
}

int nvmlDeviceGetMemoryInfo(Device *device, Memory *out) {
    unsigned long long reserved = 0;
    whole_of(device, "memory.reserved", &reserved);
    int result = whole_of(device, "memory.used", &out->used);
    if (!result) result = whole_of(device, "memory.total", &out->total);
    out->used += reserved;
    out->free = out->total - out->used;
    return result;
}

int nvmlDeviceGetUtilizationRates(Device *device, Utilization *out) {
    int result = unsigned_of(device, "util.gpu", &out->gpu);
    return result ? result : unsigned_of(device, "util.memory", &out->memory);
}

/* "process" is "PID BYTES", and "self" is this process. */
int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *out) {
    const char *text;
    int result = text_of(device, "process", &text);
    if (result) return result;
    if (*count < 1) {
        *count = 1;
        return TOO_SMALL;
    }
    char pid[16];
    *count = 1;
    memset(out, 0, sizeof *out);
    if (sscanf(text, "%15s %llu", pid, &out->used) != 2) return INVALID;
    out->pid = strcmp(pid, "self") ? (unsigned)atoi(pid) : (unsigned)getpid();
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(Device *d, unsigned *out) { return unsigned_of(d, "power", out); }
int nvmlDeviceGetEnforcedPowerLimit(Device *d, unsigned *out) { return unsigned_of(d, "power.limit", out); }
int nvmlDeviceGetTotalEnergyConsumption(Device *d, unsigned long long *out) { return whole_of(d, "energy", out); }
int nvmlDeviceGetTemperature(Device *d, unsigned sensor, unsigned *out) {
    return sensor ? INVALID : unsigned_of(d, "temperature", out);
}

static const char *clock_key(unsigned clock, const char *sm, const char *memory) {
    return clock == 1 ? sm : clock == 2 ? memory : "none";
}

int nvmlDeviceGetClockInfo(Device *d, unsigned clock, unsigned *out) {
    return unsigned_of(d, clock_key(clock, "clock.sm", "clock.memory"), out);
}

int nvmlDeviceGetMaxClockInfo(Device *d, unsigned clock, unsigned *out) {
    return unsigned_of(d, clock_key(clock, "clock.sm.max", "clock.memory.max"), out);
}

int nvmlDeviceGetCurrentClocksEventReasons(Device *d, unsigned long long *out) {
    return whole_of(d, "clock_events", out);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, unsigned long long *out) {
    return whole_of(d, "clock_events.old_name", out);
}

/* PCIe: "pcie.tx" and "pcie.rx" are bytes a second, which the counters sum up. */

static const char *pcie_key(unsigned field) {
    return field == 197 ? "pcie.tx" : field == 198 ? "pcie.rx" : "none";
}

int nvmlDeviceGetFieldValues(Device *device, int count, FieldValue *values) {
    int state = state_of(device);
    unsigned type = 3; /* unsigned long long */
    if (state) return state;
    unsigned_of(device, "pcie.type", &type);
    for (int i = 0; i < count; i++) {
        const char *key = pcie_key(values[i].field);
        values[i].result = value_at(device->id, key, now_s()) ? SUCCESS : NOT_SUPPORTED;
        values[i].type = type;
        values[i].value.ull = (unsigned long long)integral_of(device->id, key, now_s());
    }
    return SUCCESS;
}

int nvmlDeviceGetPcieThroughput(Device *device, unsigned counter, unsigned *out) {
    struct timespec wait = {0, 20 * 1000 * 1000};
    nanosleep(&wait, NULL);
    return unsigned_of(device, counter ? "pcie.rx.kb" : "pcie.tx.kb", out);
}

/* GPM: "gpm.ID" is a metric in per cent; what a query says is its mean between two samples. */

int nvmlGpmQueryDeviceSupport(Device *device, unsigned out[2]) {
    int state = state_of(device);
    out[1] = value_at(device->id, "gpm", now_s()) != NULL;
    return state ? state : is_mig(device) ? NOT_SUPPORTED : SUCCESS;
}

int nvmlGpmSampleAlloc(GpmSample **out) {
    *out = calloc(1, sizeof **out);
    samples++;
    return SUCCESS;
}

int nvmlGpmSampleFree(GpmSample *sample) {
    free(sample);
    samples--;
    return SUCCESS;
}

static int take(Device *device, GpmSample *out) {
    int state = state_of(device);
    char key[16];
    out->device = device;
    out->at_s = now_s();
    for (int id = 0; id < MOST_METRICS; id++) {
        snprintf(key, sizeof key, "gpm.%d", id);
        out->integral[id] = integral_of(device->id, key, out->at_s);
    }
    return state;
}

int nvmlGpmSampleGet(Device *device, GpmSample *out) {
    return is_mig(device) ? INVALID : take(device, out);
}

int nvmlGpmMigSampleGet(Device *device, unsigned gpu_instance, GpmSample *out) {
    for (int i = 0; i < device_count; i++) {
        unsigned gi;
        if (belongs(&devices[i], device) && !unsigned_of(&devices[i], "gi", &gi) && gi == gpu_instance)
            return take(&devices[i], out);
    }
    return NOT_FOUND;
}

/* NVIDIA asks for more than 100 ms between the samples, the older first; here it is held to. */
int nvmlGpmMetricsGet(GpmQuery *query) {
    const GpmSample *first = query->first, *second = query->second;
    double apart_s = second->at_s - first->at_s;
    if (query->version != 1 || first->device != second->device || apart_s <= 0.1) return INVALID;
    for (unsigned i = 0; i < query->count; i++) {
        GpmMetric *metric = &query->metrics[i];
        char key[16];
        snprintf(key, sizeof key, "gpm.%u", metric->id);
        const char *text = value_at(second->device->id, key, second->at_s);
        metric->result = text && metric->id < MOST_METRICS ? SUCCESS : NOT_SUPPORTED;
        if (!metric->result)
            metric->value = (second->integral[metric->id] - first->integral[metric->id]) / apart_s;
    }
    return SUCCESS;
}
