/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever started the job and waits for it tells the session. For the command only: the
 * library starts nobody and waits for nobody. */
#pragma once
#include "core/session.h"

/* Finds who is there already, and reads no more than who they are. */
void pr_session_meet(struct pr_session *s);
/* A child has ended and is about to be waited for: what its files say last. */
void pr_session_look(struct pr_session *s, pid_t pid);
/* We waited for that child, which ended with this status: its usage goes into the account. */
void pr_session_reaped(struct pr_session *s, pid_t pid, const double *usage, double maxrss,
                       int status);
/* The job never was: there is nothing to record. */
void pr_session_call_off(struct pr_session *s);
