/* SPDX-License-Identifier: MIT */
/* Writing ONNX: messages of protocol buffers, and graphs node by node. Layer: model.
 *
 * Everything goes to one buffer whose failure is sticky. Nodes come after what they use. */
#ifndef KP_MODEL_ONNX_GRAPH_H
#define KP_MODEL_ONNX_GRAPH_H

#include "model/forest.h"
#include "model/model.h"
#include "model/net.h"
#include "model/ranking.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_DOUBLE = 11 }; /* TensorProto.DataType */
enum { ONNX_FLOATS = 6, ONNX_INTS = 7, ONNX_STRINGS = 8 }; /* AttributeProto.AttributeType */
enum { ONNX_NAME = 128, ONNX_DIMS_MAX = 4, ONNX_INPUTS_MAX = 8, ONNX_OUTPUTS_MAX = 3 };

struct onnx_value {
    char name[ONNX_NAME];
};

struct onnx_graph {
    struct kp_buf *out;
    unsigned n_values; /* that were given names */
    size_t net; /* which of the model's networks is written: part of weights' names; or .. */
};
#define ONNX_TREES_DOMAIN "ai.onnx.ml"
#define ONNX_NO_NET       SIZE_MAX /* .. none of them: weights have their names alone */

/* --- messages -------------------------------------------------------------------------------
 */

/* A message within another: what is written until the end is its content. */
size_t kp_onnx_begin(struct kp_buf *b, unsigned field);
void kp_onnx_end(struct kp_buf *b, size_t begin);
void kp_onnx_int(struct kp_buf *b, unsigned field, int64_t v);
void kp_onnx_text(struct kp_buf *b, unsigned field, const char *s);
void kp_onnx_str(struct kp_buf *b, unsigned field, struct kp_str s);

/* --- weights and constants ------------------------------------------------------------------
 */

struct onnx_dims {
    size_t d[ONNX_DIMS_MAX];
    size_t n;
};
/* Part of an initializer that is written in pieces, in the order of its elements. */
struct onnx_pieces {
    struct onnx_value value;
    size_t tensor;
    size_t raw;
};
struct onnx_pieces kp_onnx_weight_begin(struct onnx_graph *g, const char *name,
                                        const struct onnx_dims *dims);
void kp_onnx_floats(struct onnx_graph *g, const float *p, size_t n);
struct onnx_value kp_onnx_weight_end(struct onnx_graph *g, const struct onnx_pieces *p);

/* [rows][cols] at p turned: an initializer [cols][rows]. */
struct onnx_value kp_onnx_turned(struct onnx_graph *g, const char *name, size_t rows,
                                 size_t cols, const float *p);
/* As it lies. n_dims 1: [n0], 2: [n0][n1]. */
struct onnx_value kp_onnx_vector(struct onnx_graph *g, const char *name, size_t n,
                                 const float *p);
struct onnx_value kp_onnx_matrix(struct onnx_graph *g, const char *name, size_t rows,
                                 size_t cols, const float *p);
struct onnx_value kp_onnx_ints(struct onnx_graph *g, const int64_t *v, size_t n);
struct onnx_value kp_onnx_scalar(struct onnx_graph *g, float v);
struct onnx_value kp_onnx_scalar64(struct onnx_graph *g, double v);

/* --- nodes ----------------------------------------------------------------------------------
 */

struct onnx_attribute {
    const char *name; /* NULL: there are no more */
    /* One of them: a text, some integers, one integer, a float. */
    const char *text;
    const int64_t *ints;
    size_t n_ints;
    bool is_int;
    int64_t i;
    float f;
};

enum { ONNX_ATTRIBUTES_MAX = 3 };

struct onnx_node {
    const char *op;
    const char *domain;                           /* NULL: ONNX's own */
    const struct onnx_value *in[ONNX_INPUTS_MAX]; /* NULL among them: one that is left out */
    size_t n_in;
    struct onnx_attribute attribute[ONNX_ATTRIBUTES_MAX];
};

/* out[n_out] get new names. */
void kp_onnx_add(struct onnx_graph *g, const struct onnx_node *node, struct onnx_value *out,
                 size_t n_out);
/* The same of a node whose lists follow: its message. End it with kp_onnx_end(). */
size_t kp_onnx_add_begin(struct onnx_graph *g, const struct onnx_node *node,
                         struct onnx_value *out, size_t n_out);
