/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor doctor`: what can be measured here, as this user, by which method; what cannot, why, and
 * what would enable it. It asks the sources themselves, so that it says what a recording would
 * find; nothing is changed, nothing is started. */
#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/doctor_gpu.h"
#include "cli/outside.h"
#include "core/cgroup_path.h"
#include "core/energy.h"
#include "core/exact.h"
#include "core/limits.h"
#include "core/loadavg.h"
#include "core/machine.h"
#include "core/net.h"
#include "core/stat_line.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/scan.h"
#include "util/text.h"

enum state { YES, PART, NO };

struct doctor {
    struct pr_config config;
    struct pr_host host;
    struct pr_machine machine;
    struct pr_tick tick;
    struct pr_gpu_check gpus;
    bool color;
    pid_t other; /* a process of another user, 0 where there is none to be seen */
};

/* --- lines ------------------------------------------------------------------------------------ */

static void heading(const struct doctor *d, const char *text)
{
    printf(d->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

/* One thing: whether, what, how or why not, and what would help. */
static void line(const struct doctor *d, enum state state, const char *what, const char *how,
                 const char *remedy)
{
    static const char *const words[] = {"yes", "part", "no"}, *const colors[] = {"32", "33", "31"};
    struct pr_buf safe = {0};
    pr_text_safe(&safe, how);
    if (d->color)
        printf("  \033[%sm%-4s\033[0m  ", colors[state], words[state]);
    else
        printf("  %-4s  ", words[state]);
    printf("%-36s %s\n", what, pr_buf_text(&safe));
    if (remedy && state != YES)
        printf("%-8s%-36s -> %s\n", "", "", remedy);
    pr_buf_done(&safe);
}

/* --- processes -------------------------------------------------------------------------------- */

static bool stat_of(struct doctor *d, pid_t pid, struct pr_stat_line *ret)
{
    char path[32];
    snprintf(path, sizeof path, "%d/stat", (int)pid);
    ssize_t n = pr_fs_read(d->host.proc, path, d->tick.text, d->tick.text_size);
    return n > 0 && pr_stat_line_parse(d->tick.text, (size_t)n, ret);
}

/* Reads one source of a process as a recording would. 0 or -errno. */
static int try_source(struct doctor *d, pid_t pid, enum pr_source_id id)
{
    struct pr_entities set = {0};
    struct pr_stat_line who;
    struct pr_entity *e = stat_of(d, pid, &who) ? pr_entities_add(&set, pid, who.start) : NULL;
    int r = e ? pr_source_read(&d->tick, e, id) : -ESRCH;
    if (e)
        pr_source_release(&d->host, e);
    pr_entities_done(&set);
    return r;
}

/* What each source of a process is good for, and what helps where it cannot be read. */
static const struct {
    enum pr_source_id id;
    const char *what, *how, *remedy;
} process_rows[] = {
    {SOURCE_pid_stat, "CPU time, threads, page faults", "/proc/PID/stat",
     "mount /proc, or name another one with --root"},
    {SOURCE_pid_clock, "CPU time to the nanosecond", "CPU clock of the process", NULL},
    {SOURCE_pid_statm, "resident memory, address space", "/proc/PID/statm", NULL},
    {SOURCE_pid_status, "peak of a process, context switches", "/proc/PID/status", NULL},
    {SOURCE_pid_smaps, "PSS and USS: shared memory divided", "/proc/PID/smaps_rollup",
     "Linux 4.14 or later; without it RSS is shown"},
    {SOURCE_pid_io, "bytes read and written", "/proc/PID/io",
     "a kernel with CONFIG_TASK_IO_ACCOUNTING"},
    {SOURCE_pid_fd, "open descriptors", "/proc/PID/fd", NULL},
    {SOURCE_pid_sched, "time spent waiting for a CPU", "/proc/PID/schedstat",
     "a kernel with CONFIG_SCHED_INFO"},
};

static void own_processes(struct doctor *d)
{
    heading(d, "your own processes");
    for (size_t i = 0; i < sizeof process_rows / sizeof *process_rows; i++) {
        int r = try_source(d, getpid(), process_rows[i].id);
        bool absent = process_rows[i].id == SOURCE_pid_clock && d->host.foreign;
        line(d, r < 0 || absent ? NO : YES, process_rows[i].what,
             r < 0    ? strerror(-r)
             : absent ? "not under --root: the clock of a pid here would be another's"
                      : process_rows[i].how,
             process_rows[i].remedy);
    }
}

/* Somebody else's process, to try what may be read of it: an ordinary one rather than the first,
 * which has more rights than anybody. */
static bool consider(void *data, const char *name)
{
    struct doctor *d = data;
    struct stat st;
    char path[64], text[8];
    int pid = atoi(name);
    snprintf(path, sizeof path, "%.32s/cmdline", name); /* empty of a kernel thread */
    if (pid > 1 && fstatat(d->host.proc, name, &st, 0) == 0 && st.st_uid != geteuid() &&
        pr_fs_read(d->host.proc, path, text, sizeof text) > 0)
        d->other = pid;
    return d->other == 0;
}

static void find_other(struct doctor *d)
{
    char names[4096];
    struct pr_stat_line who;
    pr_fs_list(d->host.proc, ".", names, sizeof names, consider, d);
    if (!d->other && getpid() != 1 && stat_of(d, 1, &who))
        d->other = 1;
}

static void others_processes(struct doctor *d)
{
    const char *remedy =
        geteuid() == 0
            ? "none: it has capabilities that this root lacks; others may well be readable"
            : "sudo, or `setcap cap_sys_ptrace,cap_dac_read_search=ep` on proctor";
    char how[96];
    heading(d, "processes of other users");
    find_other(d);
    if (!d->other) {
        line(d, geteuid() == 0 ? YES : PART, "all that is there",
             geteuid() == 0 ? "root reads what the kernel lets it; no such process runs just now"
                            : "none is visible here",
             "they may be hidden: /proc mounted with hidepid, or a container");
        return;
    }
    for (size_t i = 0; i < sizeof process_rows / sizeof *process_rows; i++) {
        int r = try_source(d, d->other, process_rows[i].id);
        snprintf(how, sizeof how, "%s%s(tried with process %d)", r < 0 ? strerror(-r) : "",
                 r < 0 ? " " : "", (int)d->other);
        if (r == 0)
            snprintf(how, sizeof how, "%s", process_rows[i].how);
        line(d, r == 0 ? YES : geteuid() == 0 ? PART : NO, process_rows[i].what, how, remedy);
    }
}

/* --- the account ------------------------------------------------------------------------------ */

/* An option of the file system at /proc: hidepid=2, subset=pid. "" where it has none. */
static void proc_options(struct doctor *d, char *ret, size_t size)
{
    char *text = NULL;
    size_t len;
    struct pr_scan s, l;
    *ret = '\0';
    if (pr_fs_slurp(d->host.proc, "self/mounts", &text, &len) < 0)
        return;
    s = pr_scan_of(text, len);
    while (pr_scan_line(&s, &l)) {
        struct pr_scan source, point, type, options;
        if (pr_scan_word(&l, &source) && pr_scan_word(&l, &point) && pr_scan_word(&l, &type) &&
            pr_scan_word(&l, &options) && pr_scan_equals(point, "/proc"))
            snprintf(ret, size, "%.*s", (int)(options.end - options.p), options.p);
    }
    free(text);
}

static void discovery(struct doctor *d)
{
    char options[256];
    struct pr_loadavg load = {0};
    int fd = pr_fs_open(d->host.proc, "loadavg");
    ssize_t n = fd < 0 ? fd : pr_fs_pread(fd, d->tick.text, d->tick.text_size);
    bool gate = n > 0 && pr_loadavg_parse(d->tick.text, (size_t)n, &load) && load.last_pid > 0 &&
                pr_loadavg_is_the_kernels(fd) && !d->host.foreign;
    if (fd >= 0)
        close(fd);
    proc_options(d, options, sizeof options);
    line(d, gate ? YES : PART, "finding new processes",
         gate ? "last pid in /proc/loadavg, then /proc where it changed"
              : "/proc is listed at each sample: /proc/loadavg tells nothing here",
         "a /proc of this pid namespace without subset=pid");
    bool hidden = strstr(options, "hidepid=") && !strstr(options, "hidepid=0") &&
                  !strstr(options, "hidepid=off");
    if (hidden && geteuid() != 0)
        line(d, NO, "seeing other users' processes", "/proc is mounted with hidepid",
             "root, or the group named by gid= in the mount options of /proc");
    if (strstr(options, "subset=pid"))
        line(d, NO, "figures of the machine", "/proc is mounted with subset=pid",
             "a /proc without subset=pid, named with --root");
}

static void descriptors(struct doctor *d)
{
    struct rlimit limit;
    char how[128];
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    int files = SOURCE_COUNT - 2; /* clock and fd are no files that are held */
    double most = fmin((double)limit.rlim_max, HOST_HOLD_MOST) / files;
    snprintf(how, sizeof how, "up to %.0f processes are read through held files (hard limit %.0f)",
             floor(most), (double)limit.rlim_max);
    line(d, most >= 100 ? YES : PART, "cheap sampling", how,
         "a higher `ulimit -Hn`; beyond that each reading opens its file, at twice the cost");
}

/* Who else keeps an account of a job that `run` starts, and whom --exact auto would take. */
static void other_accounts(struct doctor *d)
{
    const struct pr_exact_ops *best = NULL;
    struct pr_exact x;
    char what[40], remedy[400];
    for (size_t i = 0; i < EXACT_WAYS; i++) {
        const struct pr_exact_ops *ops = pr_exact_ways[i];
        bool asked = pr_exact_probe(&x, ops, false) == 0;
        snprintf(what, sizeof what, "`run --exact %s`", ops->name);
        line(d, asked ? YES : NO, what, asked ? ops->method : x.why, x.remedy);
        if (!best && ops->automatic && pr_exact_probe(&x, ops, true) == 0)
            best = ops;
        if (!best && i == 0)
            snprintf(remedy, sizeof remedy, "%s (%s)", x.remedy, x.why);
    }
    line(d, best && best->whole ? YES : PART, "children that nobody waits for",
         best ? best->method : "as last sampled, and the summary says so", remedy);
}

static void account(struct doctor *d)
{
    int set = 0;
    heading(d, "the account of a job");
    discovery(d);
    bool subreaper = prctl(PR_GET_CHILD_SUBREAPER, &set) == 0;
    line(d, subreaper ? YES : NO, "children that end between samples",
         subreaper ? "`run`: wait4 as subreaper, exact" : "no subreaper: orphans are lost",
         "Linux 3.4 or later");
    other_accounts(d);
    descriptors(d);
}

/* --- the machine ------------------------------------------------------------------------------ */

static const struct {
    enum pr_read read;
    enum pr_metric_id sign; /* known where the source works */
    const char *what, *remedy;
    int kind; /* of its devices, -1 for none */
} machine_rows[] = {
    {READ_CPUS, METRIC_SYSTEM_CPU_IDLE, "CPU time of the machine, per core", NULL, DEVICE_CORE},
    {READ_LOAD, METRIC_SYSTEM_LOAD1, "load and processes", NULL, -1},
    {READ_MEMINFO, METRIC_SYSTEM_MEM_AVAILABLE, "memory and swap", NULL, -1},
    {READ_DISKS, METRIC_SYSTEM_DISK_READ, "disks", NULL, DEVICE_DISK},
    {READ_SPACE, METRIC_SYSTEM_DISK_SPACE_TOTAL, "file systems", NULL, DEVICE_FILESYSTEM},
    {READ_NETDEV, METRIC_SYSTEM_NET_RX, "network interfaces", NULL, DEVICE_INTERFACE},
    {READ_PSI, METRIC_SYSTEM_PSI_CPU, "pressure (PSI)", NULL, -1},
    {READ_CGROUP, METRIC_CPU_CGROUP, "CPU time of this cgroup", NULL, -1},
    {READ_CGROUP, METRIC_MEM_CGROUP, "memory of this cgroup",
     "a kernel or container that shows the memory controller of the group", -1},
};

static const char *source_name(enum pr_read read)
{
    for (int i = 0; i < MACHINE_COUNT; i++)
        if (pr_machine_sources[i]->gives & read)
            return pr_machine_sources[i]->name;
    return "";
}

/* "vda (10 others are not counted: ...)" */
static void name_devices(const struct doctor *d, int kind, struct pr_buf *out)
{
    size_t counted = 0, others = 0;
    for (size_t i = 0; i < d->machine.devices.count; i++) {
        const struct pr_device_state *v = &d->machine.devices.items[i];
        if ((int)v->out.kind != kind || !v->present)
            continue;
        others += !v->out.counted;
        if (!v->out.counted || kind == DEVICE_CORE)
            continue;
        if (counted++ < 6)
            pr_buf_printf(out, "%s%s", counted > 1 ? ", " : ": ", v->out.name);
    }
    if (counted > 6)
        pr_buf_printf(out, " and %zu more", counted - 6);
    if (others)
        pr_buf_printf(out, "; %zu that pass on to others or carry nothing are not counted", others);
}

/* Where its account is, in which version. */
static void name_group(const struct doctor *d, enum pr_metric_id sign, struct pr_buf *out)
{
    const char *const controllers[] = {sign == METRIC_MEM_CGROUP ? "memory" : "cpuacct", ""};
    char dir[CGROUP_DIR];
    for (int i = 0; i < 2; i++)
        if (pr_cgroup_dir(&d->host, d->machine.of, controllers[i], dir, sizeof dir)) {
            pr_buf_printf(out, " version %d: /%s", i + 1, dir);
            return;
        }
}

static void machine_line(const struct doctor *d, size_t row)
{
    struct pr_buf how = {0};
    const char *reason = pr_machine_reason(&d->machine, machine_rows[row].sign);
    bool known = !isnan(d->machine.value[machine_rows[row].sign]);
    if (known) {
        pr_buf_str(&how, source_name(machine_rows[row].read));
        if (machine_rows[row].kind >= 0)
            name_devices(d, machine_rows[row].kind, &how);
        if (machine_rows[row].read == READ_CGROUP)
            name_group(d, machine_rows[row].sign, &how);
    } else {
        pr_buf_str(&how, reason ? reason : "the kernel does not tell");
    }
    line(d, known ? YES : NO, machine_rows[row].what, pr_buf_text(&how), machine_rows[row].remedy);
    pr_buf_done(&how);
}

static void energy(struct doctor *d)
{
    struct pr_energy e;
    char how[96];
    pr_energy_open(&e, &d->host);
    snprintf(how, sizeof how, "%d powercap package counters", e.zones);
    line(d, e.zones ? YES : NO, "energy of the CPUs", e.zones ? how : e.reason,
         strstr(e.reason, "readable") ? "root: the kernel shows these counters to nobody else"
                                      : "a machine with RAPL; virtual machines have none");
    pr_energy_close(&e);
}

static void network(struct doctor *d)
{
    struct pr_net *n;
    if (pr_net_open(&n, &d->host, false) == -ENOMEM)
        return;
    const char *reason = pr_net_reason(n);
    bool closing = pr_net_hears_closing(n);
    line(d,
         reason    ? NO
         : closing ? YES
                   : PART,
         "network bytes of a job",
         reason    ? reason
         : closing ? "TCP, by socket: sock_diag; UDP has no counters"
                   : "TCP, by socket; the kernel does not tell of those that close",
         reason ? "a kernel with CONFIG_INET_DIAG" : "Linux 4.3 or later");
    pr_net_close(n, true);
}

static void gpus(struct doctor *d)
{
    pr_gpu_check(&d->gpus, &d->host);
    line(d, d->gpus.round ? YES : NO, "GPUs", d->gpus.found,
         "a driver that is loaded; in a container its device files and library, too");
}

static void gpu_line(void *of, bool all, bool some, const char *what, const char *how)
{
    line(of, all ? YES : some ? PART : NO, what, how, NULL);
}

static void machine(struct doctor *d)
{
    heading(d, "the machine");
    for (size_t i = 0; i < sizeof machine_rows / sizeof *machine_rows; i++)
        machine_line(d, i);
    energy(d);
    gpus(d);
    network(d);
    if (d->gpus.round)
        heading(d, "GPUs");
    pr_gpu_check_lines(&d->gpus, gpu_line, d);
    pr_gpu_check_done(&d->gpus);
}

/* --- where we are ----------------------------------------------------------------------------- */

static const char *container(const struct doctor *d)
{
    static const char *const marks[][2] = {{".dockerenv", "Docker"},
                                           {"run/.containerenv", "Podman"},
                                           {"run/systemd/container", "systemd-nspawn or LXC"},
                                           {"var/run/secrets/kubernetes.io", "Kubernetes"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (faccessat(d->host.root, marks[i][0], F_OK, 0) == 0)
            return marks[i][1];
    return NULL;
}

static void limit(struct pr_buf *out, const struct pr_limits *limits, enum pr_limit which,
                  enum pr_unit unit)
{
    if (isnan(limits->total[which])) {
        pr_buf_printf(out, "an unknown number of %s", pr_units_name(unit));
        return;
    }
    pr_units_human(out, limits->total[which], unit);
    pr_buf_printf(out, " (%s)", limits->source[which]);
}

static void where(struct doctor *d)
{
    struct utsname u = {0};
    struct pr_limits limits;
    struct pr_buf text = {0};
    const struct passwd *user = getpwuid(geteuid());
    const char *in = container(d);
    uname(&u);
    pr_limits_read(&d->host, d->host.foreign ? 0 : getpid(), &limits);
    pr_buf_printf(&text, "proctor %s on %s, %s %s %s; user %s (%d)%s%s", proctor_version(),
                  u.nodename, u.sysname, u.release, u.machine, user ? user->pw_name : "?",
                  (int)geteuid(), in ? "; signs of a container: " : "", in ? in : "");
    pr_buf_str(&text, "\nwhat a job may use: ");
    limit(&text, &limits, LIMIT_CPU, UNIT_CORES);
    pr_buf_str(&text, ", ");
    limit(&text, &limits, LIMIT_MEMORY, UNIT_BYTES);
    puts(pr_buf_text(&text));
    pr_buf_done(&text);
}

static void examine(struct doctor *d)
{
    struct pr_stat_line who;
    where(d);
    if (strcmp(d->config.root, "/") == 0 && !stat_of(d, getpid(), &who)) {
        heading(d, "processes");
        line(d, NO, "anything of them", "/proc has no processes: is it mounted?",
             "mount -t proc proc /proc, or name another one with --root");
    } else {
        own_processes(d);
        others_processes(d);
    }
    account(d);
    machine(d);
}

static int prepare(struct doctor *d, struct proctor_error *err)
{
    int r = pr_host_open(&d->host, d->config.root, err);
    if (r < 0)
        return r;
    char *text = malloc(SESSION_TEXT);
    if (!text)
        return pr_error(err, ENOMEM, "out of memory");
    d->tick = (struct pr_tick){&d->host, pr_clock_boot(), text, SESSION_TEXT};
    d->color = pr_wants_color(&d->config, STDOUT_FILENO);
    d->machine.of = d->host.foreign ? 0 : getpid();
    pr_machine_read(&d->machine, &d->tick);
    return 0;
}

int pr_main_doctor(int argc, char **argv)
{
    struct doctor d = {.host = {.root = -1, .proc = -1}};
    struct proctor_error err;
    int status;
    if (!pr_cli_begin("doctor", argc, argv, &d.config, &status)) {
        pr_config_done(&d.config);
        return status;
    }
    pr_machine_init(&d.machine, &d.host, ~0u);
    int r = prepare(&d, &err);
    if (r < 0)
        pr_complain("doctor: %s", err.message);
    else
        examine(&d);
    pr_machine_done(&d.machine, true);
    pr_host_close(&d.host);
    free(d.tick.text);
    pr_config_done(&d.config);
    return r < 0 ? EXIT_USAGE : 0;
}
