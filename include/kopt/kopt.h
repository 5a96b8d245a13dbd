/* SPDX-License-Identifier: MIT */
/* All of libkopt's public interface. */
#ifndef KOPT_KOPT_H
#define KOPT_KOPT_H

#include <kopt/device.h>
#include <kopt/predict.h>
#include <kopt/replay.h>
#include <kopt/space.h>
#include <kopt/status.h>
#include <kopt/store.h>
#include <kopt/tune.h>
#include <kopt/types.h>

#endif
