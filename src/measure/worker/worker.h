/* SPDX-License-Identifier: MIT */
/* The roles of the worker program. Layer: measure. Each talks over descriptor KP_PROC_FD until
 * the other side closes it, and returns an exit status. */
#ifndef KP_MEASURE_WORKER_H
#define KP_MEASURE_WORKER_H

#include "measure/message.h"

/* Compiles candidates for one device. */
int kp_worker_compile(void);
/* Owns one device: loads, launches, times and checks candidates. */
int kp_worker_run(void);
/* Lists the devices of one backend. */
int kp_worker_probe(const char *backend);
/* Runs a reference function from a shared object over files of data. */
int kp_worker_reference(void);

/* Sends (takes head). False when the session is gone, or there is no memory for it: the session
 * is told of that. */
bool kp_worker_send(struct kp_json *head, const void *blob, size_t blob_bytes);
/* Tell the session, without taking memory, that this process has none left. False: it is to
 * end. */
bool kp_worker_no_memory(void);
/* Reply {"is": "error"} with what is in `err`; false when the session is gone. */
bool kp_worker_fail(int64_t id, const kopt_error *err);
/* Reply {"is": what}. */
bool kp_worker_reply(int64_t id, const char *what);

/* Read the next request; false when the session is gone or there is no memory for it. `frame`
 * keeps the bytes. */
bool kp_worker_next(struct kp_buf *frame, struct kp_message *m);

#endif
