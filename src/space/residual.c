/* SPDX-License-Identifier: MIT */
/* The diagram of one atom, depth first. A state is known by the values of its cut; one that was
 * met before is looked up (residual_memo.h). So the work is in the order of the reduced
 * diagram, not of the number of assignments. */
#include "space/residual.h"

#include "base/checked.h"
#include "space/residual_memo.h"

#include <math.h>
#include <string.h>

struct visit {
    uint32_t value;
    uint32_t below; /* nearest values tried before it (not for the first two) */
    uint32_t above;
};

struct search {
    struct kp_program *p;
    const struct kp_residual_input *in;
    struct kp_budget *budget;
    struct kp_mdd *mdd;
    struct kp_cell *val;      /* by node */
    struct kp_cell *early;    /* by node: what is known of lazy ones */
    struct kp_bounds *bounds; /* by node, of the state at hand */
    struct kp_bounds *arg_bounds;
    struct kp_cell **values; /* by variable: its values */
    struct visit **visit;    /* by variable: the order in which its values are tried */
    bool *monotone;          /* by variable: truth rises or falls along its values */
    uint32_t **row;          /* by variable: children found so far */
    struct kp_state_key key; /* of the state at hand */
    struct kp_memo memo;
};

/* ---- values ---- */

static const struct kp_cell open_cell = {.type = KP_CELL_OPEN};

static struct kp_cell error_cell(void)
{
    return (struct kp_cell){.type = KP_CELL_ERROR};
}

static struct kp_cell bool_cell(bool b)
{
    return (struct kp_cell){.bits = b, .type = KP_BOOL};
}

/* The commonest operations on two integers; false: not one of them, or it fails. */
static inline bool fast_ints(enum kp_op op, int64_t a, int64_t b, struct kp_cell *out)
{
    int64_t v = 0;
    switch ((int)op) {
    case KP_OP_ADD:
        if (!kp_add_i64(a, b, &v))
            return false;
        break;
    case KP_OP_SUB:
        if (!kp_sub_i64(a, b, &v))
            return false;
        break;
    case KP_OP_MUL:
        if (!kp_mul_i64(a, b, &v))
            return false;
        break;
    case KP_OP_DIV:
    case KP_OP_FLOORDIV:
        if (a < 0 || b <= 0)
            return false;
        v = a / b;
        break;
    case KP_OP_MOD:
        if (a < 0 || b <= 0)
            return false;
        v = a % b;
        break;
    case KP_OP_LT:
        *out = bool_cell(a < b);
        return true;
    case KP_OP_LE:
        *out = bool_cell(a <= b);
        return true;
    case KP_OP_GT:
        *out = bool_cell(a > b);
        return true;
    case KP_OP_GE:
        *out = bool_cell(a >= b);
        return true;
    case KP_OP_EQ:
        *out = bool_cell(a == b);
        return true;
    case KP_OP_NE:
        *out = bool_cell(a != b);
        return true;
    default:
        return false;
    }
    *out = (struct kp_cell){.bits = (uint64_t)v, .type = KP_INT};
    return true;
}

/* Puts an argument in its place: a constant, something that fails, or something not known. */
static void hold(const struct kp_program *p, struct kp_expr *holder, struct kp_cell c)
{
    if (c.type <= KP_STRING) {
        holder->op = KP_OP_CONST;
        holder->value = kp_cell_value(c);
    } else if (c.type == KP_CELL_ERROR) {
        *holder = (struct kp_expr){.op = KP_OP_MOD, .n_args = 2, .args = p->failing};
    } else {
        *holder = (struct kp_expr){.op = KP_OP_VAR};
    }
}

/* By the evaluator itself, so that the meaning of every operation has one home; its arguments
 * stand in the holders. */
static struct kp_cell evaluate(const struct kp_rnode *n)
{
    const struct kp_env nothing = {NULL, NULL};
    struct kp_value v;
    switch (kp_expr_eval(&n->shape, &nothing, &v, NULL)) {
    case KP_EVAL_VALUE:
        return kp_cell_from(v);
    case KP_EVAL_UNKNOWN:
        return (struct kp_cell){.type = KP_CELL_OPEN};
    case KP_EVAL_ERROR:
        break;
    }
    return error_cell();
}

