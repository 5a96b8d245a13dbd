/* SPDX-License-Identifier: MIT */
/* A model as ONNX, for other runtimes. Layer: model.
 *
 * One graph (opset 17; with trees also ai.onnx.ml 3) is the whole model. Of networks that
 * translate it answers with the values before given, as in training:
 *   in   tokens int64 [B, T], features float [B, F]: what kp_encode() makes of a problem
 *        values int64 [B, P]: indices of the targets' values, in the models' order
 *   out  for each target p "logp.NAME" float [B, V_p]: the logarithms of its values'
 *        probabilities, given values 0 .. p-1
 * A decoder fills `values` from the left and runs it once for each target. Of several networks
 * the graph has the mixture that the beam uses (model/beam.h), and behind it the forest's pool.
 * Of networks that rank:
 *   in   numbers int64 [B]: of the configurations, x float [B, F]: what the networks see of a
 *        problem and the configuration (model/ranking.h)
 *   out  score float [B]: the mean of the networks with their correction and the trees
 * The file's metadata hold the kernel's name (kopt.kernel), the targets' names and values
 * (kopt.targets), the encoder (kopt.encoder), and of networks that rank the configurations and
 * the columns of x (kopt.ranking), as JSON; with rules their text (kopt.rules) and how many of
 * the encoder's fields a problem has (kopt.fields): the others are lets of the rules. */
#ifndef KP_MODEL_ONNX_H
#define KP_MODEL_ONNX_H

#include "model/model.h"

/* Appended to `out`. Errors: KOPT_EINPUT (a network of another kind, a number that is not
 * finite, trees that are none, a text that is not UTF-8), KOPT_ERANGE (more than out->max),
 * KOPT_ENOMEM. */
kopt_status kp_onnx_export(const struct kp_model *m, struct kp_buf *out, kopt_error *err);
/* To a file, which takes the place of `path` when it is whole. Errors: as above, KOPT_EIO,
 * KOPT_EFULL. */
kopt_status kp_onnx_save(const struct kp_model *m, const char *path, kopt_error *err);

#endif
