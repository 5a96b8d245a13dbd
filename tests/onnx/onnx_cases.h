/* SPDX-License-Identifier: MIT */
#ifndef TEST_ONNX_ONNX_CASES_H
#define TEST_ONNX_ONNX_CASES_H

#include "base/rng.h"
#include "model/net.h"

/* Biases and gains, too, are drawn: as first values they would hide what is left out. */
void draw(struct kp_net *net, struct kp_rng *rng);

/* The models that rank. False: one could not be written, stderr has why. */
bool rank_cases(const char *folder);

#endif
