/* A libnvidia-ml.so.1 for tests: answers what a text file says.
 *
 * ROOFLIGHT_NVML_SCENARIO names the file.  A line is `DEVICE FUNCTION CODE [VALUES]`, where DEVICE is an
 * index, `INDEX/INSTANCE` for a MIG instance, or `-` for the library; CODE is the nvmlReturn_t; VALUES are
 * numbers, or a text up to the end of the line.  A call that has no line is not supported (3).  The file is
 * read anew by every nvmlDeviceGetCount, so that a test can move on to the next moment.
 *
 * A device that once answered that it is lost (15) stays lost until the session is opened anew.
 * Compiled with OLD_DRIVER it lacks the calls of newer drivers.
 *
 * A numbered field is asked as `field:ID`, for all links as `field:ID:all`; its values are the number and the
 * type (3 when left out), and the time in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 512
#define WIDTH 512
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define DRIVER_NOT_LOADED 9
#define GPU_IS_LOST 15
#define DEVICES 64

typedef unsigned long long u64;

static char lines[LINES][WIDTH];
static int n_lines;
static char lost[DEVICES];

static int load(void) {
    const char *path = getenv("ROOFLIGHT_NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return DRIVER_NOT_LOADED;
    for (n_lines = 0; n_lines < LINES && fgets(lines[n_lines], WIDTH, file); n_lines++)
        lines[n_lines][strcspn(lines[n_lines], "\n")] = 0;
    fclose(file);
    return 0;
}

/* Handles: 1 + device, plus 1000 x (1 + instance) for MIG. */
static void device_of(const void *handle, char *out, size_t size) {
    unsigned long id = (unsigned long)handle;
    if (id == 0)
        snprintf(out, size, "-");
    else if (id < 1000)
        snprintf(out, size, "%lu", id - 1);
    else
        snprintf(out, size, "%lu/%lu", id % 1000 - 1, id / 1000 - 1);
}

static int found(const char *device, const char *function, const char **values);

/* The code of a call; `values` is set to the rest of its line. */
static int answer(const void *handle, const char *function, const char **values) {
    char device[32];
    device_of(handle, device, sizeof device);
    unsigned long index = (unsigned long)handle % 1000 - 1;
    if (handle && lost[index % DEVICES]) return GPU_IS_LOST;
    int code = found(device, function, values);
    if (handle && code == GPU_IS_LOST) lost[index % DEVICES] = 1;
    return code;
}

static int found(const char *device, const char *function, const char **values) {
    char prefix[WIDTH];
    snprintf(prefix, sizeof prefix, "%s %s ", device, function);
    for (int i = 0; i < n_lines; i++) {
        if (strncmp(lines[i], prefix, strlen(prefix)) != 0) continue;
        char *rest;
        long code = strtol(lines[i] + strlen(prefix), &rest, 10);
        *values = *rest == ' ' ? rest + 1 : rest;
        return (int)code;
    }
    return NOT_SUPPORTED;
}

static int numbers(const void *handle, const char *function, u64 *out, int n) {
    const char *values;
    int code = answer(handle, function, &values);
    for (int i = 0; code == 0 && i < n; i++) {
        char *end;
        out[i] = strtoull(values, &end, 10);
        values = end;
    }
    return code;
}

static int text(const void *handle, const char *function, char *out, unsigned size) {
    const char *values;
    int code = answer(handle, function, &values);
    if (code == 0) snprintf(out, size, "%s", values);
    return code;
}

static int one_u32(const void *handle, const char *function, unsigned *out) {
    u64 value;
    int code = numbers(handle, function, &value, 1);
    if (code == 0) *out = (unsigned)value;
    return code;
}

