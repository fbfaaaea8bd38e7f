/* SPDX-License-Identifier: Apache-2.0 */
/* What a job says about itself reaches the session here. */
#pragma once
#include "core/request.h"
#include "core/session.h"

/* Does what is asked; `now` is the boot time at which it was. At the begin and the end of a phase a
 * sample is taken, at most some twenty in a second. owner: of REQUEST_DURING, see phase.h. False
 * where it makes no sense, which is counted. */
bool pr_annotate(struct pr_session *s, const struct pr_request *r, int64_t now, int owner);
/* The process with this number has ended. */
void pr_annotate_gone(struct pr_session *s, int owner, int64_t now);
/* Something that is no request: counted, and said in an event once. */
void pr_annotate_refuse(struct pr_session *s, const char *why);