/* Membership of an integer in a list of integers. */
static bool in_list(const struct kp_rnode *n, const struct kp_cell *needle, struct kp_cell *out)
{
    if (needle->type != KP_INT)
        return false;
    int64_t v = (int64_t)needle->bits;
    size_t lo = 0;
    size_t hi = n->n_list;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (n->list[mid] < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    *out = bool_cell(lo < n->n_list && n->list[lo] == v);
    return true;
}

static uint32_t terminal(struct kp_cell c)
{
    if (c.type == KP_INT || c.type == KP_BOOL)
        return c.bits != 0 ? KP_MDD_TRUE : KP_MDD_FALSE;
    if (c.type > KP_STRING)
        return KP_MDD_FALSE;
    const struct kp_env nothing = {NULL, NULL};
    struct kp_expr e = {.op = KP_OP_CONST, .value = kp_cell_value(c)};
    return kp_expr_truth(&e, &nothing, NULL) == 1 ? KP_MDD_TRUE : KP_MDD_FALSE;
}

/* Of two operands that are both needed: an error comes before "not known". */
static bool fast_strict(enum kp_op op, const struct kp_cell *a, const struct kp_cell *b,
                        struct kp_cell *out)
{
    if (a->type == KP_INT && b->type == KP_INT)
        return fast_ints(op, (int64_t)a->bits, (int64_t)b->bits, out);
    if (a->type <= KP_STRING && b->type <= KP_STRING)
        return false;
    bool failed = a->type == KP_CELL_ERROR || b->type == KP_CELL_ERROR;
    *out = failed ? error_cell() : open_cell;
    return true;
}

/* Either operand may decide; else "not known" comes before an error. */
static void fast_logic(enum kp_op op, const struct kp_cell *a, const struct kp_cell *b,
                       struct kp_cell *out)
{
    uint32_t decides = op == KP_OP_AND ? KP_MDD_FALSE : KP_MDD_TRUE;
    bool left = a->type <= KP_STRING && terminal(*a) == decides;
    bool right = b->type <= KP_STRING && terminal(*b) == decides;
    if (left || right)
        *out = bool_cell(decides == KP_MDD_TRUE);
    else if (a->type == KP_CELL_OPEN || b->type == KP_CELL_OPEN)
        *out = open_cell;
    else if (a->type == KP_CELL_ERROR || b->type == KP_CELL_ERROR)
        *out = error_cell();
    else
        *out = bool_cell(decides == KP_MDD_FALSE);
}

/* The commonest operations on cells, as the evaluator has them; false: not one of them. */
static bool fast(const struct kp_rnode *n, const struct kp_cell *const a[3],
                 struct kp_cell *out)
{
    enum kp_op op = n->shape.op;
    if (op >= KP_OP_ADD && op <= KP_OP_NE)
        return fast_strict(op, a[0], a[1], out);
    if ((op == KP_OP_AND || op == KP_OP_OR) && !n->shape.operand) {
        fast_logic(op, a[0], a[1], out);
        return true;
    }
    if (op == KP_OP_COND) {
        bool known = a[0]->type <= KP_STRING;
        *out = !known ? *a[0] : terminal(*a[0]) == KP_MDD_TRUE ? *a[1] : *a[2];
        return true;
    }
    if (op == KP_OP_NOT) {
        bool known = a[0]->type <= KP_STRING;
        *out = known ? bool_cell(terminal(*a[0]) == KP_MDD_FALSE) : *a[0];
        return true;
    }
    return false;
}

/* Any operation, its arguments known. */
static struct kp_cell compute_one(const struct search *s, const struct kp_rnode *n)
{
    const struct kp_cell *a[3] = {&open_cell, &open_cell, &open_cell};
    struct kp_cell out;
    for (uint32_t k = 0; k < n->n_args && k < 3; k++)
        a[k] = &s->val[n->args[k]];
    if (fast(n, a, &out))
        return out;
    for (uint32_t k = 0; k < n->n_args; k++)
        hold(s->p, &n->holders[k], s->val[n->args[k]]);
    return evaluate(n);
}

static void compute(struct search *s, uint32_t level)
{
    const struct kp_levels *l = &s->p->compute[level];
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t id = l->nodes[i];
        const struct kp_rnode *n = &s->p->nodes[id];
        if (n->list && in_list(n, &s->val[n->args[0]], &s->val[id]))
            continue;
        if (n->n_args == 2) {
            const struct kp_cell *a = &s->val[n->args[0]];
            const struct kp_cell *b = &s->val[n->args[1]];
            if (a->type == KP_INT && b->type == KP_INT &&
                fast_ints(n->shape.op, (int64_t)a->bits, (int64_t)b->bits, &s->val[id]))
                continue;
        }
        s->val[id] = compute_one(s, n);
    }
}

