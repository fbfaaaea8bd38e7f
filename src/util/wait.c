/* SPDX-License-Identifier: Apache-2.0 */
#include "util/wait.h"

#include "util/clock.h"

void pr_wait_init(pthread_mutex_t *lock, pthread_cond_t *changed)
{
    pthread_condattr_t steady;
    pthread_mutex_init(lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &steady);
    pthread_condattr_destroy(&steady);
}

struct timespec pr_wait_until(int64_t ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (ns > 0 ? ns : 0) + now.tv_nsec;
    return (struct timespec){now.tv_sec + ns / NS_PER_S, ns % NS_PER_S};
}
