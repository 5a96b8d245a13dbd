/* SPDX-License-Identifier: MIT */
/* Protocol buffers by hand: a field is its number and kind as a varint (seven bits a byte, the
 * lowest first), then a varint or a length and bytes. Numbers of fields are those of
 * onnx.proto. Layer: model. */
#include "model/onnx_graph.h"

#include <stdio.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_FIXED32 = 5, VARINT_MAX = 10 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5 };
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7
};
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TYPE = 20
};
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_STRING = 3 };

/* --- messages -------------------------------------------------------------------------------
 */

static size_t varint(uint64_t v, unsigned char *out)
{
    size_t n = 0;
    while (v >= 0x80) {
        out[n++] = (unsigned char)(v | 0x80);
        v >>= 7;
    }
    out[n++] = (unsigned char)v;
    return n;
}

static void add_varint(struct kp_buf *b, uint64_t v)
{
    unsigned char bytes[VARINT_MAX];
    kp_buf_add(b, bytes, varint(v, bytes));
}

static void tag(struct kp_buf *b, unsigned field, unsigned wire)
{
    add_varint(b, (uint64_t)field << 3 | wire);
}

size_t kp_onnx_begin(struct kp_buf *b, unsigned field)
{
    tag(b, field, WIRE_BYTES);
    return b->len;
}

/* The length comes in front of what is there already. */
void kp_onnx_end(struct kp_buf *b, size_t begin)
{
    unsigned char bytes[VARINT_MAX];
    if (b->failed != KOPT_OK)
        return;
    size_t length = b->len - begin;
    size_t n = varint(length, bytes);
    kp_buf_add(b, bytes, n); /* makes room */
    if (b->failed != KOPT_OK)
        return;
    memmove(b->ptr + begin + n, b->ptr + begin, length);
    memcpy(b->ptr + begin, bytes, n);
}

void kp_onnx_int(struct kp_buf *b, unsigned field, int64_t v)
{
    tag(b, field, WIRE_VARINT);
    add_varint(b, (uint64_t)v);
}

void kp_onnx_text(struct kp_buf *b, unsigned field, const char *s)
{
    tag(b, field, WIRE_BYTES);
    add_varint(b, strlen(s));
    kp_buf_adds(b, s);
}

void kp_onnx_str(struct kp_buf *b, unsigned field, struct kp_str s)
{
    tag(b, field, WIRE_BYTES);
    add_varint(b, s.len);
    kp_buf_add(b, s.ptr, s.len);
}

static void little(unsigned char *out, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)(v >> 8 * i);
}

static void add_float(struct kp_buf *b, float v)
{
    uint32_t word;
    unsigned char bytes[sizeof(word)];
    memcpy(&word, &v, sizeof(word));
    little(bytes, word, sizeof(word));
    kp_buf_add(b, bytes, sizeof(bytes));
}

/* --- weights and constants ------------------------------------------------------------------
 */

static struct onnx_value new_name(struct onnx_graph *g, const char *kind)
{
    struct onnx_value v;
    (void)snprintf(v.name, sizeof(v.name), "%s%u", kind, g->n_values++);
    return v;
}

static struct onnx_pieces tensor_begin(struct onnx_graph *g, const struct onnx_value *name,
                                       const struct onnx_dims *dims, int type)
{
    struct onnx_pieces p = {.value = *name};
    p.tensor = kp_onnx_begin(g->out, GRAPH_INITIALIZER);
    for (size_t i = 0; i < dims->n; i++)
        kp_onnx_int(g->out, TENSOR_DIMS, (int64_t)dims->d[i]);
    kp_onnx_int(g->out, TENSOR_TYPE, type);
    kp_onnx_text(g->out, TENSOR_NAME, name->name);
    p.raw = kp_onnx_begin(g->out, TENSOR_RAW);
    return p;
}