/* ---- the key of a state ---- */

/* What is known of a node when `level` variables are. */
static const struct kp_cell *known(const struct search *s, uint32_t node, uint32_t level)
{
    const struct kp_rnode *n = &s->p->nodes[node];
    if (n->level <= level)
        return &s->val[node];
    return n->lazy ? &s->early[node] : &open_cell;
}

/* Lazy nodes that a part of their arguments has decided. */
static void compute_early(struct search *s, uint32_t level)
{
    struct kp_program *p = s->p;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        struct kp_rnode *n = &p->nodes[i];
        const struct kp_cell *a[3] = {&open_cell, &open_cell, &open_cell};
        if (!n->lazy || n->level <= level)
            continue;
        for (uint32_t k = 0; k < n->n_args && k < 3; k++)
            a[k] = known(s, n->args[k], level);
        if (fast(n, a, &s->early[i]))
            continue;
        for (uint32_t k = 0; k < n->n_args; k++)
            hold(p, &n->holders[k], *known(s, n->args[k], level));
        s->early[i] = evaluate(n);
    }
}

/* Integers and floats as integers of the same order. */
static int64_t ordered(struct kp_cell c)
{
    if (c.type == KP_INT)
        return (int64_t)c.bits;
    double f = 0;
    memcpy(&f, &c.bits, sizeof(f));
    if (f == 0)
        return 0;
    int64_t bits = (int64_t)c.bits;
    return bits >= 0 ? bits : INT64_MIN - bits;
}

static void emit(struct search *s, struct kp_cell c)
{
    s->key.cells[s->key.n++] = c;
}

static void emit_value(struct search *s, uint32_t node, uint32_t level, struct kp_cell c)
{
    if (node == s->p->scalar[level] && (c.type == KP_INT || c.type == KP_FLOAT)) {
        s->key.scalar = ordered(c); /* twice in a key it has the same value */
        s->key.has_scalar = true;
        c = (struct kp_cell){.type = KP_CELL_SCALAR};
    }
    emit(s, c);
}

static void walk(struct search *s, uint32_t node, uint32_t level);

