/* SPDX-License-Identifier: MIT */
/* NVML, which reads a GPU's sensors, opened at run time; all of it is optional and nothing of
 * it changes a setting. Layer: device. */
#ifndef KP_DEVICE_CUDA_NVML_H
#define KP_DEVICE_CUDA_NVML_H

#include "device/device.h"
#include "os/dl.h"

typedef int kp_nvml_result;
typedef struct nvmlDevice_st *kp_nvml_device;

/* field, symbol, symbol that other versions of the library have for the same (or NULL), params
 */
#define KP_NVML_FUNCTIONS(X)                                                            \
    X(nvmlInit, "nvmlInit_v2", NULL, (void))                                            \
    X(nvmlShutdown, "nvmlShutdown", NULL, (void))                                       \
    X(nvmlSystemGetDriverVersion, "nvmlSystemGetDriverVersion", NULL,                   \
      (char *out, unsigned int bytes))                                                  \
    X(nvmlDeviceGetHandleByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2", NULL,          \
      (const char *id, kp_nvml_device *out))                                            \
    X(nvmlDeviceGetPowerUsage, "nvmlDeviceGetPowerUsage", NULL,                         \
      (kp_nvml_device d, unsigned int *milliwatts))                                     \
    X(nvmlDeviceGetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption", NULL, \
      (kp_nvml_device d, unsigned long long *millijoules))                              \
    X(nvmlDeviceGetTemperature, "nvmlDeviceGetTemperature", NULL,                       \
      (kp_nvml_device d, int sensor, unsigned int *celsius))                            \
    X(nvmlDeviceGetClockInfo, "nvmlDeviceGetClockInfo", NULL,                           \
      (kp_nvml_device d, int clock, unsigned int *mhz))                                 \
    X(nvmlDeviceGetClocksReasons, "nvmlDeviceGetCurrentClocksThrottleReasons",          \
      "nvmlDeviceGetCurrentClocksEventReasons",                                         \
      (kp_nvml_device d, unsigned long long *reasons))

struct kp_nvml {
    struct kp_dl *dl; /* NULL: not there */
    kp_nvml_device device;
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(field, symbol, other, params) kp_nvml_result(*field) params;
    KP_NVML_FUNCTIONS(X)
#undef X
};

/* Open the library (KOPT_NVML_LIBRARY names another) and initialise it; false when there is
 * none or it refuses, and then nothing is held. */
bool kp_nvml_open(struct kp_nvml *out);
/* Safe on a zeroed one. */
void kp_nvml_close(struct kp_nvml *n);

/* The driver's version, "580.95.05"; "" when it is not known. */
void kp_nvml_driver_version(const struct kp_nvml *n, char *out, size_t bytes);

/* Choose the device by its PCI address as CUDA writes it; false when NVML has no such. */
bool kp_nvml_choose(struct kp_nvml *n, const char *pci_id);
/* Fill in what is known; `out` holds NaN already. */
void kp_nvml_read(const struct kp_nvml *n, struct kp_sensors *out);

#endif
