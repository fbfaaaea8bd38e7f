/* SPDX-License-Identifier: Apache-2.0 */
/* What MLflow's client reads from its surroundings, read in the same order. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "publish/address.h"
#include "publish/mlflow.h"
#include "util/fs.h"
#include "util/units.h"

#define TIMEOUT 30.0 /* seconds; MLflow's client waits for two minutes */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_true(const char *name)
{
    const char *value = variable(name);
    return value && (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

static void copy(char *text, size_t size, const char *value)
{
    snprintf(text, size, "%s", value ? value : "");
}

/* --- files with sections ---------------------------------------------------------------------- */

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        text[--n] = '\0';
    return text;
}

/* The value of a key in a section of ~/PATH; "" where there is none. */
static void from_file(const char *path, const char *section, const char *key, char *ret,
                      size_t size)
{
    char whole[PATH_MAX], *text = NULL, *rest, *line;
    const char *home = variable("HOME");
    size_t len;
    bool inside = false;
    ret[0] = '\0';
    if (!home || snprintf(whole, sizeof whole, "%s/%s", home, path) >= (int)sizeof whole ||
        pr_fs_slurp(AT_FDCWD, whole, &text, &len) < 0)
        return;
    for (rest = text; (line = strsep(&rest, "\n"));) {
        line = trimmed(line);
        size_t n = strlen(line);
        if (n && line[0] == '[' && line[n - 1] == ']') {
            line[n - 1] = '\0';
            inside = strcmp(trimmed(line + 1), section) == 0;
        }
        char *equals = inside ? strpbrk(line, "=:") : NULL;
        if (!equals || *line == '#' || *line == ';')
            continue;
        *equals = '\0';
        if (strcasecmp(trimmed(line), key) == 0)
            copy(ret, size, trimmed(equals + 1));
    }
    explicit_bzero(text, len);
    free(text);
}

/* --- the address ------------------------------------------------------------------------------ */

static int take_address(struct pr_mlflow_setting *s, const char *uri, struct proctor_error *err)
{
    struct pr_address parts;
    if (pr_address_split(uri, &parts) < 0)
        return pr_error(err, EINVAL, "mlflow: the address of the server is too long");
    if (*parts.user || *parts.password) {
        copy(s->user, sizeof s->user, parts.user);
        copy(s->password, sizeof s->password, parts.password);
    }
    copy(s->url, sizeof s->url, parts.url);
    explicit_bzero(&parts, sizeof parts);
    size_t n = strcspn(s->url, "?#");
    while (n && s->url[n - 1] == '/')
        n--;
    s->url[n] = '\0';
    return 0;
}

/* "databricks" or "databricks://PROFILE": host and token of that. */
static int take_databricks(struct pr_mlflow_setting *s, const char *uri, struct proctor_error *err)
{
    const char *profile = strncmp(uri, "databricks://", 13) == 0 && uri[13] ? uri + 13 : NULL;
    char host[sizeof s->url];
    copy(host, sizeof host, profile ? NULL : variable("DATABRICKS_HOST"));
    copy(s->token, sizeof s->token, profile ? NULL : variable("DATABRICKS_TOKEN"));
    profile = profile ? profile : "DEFAULT";
    if (!*host)
        from_file(".databrickscfg", profile, "host", host, sizeof host);
    if (!*s->token)
        from_file(".databrickscfg", profile, "token", s->token, sizeof s->token);
    if (!*host || !*s->token)
        return pr_error(err, EINVAL,
                        "mlflow: databricks needs a host and a token: DATABRICKS_HOST and "
                        "DATABRICKS_TOKEN, or ~/.databrickscfg");
    char with_scheme[sizeof host + 8];
    snprintf(with_scheme, sizeof with_scheme, "%s%s", strstr(host, "://") ? "" : "https://", host);
    if (!s->experiment_id && !s->experiment)
        return pr_error(err, EINVAL,
                        "mlflow: databricks has no default experiment: set MLFLOW_EXPERIMENT_NAME "
                        "or MLFLOW_EXPERIMENT_ID");
    return take_address(s, with_scheme, err);
}

/* sqlite:///a, mysql+pymysql://..., a path. */
static bool is_store(const char *uri)
{
    static const char *const schemes[] = {"sqlite", "postgresql", "postgres",
                                          "mysql",  "mssql",      "file"};
    size_t n = strcspn(uri, ":+");
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strlen(schemes[i]) == n && strncasecmp(uri, schemes[i], n) == 0)
            return true;
    return !strchr(uri, ':');
}

/* A store that only MLflow's own code can write, or no address. What comes behind the scheme may be
 * a password. */
static int refuse(const char *uri, struct proctor_error *err)
{
    const char *colon = strchr(uri, ':');
    int n = colon && colon - uri < 20 ? (int)(colon - uri) : 0;
    if (!is_store(uri))
        return pr_address_refuse(uri, "--mlflow", "http://HOST:PORT", err);
    return pr_error(
        err, EINVAL,
        "mlflow: %.*s%s is a store that only MLflow's Python package can write: start "
        "`mlflow server --backend-store-uri ...` and name its address, http://HOST:PORT",
        n ? n : 18, n ? uri : "a path of the disk", n ? ":" : "");
}

