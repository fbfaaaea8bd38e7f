/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of the socket: tells the run that we are inside of, found through PROCTOR_SOCKET. A
 * run that is stuck or gone costs a moment and is not spoken of. */
#pragma once
#include <stdbool.h>

#include "core/request.h"

/* data: of a mark, NULL for none. wait: until it is done, so that what follows comes after it. */
void pr_tell(enum pr_request_verb verb, const char *name, const char *data, bool wait);
/* Complains where this cannot be the name of a phase or mark. */
bool pr_tell_check(const char *command, const char *name);
