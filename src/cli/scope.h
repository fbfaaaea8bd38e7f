/* SPDX-License-Identifier: Apache-2.0 */
/* An ordinary user may not make cgroups, but can have one of systemd in which that is allowed. */
#pragma once

/* For `run --exact cgroup` where making a group is refused: starts this very command again, in the
 * same process, inside a scope that systemd-run asks the user's systemd for. Returns where that is
 * not needed or not possible. argv: as main has it. */
void pr_scope_enter(char **argv);
