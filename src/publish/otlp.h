/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenTelemetry collector, or whoever else takes OTLP over HTTP: where it is and how it is
 * spoken to, from the variables that all exporters of OpenTelemetry read; and an outlet that sends
 * a run to it. */
#pragma once
#include "core/error.h"
#include "publish/outlet.h"

struct pr_otlp_setting {
    char url[1100];   /* that requests go to, without user and password */
    char shown[1024]; /* the same without what is behind a "?" */
    char user[256], password[1024];
    char headers[8192]; /* "Name: value\n" each; secret */
    bool json, gzip;
    bool disabled;      /* OTEL_SDK_DISABLED: nothing is to be sent */
    bool command;       /* the command line goes with it */
    double timeout;     /* seconds */
    _Atomic int *files; /* where descriptors are counted; NULL for nowhere */
    const char *ca, *certificate, *key;
    const char *attributes, *service; /* OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, or NULL */
};

/* url: of the option, NULL for that of the variables, or else of a collector on this machine.
 * -EINVAL where that cannot be spoken to from here; err says what to do, and nothing secret. */
int pr_otlp_read(struct pr_otlp_setting *s, const char *url, struct proctor_error *err);
/* Writes over what is secret. */
void pr_otlp_forget(struct pr_otlp_setting *s);
/* Attributes as a list of "key=value,..." has them, unescaped; each is told. False where it is no
 * such list. */
typedef bool pr_otlp_pair_fn(void *of, const char *key, const char *value);
bool pr_otlp_pairs(const char *list, pr_otlp_pair_fn *each, void *of);

/* 0 or -errno. Texts that are borrowed from the environment must stay. */
int pr_otlp_open(const struct pr_otlp_setting *s, struct pr_outlet **ret,
                 struct proctor_error *err);