/* --- who we are ------------------------------------------------------------------------------- */

static void take_one(char *text, size_t size, const char *name, const char *key)
{
    copy(text, size, variable(name));
    if (!*text)
        from_file(".mlflow/credentials", "mlflow", key, text, size);
}

/* What stands in the address comes first, and a user with a password before a token. */
static void take_credentials(struct pr_mlflow_setting *s)
{
    if (!*s->user && !*s->token) {
        take_one(s->user, sizeof s->user, "MLFLOW_TRACKING_USERNAME", "mlflow_tracking_username");
        take_one(s->password, sizeof s->password, "MLFLOW_TRACKING_PASSWORD",
                 "mlflow_tracking_password");
    }
    if (!*s->token)
        copy(s->token, sizeof s->token, variable("MLFLOW_TRACKING_TOKEN"));
    s->insecure = is_true("MLFLOW_TRACKING_INSECURE_TLS");
    s->ca = variable("MLFLOW_TRACKING_SERVER_CERT_PATH");
    s->certificate = variable("MLFLOW_TRACKING_CLIENT_CERT_PATH");
    s->workspace = variable("MLFLOW_WORKSPACE");
}

static bool number_of(const char *name, double *ret)
{
    const char *value = variable(name);
    return value && pr_units_parse_number(value, ret);
}

void pr_mlflow_node(const char *option, char *text, size_t size)
{
    /* The number of the node, and how many there are. */
    static const char *const starters[][2] = {{"SLURM_NODEID", "SLURM_JOB_NUM_NODES"},
                                              {"SLURM_NODEID", "SLURM_NNODES"},
                                              {"GROUP_RANK", "GROUP_WORLD_SIZE"}};
    double number, of, rank, here;
    text[0] = '\0';
    if (option) {
        bool plain = *option && strspn(option, "0123456789") == strlen(option);
        snprintf(text, size, "%s%s", plain ? "node_" : "", option);
        return;
    }
    for (size_t i = 0; i < sizeof starters / sizeof *starters && !*text; i++)
        if (number_of(starters[i][0], &number) && number_of(starters[i][1], &of) && of > 1)
            snprintf(text, size, "node_%.0f", number);
    /* Open MPI fills one node after the other. */
    if (!*text && number_of("OMPI_COMM_WORLD_RANK", &rank) &&
        number_of("OMPI_COMM_WORLD_LOCAL_SIZE", &here) && number_of("OMPI_COMM_WORLD_SIZE", &of) &&
        here >= 1 && of > here)
        snprintf(text, size, "node_%d", (int)(rank / here));
}

/* Keys are relative paths of letters, digits and a few others. */
static int check_name(const char *name, const char *option, struct proctor_error *err)
{
    bool good = *name != '/' && !strstr(name, "//") && !strstr(name, "..") && strlen(name) < 100;
    for (const char *p = name; *p; p++)
        good = good && (isalnum((unsigned char)*p) || strchr("_-./ :", *p));
    return good ? 0
                : pr_error(err, EINVAL,
                           "%s: '%.80s' cannot be a part of a name in MLflow: letters, digits, "
                           "blanks and _ - . : can, and / not at its beginning",
                           option, name);
}

int pr_mlflow_read(struct pr_mlflow_setting *s, const char *uri, const char *node,
                   const char *prefix, struct proctor_error *err)
{
    *s = (struct pr_mlflow_setting){.experiment_id = variable("MLFLOW_EXPERIMENT_ID"),
                                    .experiment = variable("MLFLOW_EXPERIMENT_NAME"),
                                    .run = variable("MLFLOW_RUN_ID"),
                                    .prefix = prefix ? prefix : "process/"};
    uri = uri ? uri : variable("MLFLOW_TRACKING_URI");
    if (!uri)
        return pr_error(err, EINVAL,
                        "mlflow: where is the server? --mlflow=http://HOST:PORT, or "
                        "MLFLOW_TRACKING_URI");
    if (variable("MLFLOW_TRACKING_AUTH") || is_true("MLFLOW_TRACKING_AWS_SIGV4"))
        return pr_error(err, EINVAL,
                        "mlflow: MLFLOW_TRACKING_AUTH and MLFLOW_TRACKING_AWS_SIGV4 need MLflow's "
                        "Python package; a user and password or a token do not");
    if (!number_of("MLFLOW_HTTP_REQUEST_TIMEOUT", &s->timeout) || !(s->timeout > 0))
        s->timeout = TIMEOUT;
    pr_mlflow_node(node, s->node, sizeof s->node);
    int code = check_name(s->prefix, "--prefix", err);
    if (code == 0)
        code = check_name(s->node, "--node", err);
    if (code < 0)
        return code;
    code = strcasecmp(uri, "databricks") == 0 || strncmp(uri, "databricks://", 13) == 0
               ? take_databricks(s, uri, err)
           : strncasecmp(uri, "http://", 7) == 0 || strncasecmp(uri, "https://", 8) == 0
               ? take_address(s, uri, err)
               : refuse(uri, err);
    if (code == 0)
        take_credentials(s);
    return code;
}