struct onnx_pieces kp_onnx_weight_begin(struct onnx_graph *g, const char *name,
                                        const struct onnx_dims *dims)
{
    struct onnx_value v;
    if (g->net == ONNX_NO_NET)
        (void)snprintf(v.name, sizeof(v.name), "%s", name);
    else
        (void)snprintf(v.name, sizeof(v.name), "net%zu.%s", g->net, name);
    return tensor_begin(g, &v, dims, ONNX_FLOAT);
}

void kp_onnx_floats(struct onnx_graph *g, const float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_float(g->out, p[i]);
}

struct onnx_value kp_onnx_weight_end(struct onnx_graph *g, const struct onnx_pieces *p)
{
    kp_onnx_end(g->out, p->raw);
    kp_onnx_end(g->out, p->tensor);
    return p->value;
}

struct onnx_value kp_onnx_turned(struct onnx_graph *g, const char *name, size_t rows,
                                 size_t cols, const float *p)
{
    const struct onnx_dims dims = {{cols, rows}, 2};
    struct onnx_pieces w = kp_onnx_weight_begin(g, name, &dims);
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            add_float(g->out, p[i * cols + j]);
    return kp_onnx_weight_end(g, &w);
}

struct onnx_value kp_onnx_vector(struct onnx_graph *g, const char *name, size_t n,
                                 const float *p)
{
    const struct onnx_dims dims = {{n}, 1};
    struct onnx_pieces w = kp_onnx_weight_begin(g, name, &dims);
    kp_onnx_floats(g, p, n);
    return kp_onnx_weight_end(g, &w);
}

struct onnx_value kp_onnx_matrix(struct onnx_graph *g, const char *name, size_t rows,
                                 size_t cols, const float *p)
{
    const struct onnx_dims dims = {{rows, cols}, 2};
    struct onnx_pieces w = kp_onnx_weight_begin(g, name, &dims);
    kp_onnx_floats(g, p, rows * cols);
    return kp_onnx_weight_end(g, &w);
}

struct onnx_value kp_onnx_ints(struct onnx_graph *g, const int64_t *v, size_t n)
{
    const struct onnx_dims dims = {{n}, 1};
    const struct onnx_value name = new_name(g, "const");
    struct onnx_pieces p = tensor_begin(g, &name, &dims, ONNX_INT64);
    for (size_t i = 0; i < n; i++) {
        unsigned char bytes[sizeof(uint64_t)];
        little(bytes, (uint64_t)v[i], sizeof(bytes));
        kp_buf_add(g->out, bytes, sizeof(bytes));
    }
    return kp_onnx_weight_end(g, &p);
}

struct onnx_value kp_onnx_scalar(struct onnx_graph *g, float v)
{
    const struct onnx_dims dims = {.n = 0};
    const struct onnx_value name = new_name(g, "const");
    struct onnx_pieces p = tensor_begin(g, &name, &dims, ONNX_FLOAT);
    add_float(g->out, v);
    return kp_onnx_weight_end(g, &p);
}

struct onnx_value kp_onnx_scalar64(struct onnx_graph *g, double v)
{
    const struct onnx_dims dims = {.n = 0};
    const struct onnx_value name = new_name(g, "const");
    struct onnx_pieces p = tensor_begin(g, &name, &dims, ONNX_DOUBLE);
    uint64_t word;
    unsigned char bytes[sizeof(word)];
    memcpy(&word, &v, sizeof(word));
    little(bytes, word, sizeof(word));
    kp_buf_add(g->out, bytes, sizeof(bytes));
    return kp_onnx_weight_end(g, &p);
}

/* --- nodes ----------------------------------------------------------------------------------
 */

