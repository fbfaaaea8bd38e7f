/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting on a condition for a time, by a clock that nobody sets (and that stands still while the
 * machine is suspended). */
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <time.h>

void pr_wait_init(pthread_mutex_t *lock, pthread_cond_t *changed);
/* So many ns from now, for pthread_cond_timedwait. */
struct timespec pr_wait_until(int64_t ns);
