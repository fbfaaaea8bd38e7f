/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that take options, as the option table names them. */
#pragma once

enum pr_command_bit {
    CMD_RUN = 1,
    CMD_ATTACH = 2,
    CMD_SYSTEM = 4,
    CMD_METRICS = 8,
    CMD_DOCTOR = 16,
    CMD_LS = 32,
    CMD_SHOW = 64,
    CMD_EXPORT = 128,
    CMD_RM = 256,
    CMD_GC = 512,
    CMD_RECOVER = 1024,
    CMD_REPORT = 2048,
    CMD_COMPARE = 4096,
    CMD_SUGGEST = 8192,
    CMD_PUSH = 16384,
};