static void add_attribute(struct kp_buf *b, const struct onnx_attribute *a)
{
    size_t at = kp_onnx_begin(b, NODE_ATTRIBUTE);
    kp_onnx_text(b, ATTR_NAME, a->name);
    if (a->text) {
        kp_onnx_text(b, ATTR_S, a->text);
        kp_onnx_int(b, ATTR_TYPE, TYPE_STRING);
    } else if (a->ints) {
        for (size_t i = 0; i < a->n_ints; i++)
            kp_onnx_int(b, ATTR_INTS, a->ints[i]);
        kp_onnx_int(b, ATTR_TYPE, ONNX_INTS);
    } else if (a->is_int) {
        kp_onnx_int(b, ATTR_I, a->i);
        kp_onnx_int(b, ATTR_TYPE, TYPE_INT);
    } else {
        tag(b, ATTR_F, WIRE_FIXED32);
        add_float(b, a->f);
        kp_onnx_int(b, ATTR_TYPE, TYPE_FLOAT);
    }
    kp_onnx_end(b, at);
}

size_t kp_onnx_add_begin(struct onnx_graph *g, const struct onnx_node *node,
                         struct onnx_value *out, size_t n_out)
{
    struct kp_buf *b = g->out;
    size_t at = kp_onnx_begin(b, GRAPH_NODE);
    for (size_t i = 0; i < node->n_in; i++)
        kp_onnx_text(b, NODE_INPUT, node->in[i] ? node->in[i]->name : "");
    struct onnx_value names[ONNX_OUTPUTS_MAX];
    for (size_t i = 0; i < n_out; i++) {
        names[i] = new_name(g, "v");
        kp_onnx_text(b, NODE_OUTPUT, names[i].name);
    }
    kp_onnx_text(b, NODE_NAME, names[0].name); /* runtimes name what they fuse by it */
    kp_onnx_text(b, NODE_OP, node->op);
    if (node->domain)
        kp_onnx_text(b, NODE_DOMAIN, node->domain);
    for (size_t i = 0; i < ONNX_ATTRIBUTES_MAX && node->attribute[i].name; i++)
        add_attribute(b, &node->attribute[i]);
    memcpy(out, names, n_out * sizeof(*out)); /* an input may stand there */
    return at;
}

void kp_onnx_add(struct onnx_graph *g, const struct onnx_node *node, struct onnx_value *out,
                 size_t n_out)
{
    kp_onnx_end(g->out, kp_onnx_add_begin(g, node, out, n_out));
}

size_t kp_onnx_list_begin(struct onnx_graph *g, const char *name)
{
    size_t list = kp_onnx_begin(g->out, NODE_ATTRIBUTE);
    kp_onnx_text(g->out, ATTR_NAME, name);
    return list;
}

void kp_onnx_list_int(struct onnx_graph *g, int64_t v)
{
    kp_onnx_int(g->out, ATTR_INTS, v);
}

void kp_onnx_list_float(struct onnx_graph *g, float v)
{
    tag(g->out, ATTR_FLOATS, WIRE_FIXED32);
    add_float(g->out, v);
}

void kp_onnx_list_text(struct onnx_graph *g, const char *s)
{
    kp_onnx_text(g->out, ATTR_STRINGS, s);
}

void kp_onnx_list_end(struct onnx_graph *g, size_t list, int type)
{
    kp_onnx_int(g->out, ATTR_TYPE, type);
    kp_onnx_end(g->out, list);
}

