/* SPDX-License-Identifier: Apache-2.0 */
/* The inner part of a tick: from members' files to the job's values. */
#pragma once
#include "core/session.h"

/* Finds new members, and reads who they are. */
void pr_tick_meet(struct pr_session *s, int64_t now);
/* Finds new members and reads all. again: the second time in one sample. */
void pr_tick_read(struct pr_session *s, int64_t now, bool again);
/* Is this sample read once more, so that who vanished just now shows up with its heir? */
bool pr_tick_reads_again(const struct pr_session *s);
/* One source of one member; where it fails its values are absent and the reason is kept. */
void pr_tick_source(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e, int id);
/* PSS, as far as the budget goes. */
void pr_tick_shares(struct pr_session *s, const struct pr_tick *t);
/* Settles the ledger and fills s->now.value and s->now.mark. dt: seconds since the sample before,
 * NaN where rates make no sense. `last`: nothing will be read any more. */
void pr_tick_job(struct pr_session *s, double dt, bool last);
/* Reads the machine into s->now, where it is time to: not more often than ten times a second, and
 * where the budget is used up only now and then. */
void pr_tick_machine(struct pr_session *s, int64_t now);
/* At the end: kills for want of memory that no sample has shown. */
void pr_tick_kills(struct pr_session *s);
/* Copies the members into s->now, with their rates. */
void pr_tick_members(struct pr_session *s, double dt);
/* The same by name, for --match. */
void pr_tick_matches(struct pr_session *s, int64_t now, double dt);
/* Are GPUs wanted, and known not to be there? machine.gpu_reason then says why. */
bool pr_tick_gpu_none(struct pr_session *s);
/* GPUs: starts their thread, where there may be one; takes what it has read into the members, the
 * statistics of devices and these values; appends the devices to s->now; says when the next tick is
 * due, and returns the CPU time that the thread has used since; ends it. */
void pr_tick_gpu_start(struct pr_session *s);
void pr_tick_gpu(struct pr_session *s, double *value);
void pr_tick_gpu_devices(struct pr_session *s);
int64_t pr_tick_gpu_next(struct pr_session *s);
void pr_tick_gpu_finish(struct pr_session *s);
/* Counters become those of the sample before; settled members go into the roll. */
void pr_tick_finish(struct pr_session *s);
/* A member goes into the roll, now. */
void pr_tick_enroll(struct pr_session *s, const struct pr_entity *e);
/* Nothing will be read any more: all others go there, too. */
void pr_tick_last(struct pr_session *s);