/* Logic with one side known: whether it is true or an error is all that matters of it, unless
 * the result is the operand itself. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static void walk_logic(struct search *s, const struct kp_rnode *n, uint32_t level)
{
    for (uint32_t k = 0; k < 2; k++) {
        struct kp_cell c = *known(s, n->args[k], level);
        if (c.type <= KP_STRING && !n->shape.operand)
            emit(s, (struct kp_cell){.type = KP_CELL_TRUE});
        else
            walk(s, n->args[k], level);
    }
}

/* Each node says first whether it is known, so that different states have different keys. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static void walk(struct search *s, uint32_t node, uint32_t level)
{
    const struct kp_rnode *n = &s->p->nodes[node];
    struct kp_cell c = *known(s, node, level);
    if (c.type <= KP_CELL_ERROR) {
        if (n->level > 0)
            emit_value(s, node, level, c);
        return;
    }
    emit(s, c);
    if (n->shape.op == KP_OP_AND || n->shape.op == KP_OP_OR) {
        walk_logic(s, n, level);
        return;
    }
    struct kp_cell cond = {.type = KP_CELL_OPEN};
    if (n->shape.op == KP_OP_COND)
        cond = *known(s, n->args[0], level);
    if (cond.type <= KP_STRING) {
        uint32_t taken = terminal(cond) == KP_MDD_TRUE ? 1 : 2;
        emit(s, (struct kp_cell){.bits = taken, .type = KP_CELL_CHOSEN});
        walk(s, n->args[taken], level);
        return;
    }
    for (uint32_t k = 0; k < n->n_args; k++)
        walk(s, n->args[k], level);
}

static void make_key(struct search *s, uint32_t level)
{
    const struct kp_program *p = s->p;
    s->key.n = 0;
    s->key.level = level;
    s->key.has_scalar = false;
    if (p->nodes[p->root].lazy) {
        walk(s, p->root, level);
        return;
    }
    const struct kp_levels *cut = &p->cut[level];
    for (uint32_t i = 0; i < cut->n; i++)
        emit_value(s, cut->nodes[i], level, s->val[cut->nodes[i]]);
}

/* ---- the search ---- */

static struct kp_bounds cell_bounds(struct kp_cell c)
{
    if (c.type <= KP_BOOL)
        return kp_bounds_value(kp_cell_value(c));
    return (struct kp_bounds){(double)-INFINITY, (double)INFINITY};
}

/* What intervals say of the state: a terminal, or KP_MDD_NONE. */
static uint32_t by_bounds(struct search *s, uint32_t level)
{
    const struct kp_program *p = s->p;
    const struct kp_levels *cut = &p->cut[level];
    const struct kp_levels *open = &p->open[level];
    for (uint32_t i = 0; i < cut->n; i++)
        s->bounds[cut->nodes[i]] = cell_bounds(s->val[cut->nodes[i]]);
    for (uint32_t i = 0; i < open->n; i++) {
        const struct kp_rnode *n = &p->nodes[open->nodes[i]];
        for (uint32_t k = 0; k < n->n_args; k++)
            s->arg_bounds[k] = s->bounds[n->args[k]];
        s->bounds[open->nodes[i]] =
            n->n_args ? kp_bounds_of(&n->shape, s->arg_bounds, n->types) : n->bounds;
    }
    int truth = kp_bounds_truth(s->bounds[p->root]);
    return truth < 0 ? KP_MDD_NONE : truth ? KP_MDD_TRUE : KP_MDD_FALSE;
}

static uint32_t solve(struct search *s, uint32_t level);

/* The child for value `v` of the variable at `level`. */
/* NOLINTNEXTLINE(misc-no-recursion): one level for each variable, at most KP_PARAMS_MAX */
static uint32_t descend(struct search *s, uint32_t level, uint32_t v)
{
    const struct kp_program *p = s->p;
    if (!kp_budget_step(s->budget))
        return KP_MDD_NONE;
    s->val[p->var_node[level]] = s->values[level][v];
    compute(s, level + 1);
    return level + 1 == p->n_vars ? terminal(s->val[p->root]) : solve(s, level + 1);
}

/* Values are tried in the order of `visit`. Where truth rises or falls with the variable, a
 * value between two that lead to the same node leads there as well. */
/* NOLINTNEXTLINE(misc-no-recursion): one level for each variable, at most KP_PARAMS_MAX */
static uint32_t expand(struct search *s, uint32_t level)
{
    const struct kp_program *p = s->p;
    uint32_t n = s->in->params[p->param[level]].n_values;
    const struct visit *visit = s->visit[level];
    uint32_t *row = s->row[level];
    for (uint32_t i = 0; i < n; i++) {
        const struct visit *at = &visit[i];
        if (s->monotone[level] && i > 1 && row[at->below] == row[at->above]) {
            row[at->value] = row[at->below];
            continue;
        }
        row[at->value] = descend(s, level, at->value);
        if (row[at->value] == KP_MDD_NONE)
            return KP_MDD_NONE;
    }
    return kp_mdd_node(s->mdd, s->budget, level, row);
}