struct onnx_value kp_onnx_1(struct onnx_graph *g, const char *op, const struct onnx_value *a)
{
    const struct onnx_node node = {.op = op, .in = {a}, .n_in = 1};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

struct onnx_value kp_onnx_2(struct onnx_graph *g, const char *op, const struct onnx_value *a,
                            const struct onnx_value *b)
{
    const struct onnx_node node = {.op = op, .in = {a, b}, .n_in = 2};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

struct onnx_value kp_onnx_1i(struct onnx_graph *g, const char *op, const struct onnx_value *a,
                             const char *attribute, int64_t v)
{
    const struct onnx_node node = {.op = op,
                                   .in = {a},
                                   .n_in = 1,
                                   .attribute = {{.name = attribute, .is_int = true, .i = v}}};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

struct onnx_value kp_onnx_cast(struct onnx_graph *g, const struct onnx_value *a, int type)
{
    return kp_onnx_1i(g, "Cast", a, "to", type);
}

struct onnx_value kp_onnx_sum(struct onnx_graph *g, const struct onnx_value *a, int64_t axis,
                              bool keep)
{
    const struct onnx_value axes = kp_onnx_ints(g, &axis, 1);
    const struct onnx_node node = {
        .op = "ReduceSum",
        .in = {a, &axes},
        .n_in = 2,
        .attribute = {{.name = "keepdims", .is_int = true, .i = keep}}};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

void kp_onnx_rename(struct onnx_graph *g, const struct onnx_value *a, const char *name)
{
    size_t at = kp_onnx_begin(g->out, GRAPH_NODE);
    kp_onnx_text(g->out, NODE_INPUT, a->name);
    kp_onnx_text(g->out, NODE_OUTPUT, name);
    kp_onnx_text(g->out, NODE_NAME, name);
    kp_onnx_text(g->out, NODE_OP, "Identity");
    kp_onnx_end(g->out, at);
}

struct onnx_value kp_onnx_transpose(struct onnx_graph *g, const struct onnx_value *a,
                                    const int64_t *order, size_t n)
{
    const struct onnx_node node = {.op = "Transpose",
                                   .in = {a},
                                   .n_in = 1,
                                   .attribute = {{.name = "perm", .ints = order, .n_ints = n}}};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

struct onnx_value kp_onnx_slice(struct onnx_graph *g, const struct onnx_value *a, int64_t axis,
                                int64_t from, int64_t to)
{
    const struct onnx_value f = kp_onnx_ints(g, &from, 1);
    const struct onnx_value t = kp_onnx_ints(g, &to, 1);
    const struct onnx_value x = kp_onnx_ints(g, &axis, 1);
    const struct onnx_node node = {.op = "Slice", .in = {a, &f, &t, &x}, .n_in = 4};
    struct onnx_value out;
    kp_onnx_add(g, &node, &out, 1);
    return out;
}

/* Two and two, so that a node's inputs are few: the same at any number. */
struct onnx_value kp_onnx_concat(struct onnx_graph *g, const struct onnx_value *parts, size_t n,
                                 int64_t axis)
{
    struct onnx_value all = parts[0];
    for (size_t i = 1; i < n; i++) {
        const struct onnx_node node = {
            .op = "Concat",
            .in = {&all, &parts[i]},
            .n_in = 2,
            .attribute = {{.name = "axis", .is_int = true, .i = axis}}};
        kp_onnx_add(g, &node, &all, 1);
    }
    return all;
}

struct onnx_value kp_onnx_squeeze(struct onnx_graph *g, const char *op,
                                  const struct onnx_value *a, int64_t axis)
{
    const struct onnx_value axes = kp_onnx_ints(g, &axis, 1);
    return kp_onnx_2(g, op, a, &axes);
}

struct onnx_value kp_onnx_reshape(struct onnx_graph *g, const struct onnx_value *a,
                                  const int64_t *shape, size_t n)
{
    const struct onnx_value s = kp_onnx_ints(g, shape, n);
    return kp_onnx_2(g, "Reshape", a, &s);
}

const struct kp_tensor *kp_onnx_tensor(const struct kp_net *net, const char *name)
{
    const struct kp_tensor *t = kp_params_find(&net->params, name);
    KP_CHECK(t != NULL);
    return t;
}

struct onnx_value kp_onnx_linear(struct onnx_graph *g, const struct kp_net *net,
                                 const struct onnx_value *a, const char *w, const char *b)
{
    const struct kp_tensor *t = kp_onnx_tensor(net, w);
    const struct onnx_value weights =
        kp_onnx_turned(g, w, t->rows, t->cols, net->values + t->offset);
    struct onnx_value y = kp_onnx_2(g, "MatMul", a, &weights);
    if (!b)
        return y;
    const struct kp_tensor *bias = kp_onnx_tensor(net, b);
    const struct onnx_value v = kp_onnx_vector(g, b, bias->cols, net->values + bias->offset);
    return kp_onnx_2(g, "Add", &y, &v);
}
