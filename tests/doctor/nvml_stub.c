/* The few entry points of NVML that doctor calls, as a driver with DEVICES devices answers them.
   Each call is noted in the file $NVML_CALLS; a call that is not here would be an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef INIT
#define INIT 0 /* what initialisation returns; nvml.h has the numbers */
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef LOST
#define LOST 99 /* index of a device that has fallen off the bus */
#endif
#ifndef WITHOUT_GPM
#define WITHOUT_GPM 99 /* index of the first device that has no GPM */
#endif
#ifndef NAME
#define NAME "NVIDIA H100 80GB HBM3"
#endif

static int note(const char *name, int result) {
    const char *path = getenv("NVML_CALLS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", name);
        fclose(file);
    }
    return result;
}

int nvmlInitWithFlags(unsigned flags) {
#ifdef HANGS
    sleep(600);
#endif
    return note("init", INIT);
}

int nvmlShutdown(void) { return note("shutdown", 0); }

int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    return strncpy(text, "550.54.15", length), note("driver version", 0);
}

int nvmlSystemGetNVMLVersion(char *text, unsigned length) {
    return strncpy(text, "12.550.54.15", length), note("NVML version", 0);
}

int nvmlDeviceGetCount_v2(unsigned *count) { return *count = DEVICES, note("count", 0); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = (void *)(size_t)(index + 1);
    return note("handle", index == LOST ? 15 : 0);
}

int nvmlDeviceGetName(void *handle, char *text, unsigned length) {
    return strncpy(text, NAME, length), note("name", 0);
}

int nvmlGpmQueryDeviceSupport(void *handle, struct { unsigned version, supported; } *support) {
    support->supported = (size_t)handle <= WITHOUT_GPM;
    return note("GPM support", 0);
}