/* The node of the state with `level` variables known; KP_MDD_NONE: out of memory. */
/* NOLINTNEXTLINE(misc-no-recursion): one level for each variable, at most KP_PARAMS_MAX */
static uint32_t solve(struct search *s, uint32_t level)
{
    uint32_t node = KP_MDD_NONE;
    bool lazy = s->p->nodes[s->p->root].lazy;
    if (lazy) {
        compute_early(s, level);
        struct kp_cell root = *known(s, s->p->root, level);
        if (root.type <= KP_CELL_ERROR)
            return terminal(root);
    }
    make_key(s, level);
    size_t entry = kp_memo_find(&s->memo, &s->key);
    if (entry == SIZE_MAX)
        return KP_MDD_NONE;
    if (kp_memo_recall(&s->memo, entry, &s->key, &node))
        return node;
    struct kp_state_key key = s->key; /* deeper states overwrite it */
    uint32_t scalar = s->p->scalar[level];
    node = s->p->regular ? by_bounds(s, level) : KP_MDD_NONE;
    if (node == KP_MDD_NONE)
        node = expand(s, level);
    if (node == KP_MDD_NONE)
        return node;
    int direction = key.has_scalar ? s->p->nodes[scalar].direction : 0;
    return kp_memo_store(&s->memo, entry, &key, direction, node) ? node : KP_MDD_NONE;
}

/* First and last, then the middle of the largest gap, and so on: neighbours that lead to the
 * same node soon enclose all between them. */
static void visit_order(struct visit *visit, uint32_t n)
{
    uint32_t at = 0;
    visit[at++] = (struct visit){0, 0, 0};
    if (n > 1)
        visit[at++] = (struct visit){n - 1, 0, 0};
    uint32_t step = 1;
    while (step < n)
        step *= 2;
    for (step /= 2; step > 0; step /= 2)
        for (uint32_t v = step; v < n - 1; v += 2 * step)
            visit[at++] = (struct visit){v, v - step, n - 1 - v > step ? v + step : n - 1};
}

/* Do the values of a parameter rise or fall from first to last? */
static bool is_sorted(const struct kp_param *p)
{
    int direction = 0;
    for (uint32_t v = 1; v < p->n_values; v++) {
        int order = 0;
        if (!kp_value_compare(p->values[v], p->values[v - 1], &order) || order == 0 ||
            (direction && order != direction))
            return false;
        direction = order;
    }
    return true;
}

static bool prepare_variables(struct search *s, struct kp_arena *arena)
{
    const struct kp_program *p = s->p;
    s->values = kp_arena_alloc(arena, (size_t)p->n_vars + 1, sizeof(struct kp_cell *));
    s->visit = kp_arena_alloc(arena, (size_t)p->n_vars + 1, sizeof(struct visit *));
    s->monotone = kp_arena_alloc(arena, (size_t)p->n_vars + 1, sizeof(*s->monotone));
    s->row = kp_arena_alloc(arena, (size_t)p->n_vars + 1, sizeof(uint32_t *));
    if (!s->values || !s->visit || !s->row || !s->monotone)
        return false;
    for (uint32_t i = 0; i < p->n_vars; i++) {
        const struct kp_param *q = &s->in->params[p->param[i]];
        s->values[i] = kp_arena_alloc(arena, q->n_values, sizeof(struct kp_cell));
        s->visit[i] = kp_arena_alloc(arena, q->n_values, sizeof(struct visit));
        s->row[i] = kp_arena_alloc(arena, q->n_values, sizeof(uint32_t));
        if (!s->values[i] || !s->visit[i] || !s->row[i])
            return false;
        for (uint32_t v = 0; v < q->n_values; v++)
            s->values[i][v] = kp_cell_from(q->values[v]);
        visit_order(s->visit[i], q->n_values);
        int direction = p->nodes[p->var_node[i]].direction;
        s->monotone[i] = (direction == 1 || direction == -1) && is_sorted(q);
    }
    return true;
}