/* An attribute of that node: a list, item by item. `type`: ONNX_FLOATS, .. */
size_t kp_onnx_list_begin(struct onnx_graph *g, const char *name);
void kp_onnx_list_int(struct onnx_graph *g, int64_t v);
void kp_onnx_list_float(struct onnx_graph *g, float v);
void kp_onnx_list_text(struct onnx_graph *g, const char *s);
void kp_onnx_list_end(struct onnx_graph *g, size_t list, int type);
/* Nodes of one output. */
struct onnx_value kp_onnx_1(struct onnx_graph *g, const char *op, const struct onnx_value *a);
struct onnx_value kp_onnx_2(struct onnx_graph *g, const char *op, const struct onnx_value *a,
                            const struct onnx_value *b);
/* With one attribute that is an integer. */
struct onnx_value kp_onnx_1i(struct onnx_graph *g, const char *op, const struct onnx_value *a,
                             const char *attribute, int64_t v);
/* To another type. */
struct onnx_value kp_onnx_cast(struct onnx_graph *g, const struct onnx_value *a, int type);
/* Over dimension `axis`, which stays with one element or goes. */
struct onnx_value kp_onnx_sum(struct onnx_graph *g, const struct onnx_value *a, int64_t axis,
                              bool keep);
/* The same value under a name of the caller's. */
void kp_onnx_rename(struct onnx_graph *g, const struct onnx_value *a, const char *name);
struct onnx_value kp_onnx_transpose(struct onnx_graph *g, const struct onnx_value *a,
                                    const int64_t *order, size_t n);
/* Elements from .. to-1 of dimension `axis`. */
struct onnx_value kp_onnx_slice(struct onnx_graph *g, const struct onnx_value *a, int64_t axis,
                                int64_t from, int64_t to);
struct onnx_value kp_onnx_concat(struct onnx_graph *g, const struct onnx_value *parts, size_t n,
                                 int64_t axis);
/* "Unsqueeze", "Squeeze": one dimension. */
struct onnx_value kp_onnx_squeeze(struct onnx_graph *g, const char *op,
                                  const struct onnx_value *a, int64_t axis);
/* 0: the dimension that was there, -1: what is left. */
struct onnx_value kp_onnx_reshape(struct onnx_graph *g, const struct onnx_value *a,
                                  const int64_t *shape, size_t n);
/* a[.., I] W' + b: `w` and `b` are tensors of the net, b may be NULL. */
struct onnx_value kp_onnx_linear(struct onnx_graph *g, const struct kp_net *net,
                                 const struct onnx_value *a, const char *w, const char *b);

/* The net's tensor; it must be there. */
const struct kp_tensor *kp_onnx_tensor(const struct kp_net *net, const char *name);

/* --- the models -----------------------------------------------------------------------------
 */

struct onnx_inputs {
    struct onnx_value tokens;   /* [B][T] */
    struct onnx_value features; /* [B][F] */
    struct onnx_value values;   /* [B][P] */
};
/* logp[P], [B][V_p] each. */
void kp_onnx_factored(struct onnx_graph *g, const struct kp_net *net,
                      const struct onnx_inputs *in, struct onnx_value *logp);
void kp_onnx_seq(struct onnx_graph *g, const struct kp_net *net, const struct onnx_inputs *in,
                 struct onnx_value *logp);
/* The softmax of target p over rows x [B][H] of heads.w and heads.b, turned to logarithms. */
struct onnx_value kp_onnx_head(struct onnx_graph *g, const struct kp_net *net, size_t p,
                               const struct onnx_value *x);
/* [B] from x [B][F] and the configurations' numbers [B]. */
struct onnx_value kp_onnx_ranker(struct onnx_graph *g, const struct kp_net *net,
                                 const struct onnx_value *x, const struct onnx_value *numbers);
/* The same of the correction, of which there are sites. */
struct onnx_value kp_onnx_correction(struct onnx_graph *g, const struct kp_ranking *r,
                                     const struct onnx_value *x,
                                     const struct onnx_value *numbers);

/* What a grove that has trees answers, [B][n_outputs], to x [B][n_inputs]. */
struct onnx_value kp_onnx_grove(struct onnx_graph *g, const struct kp_grove *grove,
                                const struct onnx_value *x);
/* The pool of forest.h: logp [B][V_p] of the networks and what grove p says. */
struct onnx_value kp_onnx_pool(struct onnx_graph *g, const struct kp_forest *f, size_t p,
                               const struct onnx_inputs *in, const struct onnx_value *logp);
/* Runtimes take what no node leads to for one more tree, so each but the first must have one
 * that does. Errors: KOPT_EINPUT, KOPT_ENOMEM. */
kopt_status kp_onnx_check_forest(const struct kp_forest *f, kopt_error *err);

/* The entries that say what the numbers mean. Errors: KOPT_EINPUT, KOPT_ERANGE, KOPT_ENOMEM. */
kopt_status kp_onnx_metadata(const struct kp_model *m, struct kp_buf *out, kopt_error *err);

#endif
