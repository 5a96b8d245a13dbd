/* SPDX-License-Identifier: MIT */
/* Running a tuning session in a test and looking at what it did. */
#ifndef KP_TESTS_SESSION_H
#define KP_TESTS_SESSION_H

#include <kopt/kopt.h>

#include "support/test.h"

enum { SEEN_MAX = 2000, TEXT = 512 };

struct seen {
    char config[TEXT];
    char message[TEXT];
    kopt_outcome outcome;
    double median_ns;
    int from_store;
    int dropped;
};

struct session {
    kopt_tune_options o;
    struct seen seen[SEEN_MAX]; /* in the order of arrival */
    size_t n_seen;
    size_t stop_after; /* kopt_tuner_stop() after so many results; 0 = never */
    kopt_tuner *tuner;
    kopt_status status;
    kopt_error err;
    kopt_tune_report report; /* strings are valid until session_end() */
    int has_report;
    int warnings;
    char last_warning[TEXT];
};

/* Write a kernel file; returns its name. */
const char *write_kernel(const char *name, const char *text);

/* Defaults for the fake device: small numbers of samples, short time limits. */
void session_init(struct session *s, const char *kernel, const char *store);
/* Set up and run; s->status and s->report tell. */
void session_run(struct session *s);
void session_end(struct session *s);

/* The result of a configuration ("BM=16"); fails the test when it was not seen. */
const struct seen *session_find(const struct session *s, const char *config);
/* How many were measured now, not taken from the store. */
size_t session_measured(const struct session *s);

#endif