static bool prepare(struct search *s, struct kp_arena *arena)
{
    const struct kp_program *p = s->p;
    size_t n = (size_t)p->n_nodes + 1;
    s->val = kp_arena_alloc(arena, n, sizeof(*s->val));
    s->early = kp_arena_alloc(arena, n, sizeof(*s->early));
    s->bounds = kp_arena_alloc(arena, n, sizeof(*s->bounds));
    s->arg_bounds = kp_arena_alloc(arena, (size_t)p->max_args + 1, sizeof(*s->arg_bounds));
    if (!s->val || !s->early || !s->bounds || !s->arg_bounds || !prepare_variables(s, arena))
        return false;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        s->bounds[i] = p->nodes[i].bounds;
        if (p->nodes[i].shape.op == KP_OP_CONST)
            s->val[i] = p->nodes[i].value;
    }
    return true;
}

static bool init_mdd(struct search *s, struct kp_arena *arena)
{
    const struct kp_program *p = s->p;
    uint32_t *level = kp_arena_alloc(arena, (size_t)p->n_vars + 1, sizeof(*level));
    uint32_t *domain = kp_arena_alloc(arena, (size_t)p->n_vars + 1, sizeof(*domain));
    if (!level || !domain)
        return false;
    for (uint32_t i = 0; i < p->n_vars; i++) {
        level[i] = s->in->level[p->param[i]];
        domain[i] = s->in->params[p->param[i]].n_values;
    }
    return kp_mdd_init(s->mdd, s->budget, p->n_vars, level, domain);
}

/* A key can name each node at most twice for each path to it that the walk takes. */
/* NOLINTNEXTLINE(misc-no-recursion): at most KP_EXPR_DEPTH_MAX levels */
static size_t key_limit(const struct kp_program *p, uint32_t node, size_t most)
{
    size_t n = 2;
    const struct kp_rnode *r = &p->nodes[node];
    for (uint32_t k = 0; k < r->n_args && n < most; k++)
        n += key_limit(p, r->args[k], most - n);
    return n;
}

/* Everything whose size does not depend on the search. */
static bool start(struct search *s, const struct kp_term *atom, struct kp_arena *arena)
{
    enum { KEY_MAX = 1 << 20 };
    if (!kp_program_build(s->p, s->in, atom, arena) || !prepare(s, arena))
        return false;
    size_t n = key_limit(s->p, s->p->root, KEY_MAX);
    if (n >= KEY_MAX) {
        s->budget->over = true;
        return false;
    }
    s->key.cells = kp_arena_alloc(arena, n, sizeof(*s->key.cells));
    return s->key.cells && init_mdd(s, arena);
}

kopt_status kp_residual_mdd(const struct kp_residual_input *in, const struct kp_term *atom,
                            struct kp_budget *budget, struct kp_mdd *out, kopt_error *err)
{
    struct kp_arena arena = KP_ARENA_INIT(budget->max - budget->used);
    struct kp_program program = {0};
    struct search s = {.p = &program, .in = in, .budget = budget, .mdd = out};
    s.memo.budget = budget;
    kopt_status st = KOPT_OK;
    *out = (struct kp_mdd){.root = KP_MDD_NONE};
    size_t charged = 0;
    if (!start(&s, atom, &arena)) {
        kp_budget_blame(budget, &arena);
    } else if (kp_budget_charge(budget, arena.used)) {
        charged = arena.used;
        compute(&s, 0);
        out->root = program.n_vars == 0 ? terminal(s.val[program.root]) : solve(&s, 0);
    }
    if (out->root == KP_MDD_NONE)
        st = kp_budget_error(budget, err);
    kp_memo_deinit(&s.memo);
    budget->used -= charged;
    kp_arena_deinit(&arena);
    kp_mdd_seal(out, budget);
    if (st != KOPT_OK)
        kp_mdd_deinit(out, budget);
    return st;
}
