/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of the page where it could not be made. */
#include "report/template.h"

const char pr_template[] = "";
const size_t pr_template_len = 0;