int nvmlInitWithFlags(unsigned flags) {
    u64 ignored;
    int code = load();
    if (code) return code;
    memset(lost, 0, sizeof lost);
    code = numbers(NULL, "nvmlInitWithFlags", &ignored, 0);
    return code == NOT_SUPPORTED ? 0 : code;
}
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { (void)code; return "stub"; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    return text(NULL, "nvmlSystemGetDriverVersion", out, size);
}
int nvmlDeviceGetCount_v2(unsigned *out) {
    int code = load();
    return code ? code : one_u32(NULL, "nvmlDeviceGetCount", out);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    *out = (void *)(unsigned long)(1 + index);
    u64 ignored;
    int code = numbers(*out, "nvmlDeviceGetHandleByIndex", &ignored, 0);
    return code == NOT_SUPPORTED ? 0 : code;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **out) {
    char uuid[128];
    *out = (void *)((unsigned long)device + 1000 * (1 + (unsigned long)index));
    return text(*out, "nvmlDeviceGetUUID", uuid, sizeof uuid) ? NOT_FOUND : 0;
}
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *out) {
    return one_u32(device, "nvmlDeviceGetGpuInstanceId", out);
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *out) { (void)device; *out = 7; return 0; }
int nvmlDeviceGetName(void *device, char *out, unsigned size) {
    return text(device, "nvmlDeviceGetName", out, size);
}
int nvmlDeviceGetUUID(void *device, char *out, unsigned size) {
    return text(device, "nvmlDeviceGetUUID", out, size);
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *out) {
    u64 v[2];
    int code = numbers(device, "nvmlDeviceGetUtilizationRates", v, 2);
    if (code == 0) { out[0] = (unsigned)v[0]; out[1] = (unsigned)v[1]; }
    return code;
}
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    u64 v[2];
    int code = numbers(device, "nvmlDeviceGetMigMode", v, 2);
    if (code == 0) { *current = (unsigned)v[0]; *pending = (unsigned)v[1]; }
    return code;
}
int nvmlDeviceGetPersistenceMode(void *device, unsigned *out) {
    return one_u32(device, "nvmlDeviceGetPersistenceMode", out);
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *out) {
    return one_u32(device, "nvmlDeviceGetPowerUsage", out);
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out) {
    (void)sensor;
    return one_u32(device, "nvmlDeviceGetTemperature", out);
}
int nvmlDeviceGetFanSpeed(void *device, unsigned *out) {
    return one_u32(device, "nvmlDeviceGetFanSpeed", out);
}
int nvmlDeviceGetClockInfo(void *device, int domain, unsigned *out) {
    return one_u32(device, domain == 1 ? "nvmlDeviceGetClockInfo:sm" : "nvmlDeviceGetClockInfo:mem", out);
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, u64 *out) {
    return numbers(device, "nvmlDeviceGetTotalEnergyConsumption", out, 1);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *out) {
    return numbers(device, "nvmlDeviceGetCurrentClocksThrottleReasons", out, 1);
}
/* {total, free, used}; the second version {version, total, reserved, free, used}. */
int nvmlDeviceGetMemoryInfo(void *device, u64 *out) {
    return numbers(device, "nvmlDeviceGetMemoryInfo", out, 3);
}
int nvmlDeviceGetMemoryInfo_v2(void *device, u64 *out) {
    return numbers(device, "nvmlDeviceGetMemoryInfo_v2", out + 1, 4);
}

int nvmlDeviceGetPcieThroughput(void *device, int counter, unsigned *out) {
    return one_u32(device, counter == 0 ? "nvmlDeviceGetPcieThroughput:tx" : "nvmlDeviceGetPcieThroughput:rx", out);
}

#ifndef OLD_DRIVER
struct field { unsigned id, scope; long long timestamp, latency; unsigned type, code; u64 value; };

int nvmlDeviceGetFieldValues(void *device, int n, struct field *fields) {
    u64 ignored;
    int code = numbers(device, "nvmlDeviceGetFieldValues", &ignored, 0);
    if (code && code != NOT_SUPPORTED) return code;
    for (int i = 0; i < n; i++) {
        struct field *f = &fields[i];
        const char *values;
        char name[64], *end;
        snprintf(name, sizeof name, "field:%u%s", f->id, f->scope == 0xffffffffu ? ":all" : "");
        f->code = (unsigned)answer(device, name, &values);
        if (f->code) continue;
        f->value = strtoull(values, &end, 10);
        u64 type = strtoull(end, (char **)&values, 10);
        f->type = values == end ? 3 : (unsigned)type;
        f->timestamp = strtoll(values, NULL, 10);
    }
    return 0;
}

#define PROCESSES nvmlDeviceGetComputeRunningProcesses_v3
#else
#define PROCESSES nvmlDeviceGetComputeRunningProcesses_v2
#endif

struct process { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };

/* VALUES are triples: pid, bytes, GPU instance. */
int PROCESSES(void *device, unsigned *count, struct process *out) {
    const char *values;
    int code = answer(device, "nvmlDeviceGetComputeRunningProcesses", &values);
    if (code) return code;
    unsigned n = 0;
    for (char *end;; n++, values = end) {
        u64 pid = strtoull(values, &end, 10);
        if (end == values) break;
        u64 memory = strtoull(end, &end, 10), instance = strtoull(end, &end, 10);
        if (n < *count && out) {
            struct process row = {(unsigned)pid, memory, (unsigned)instance, 0xffffffffu};
            out[n] = row;
        }
    }
    int fits = n <= *count;
    *count = n;
    return fits ? 0 : INSUFFICIENT_SIZE;
}
