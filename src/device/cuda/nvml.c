/* SPDX-License-Identifier: MIT */
#include "device/cuda/nvml.h"

#include <string.h>

/* Values of NVML's interface. */
enum { NVML_SUCCESS = 0, NVML_TEMPERATURE_GPU = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

bool kp_nvml_open(struct kp_nvml *out)
{
    static const char *const names[] = {"libnvidia-ml.so.1"};
    memset(out, 0, sizeof(*out));
    if (kp_dl_open(names, 1, "KOPT_NVML_LIBRARY", &out->dl, NULL) != KOPT_OK)
        return false;
#define X(field, symbol, other, params)                    \
    if (!KP_DL_GET(out->dl, symbol, &out->field)) {        \
        const char *second = other;                        \
        if (second)                                        \
            (void)KP_DL_GET(out->dl, second, &out->field); \
    }
    KP_NVML_FUNCTIONS(X)
#undef X
    if (out->nvmlInit && out->nvmlShutdown && out->nvmlInit() == NVML_SUCCESS)
        return true;
    kp_dl_close(out->dl);
    memset(out, 0, sizeof(*out));
    return false;
}

void kp_nvml_close(struct kp_nvml *n)
{
    if (n->dl)
        (void)n->nvmlShutdown();
    kp_dl_close(n->dl);
    memset(n, 0, sizeof(*n));
}

void kp_nvml_driver_version(const struct kp_nvml *n, char *out, size_t bytes)
{
    out[0] = 0;
    if (n->nvmlSystemGetDriverVersion &&
        n->nvmlSystemGetDriverVersion(out, (unsigned int)bytes) != NVML_SUCCESS)
        out[0] = 0;
    out[bytes - 1] = 0;
}

bool kp_nvml_choose(struct kp_nvml *n, const char *pci_id)
{
    return n->nvmlDeviceGetHandleByPciBusId &&
           n->nvmlDeviceGetHandleByPciBusId(pci_id, &n->device) == NVML_SUCCESS;
}

void kp_nvml_read(const struct kp_nvml *n, struct kp_sensors *out)
{
    unsigned int v = 0;
    unsigned long long wide = 0;
    if (n->nvmlDeviceGetPowerUsage && n->nvmlDeviceGetPowerUsage(n->device, &v) == NVML_SUCCESS)
        out->power_w = v / 1e3;
    if (n->nvmlDeviceGetTotalEnergyConsumption &&
        n->nvmlDeviceGetTotalEnergyConsumption(n->device, &wide) == NVML_SUCCESS)
        out->energy_j = (double)wide / 1e3;
    if (n->nvmlDeviceGetTemperature &&
        n->nvmlDeviceGetTemperature(n->device, NVML_TEMPERATURE_GPU, &v) == NVML_SUCCESS)
        out->temp_c = v;
    if (n->nvmlDeviceGetClockInfo &&
        n->nvmlDeviceGetClockInfo(n->device, NVML_CLOCK_SM, &v) == NVML_SUCCESS)
        out->sm_mhz = v;
    if (n->nvmlDeviceGetClockInfo &&
        n->nvmlDeviceGetClockInfo(n->device, NVML_CLOCK_MEM, &v) == NVML_SUCCESS)
        out->mem_mhz = v;
    if (n->nvmlDeviceGetClocksReasons &&
        n->nvmlDeviceGetClocksReasons(n->device, &wide) == NVML_SUCCESS)
        out->throttle = (int64_t)(wide & INT64_MAX);
}
