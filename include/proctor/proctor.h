/* SPDX-License-Identifier: Apache-2.0 */
/* proctor: watch a job, keep an exact account of what it used.
 *
 *     proctor_monitor_new(&m, &err); proctor_monitor_watch_pid(m, getpid(), 0, &err);
 *     proctor_monitor_set(m, "interval", "100ms", &err); proctor_monitor_start(m, &err);
 *     ... proctor_monitor_stop(m, &err); proctor_monitor_total(m, "cpu.time", &seconds); ...
 *
 * Functions return 0 or -errno. Those that a user can make fail take an error last, which may be
 * NULL. Nothing here prints, exits, or installs a signal handler. A monitor may be used by one
 * thread at a time unless a function says otherwise. In a forked child a handle is dead: calls
 * give -ECHILD, and freeing it frees memory and nothing else: no file is touched, no sink called.
 */
#ifndef PROCTOR_PROCTOR_H
#define PROCTOR_PROCTOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROCTOR_API __attribute__((visibility("default")))

struct proctor_error {
    int code; /* errno */
    char message[256];
};
struct proctor_monitor;
struct proctor_snapshot;

/* Flags of proctor_monitor_watch_pid. */
#define PROCTOR_NO_CHILDREN 1u /* the process alone, own times without reaped children */

PROCTOR_API const char *proctor_version(void);

/* The catalogue: all metrics by number, from 0, in the order of this version; NULL where there is
 * no such number. Unit, kind, scope and help are the words of `proctor metrics`. */
PROCTOR_API size_t proctor_metrics(void);
PROCTOR_API const char *proctor_metric_key(size_t i);
PROCTOR_API const char *proctor_metric_unit(size_t i);
PROCTOR_API const char *proctor_metric_kind(size_t i);
PROCTOR_API const char *proctor_metric_scope(size_t i);
PROCTOR_API const char *proctor_metric_help(size_t i);

/* A monitor that watches nothing yet. The caller frees it. */
PROCTOR_API int proctor_monitor_new(struct proctor_monitor **ret_monitor,
                                    struct proctor_error *err);
/* Stops it where it runs, then frees it. NULL is allowed. */
PROCTOR_API void proctor_monitor_free(struct proctor_monitor *m);

/* Watch this process and its descendants. -ESRCH where there is none. */
PROCTOR_API int proctor_monitor_watch_pid(struct proctor_monitor *m, pid_t pid, unsigned flags,
                                          struct proctor_error *err);
/* Or one of these: a process group; a cgroup, by its path in /proc/PID/cgroup or its directory;
 * processes by name ("NAME=REGEX" or "REGEX", several by several calls); the whole machine. */
PROCTOR_API int proctor_monitor_watch_group(struct proctor_monitor *m, pid_t pgid,
                                            struct proctor_error *err);
PROCTOR_API int proctor_monitor_watch_cgroup(struct proctor_monitor *m, const char *path,
                                             struct proctor_error *err);
PROCTOR_API int proctor_monitor_watch_match(struct proctor_monitor *m, const char *rule,
                                            struct proctor_error *err);
PROCTOR_API int proctor_monitor_watch_system(struct proctor_monitor *m, struct proctor_error *err);
/* Any option of `proctor attach` by its long name without dashes: "interval", "csv", "output" (the
 * run file; there is none where it is not set)... Flags take "true". Before start or the first
 * collect. */
PROCTOR_API int proctor_monitor_set(struct proctor_monitor *m, const char *option,
                                    const char *value, struct proctor_error *err);

/* Called with each snapshot, from the thread that samples; the snapshot is valid during the call.
 * The callback must not call into the monitor: calls give -EDEADLK there. Before start. */
typedef void proctor_sample_fn(const struct proctor_snapshot *snapshot, void *data);
PROCTOR_API int proctor_monitor_on_sample(struct proctor_monitor *m, proctor_sample_fn *fn,
                                          void *data);

/* A sink of one's own: it gets what a file would, in the same order, from the thread that writes.
 * That is one thread for all sinks of a monitor, it is none of the caller's, has all signals
 * blocked and a small stack (at least 128 KiB). A sink may take its time: samples go on being
 * taken. Up to 64 of them wait for it, fewer where there are many processes; what comes then is
 * left out and counted in an event. Texts and snapshots are valid during the call. Calls into the
 * monitor give -EDEADLK there. What is NULL is not called. The CPU time of a sink is the monitor's,
 * not that of the job. */
struct proctor_sink {
    size_t size;    /* sizeof(struct proctor_sink) */
    unsigned wants; /* what snapshots are to have besides the values of job and machine: */
#define PROCTOR_WANT_PROCESSES 1u
#define PROCTOR_WANT_DEVICES   2u
    void (*sample)(const struct proctor_snapshot *snapshot, void *data);
    void (*line)(const char *json, void *data);    /* "type": "phase" that has ended, or "event" */
    void (*summary)(const char *json, void *data); /* at the end of the record */
    void (*close)(void *data);                     /* the last call, whatever happens; once */
};
/* Before start; the struct is copied. Stop waits for sinks as long as "flush-timeout" says, then
 * leaves one that hangs, with the monitor's memory. A monitor that never began closes its sinks
 * when it is freed, in the caller's thread. */
PROCTOR_API int proctor_monitor_add_sink(struct proctor_monitor *m, const struct proctor_sink *sink,
                                         void *data, struct proctor_error *err);

/* Samples from a thread of its own until stop. */
PROCTOR_API int proctor_monitor_start(struct proctor_monitor *m, struct proctor_error *err);
/* Takes one sample now, in the calling thread, without a thread of its own; not while started. */
PROCTOR_API int proctor_monitor_collect(struct proctor_monitor *m, struct proctor_error *err);
/* What collect has taken last, until the next call; NULL where nothing was, or a thread samples. */
PROCTOR_API const struct proctor_snapshot *proctor_monitor_latest(struct proctor_monitor *m);
/* Takes the last sample and ends the record. With "mlflow" or "otlp" it then sends what is left,
 * for up to "flush-timeout". A second call does nothing. */
PROCTOR_API int proctor_monitor_stop(struct proctor_monitor *m, struct proctor_error *err);

/* A phase begins; it ends, and those inside it: the summary has an account of each. Phases nest, a
 * name may come again, and what is open at the end ends with the record. Names have 1 to 200 bytes
 * without control characters. A sample is taken at both ends, before the call returns. After start
 * any thread may call these three until stop does; before, they begin the record, as collect does.
 * -EINVAL no name, -ENOENT no such phase is open, -EMFILE too many are, -EBUSY the record has
 * ended, -EDEADLK called from a callback. */
PROCTOR_API int proctor_monitor_phase_begin(struct proctor_monitor *m, const char *name,
                                            struct proctor_error *err);
PROCTOR_API int proctor_monitor_phase_end(struct proctor_monitor *m, const char *name,
                                          struct proctor_error *err);
/* Something happened just now. json: an object with what is to be said of it, below 4 KiB, or NULL.
 * -EINVAL also where it is none. */
PROCTOR_API int proctor_monitor_mark(struct proctor_monitor *m, const char *name, const char *json,
                                     struct proctor_error *err);

/* After stop: a counter's total or a gauge's peak. -ENOENT unknown key, -ENODATA absent. */
PROCTOR_API int proctor_monitor_total(struct proctor_monitor *m, const char *key, double *ret);
PROCTOR_API int proctor_monitor_peak(struct proctor_monitor *m, const char *key, double *ret);
/* After stop: the summary as JSON, owned by the monitor; NULL where there is none. */
PROCTOR_API const char *proctor_monitor_summary_json(struct proctor_monitor *m);

/* The value of the job or the machine by key in this snapshot. -ENOENT unknown key, -ENODATA
 * absent: never 0. */
PROCTOR_API int proctor_snapshot_value(const struct proctor_snapshot *s, const char *key,
                                       double *ret);
/* All of them at once, by the numbers of the catalogue, NaN for absent: the first `count` into ret.
 * How many there are. */
PROCTOR_API size_t proctor_snapshot_values(const struct proctor_snapshot *s, double *ret,
                                           size_t count);
/* What is to be said about the value, as "lower bound"; NULL where nothing is. */
PROCTOR_API const char *proctor_snapshot_mark(const struct proctor_snapshot *s, const char *key);
/* That of all of them at once, as the values above: the first `count` into ret, NULL where nothing
 * is to be said. The words are constant. How many there are. */
PROCTOR_API size_t proctor_snapshot_marks(const struct proctor_snapshot *s, const char **ret,
                                          size_t count);
/* When it was taken: since the start, since the one before, and the time of day. */
PROCTOR_API double proctor_snapshot_elapsed(const struct proctor_snapshot *s);  /* seconds */
PROCTOR_API double proctor_snapshot_interval(const struct proctor_snapshot *s); /* seconds */
PROCTOR_API int64_t proctor_snapshot_time(const struct proctor_snapshot *s);    /* Unix ns */
/* Each process of the job, from 0: where a sink wants them, or the option "processes" is set.
 * -EINVAL no such process, -ENOENT no such key, or none of a process. */
PROCTOR_API size_t proctor_snapshot_processes(const struct proctor_snapshot *s);
PROCTOR_API pid_t proctor_snapshot_process_pid(const struct proctor_snapshot *s, size_t i);
PROCTOR_API const char *proctor_snapshot_process_command(const struct proctor_snapshot *s,
                                                         size_t i);
PROCTOR_API int proctor_snapshot_process_value(const struct proctor_snapshot *s, size_t i,
                                               const char *key, double *ret);
/* All values of a process; those beyond what comes back are of no process. 0: no such process. */
PROCTOR_API size_t proctor_snapshot_process_values(const struct proctor_snapshot *s, size_t i,
                                                   double *ret, size_t count);
/* Each device, where a sink wants them: its kind ("core", "disk", "filesystem", "interface",
 * "gpu"), its name, and values as above. Not in each snapshot: they are read less often. */
PROCTOR_API size_t proctor_snapshot_devices(const struct proctor_snapshot *s);
PROCTOR_API const char *proctor_snapshot_device_kind(const struct proctor_snapshot *s, size_t i);
PROCTOR_API const char *proctor_snapshot_device_name(const struct proctor_snapshot *s, size_t i);
PROCTOR_API int proctor_snapshot_device_value(const struct proctor_snapshot *s, size_t i,
                                              const char *key, double *ret);
/* All values of a device, NaN also for those that it cannot have. 0: no such device. */
PROCTOR_API size_t proctor_snapshot_device_values(const struct proctor_snapshot *s, size_t i,
                                                  double *ret, size_t count);

/* --- recorded runs ---
 *
 * A run that was recorded, or is being: a file, an id or its unique beginning, or "last". A handle
 * may be used by one thread at a time. In a forked child it is dead, as a monitor is: calls give
 * -ECHILD (or NULL), and freeing it touches neither SQLite nor the file. -ENOENT no such run,
 * -EEXIST several begin so, -EMEDIUMTYPE not a run file, -EPROTO written by a newer version,
 * -EUCLEAN damaged, -ENOSYS there is no SQLite library. The caller frees. */
struct proctor_run;
PROCTOR_API int proctor_run_open(struct proctor_run **ret_run, const char *run,
                                 struct proctor_error *err);
PROCTOR_API void proctor_run_free(struct proctor_run *run); /* NULL is allowed */
PROCTOR_API const char *proctor_run_id(struct proctor_run *run);
PROCTOR_API const char *proctor_run_path(struct proctor_run *run);
/* The summary as JSON, owned by the run; of one without an end it is rebuilt from its samples, as
 * they are at the first call. NULL where it cannot be had. */
PROCTOR_API const char *proctor_run_summary_json(struct proctor_run *run,
                                                 struct proctor_error *err);
/* From that: a counter's total or a gauge's peak. -ENOENT unknown key, -ENODATA absent. */
PROCTOR_API int proctor_run_total(struct proctor_run *run, const char *key, double *ret);
PROCTOR_API int proctor_run_peak(struct proctor_run *run, const char *key, double *ret);
/* Each sample once more, with its processes and devices, in the calling thread. The callback must
 * not call into the run: calls give -EDEADLK there. */
PROCTOR_API int proctor_run_samples(struct proctor_run *run, proctor_sample_fn *fn, void *data,
                                    struct proctor_error *err);
/* Writes a report; the ending of path says which: .html, .md, .txt, .svg, .png or .json. What is
 * there is replaced. -EINVAL no such ending, -ENOTSUP this build has no page, -ENOSYS there is no
 * library for PNG. */
PROCTOR_API int proctor_run_report(struct proctor_run *run, const char *path,
                                   struct proctor_error *err);
/* Each run of the user's folder, those that began last first, as an object of JSON, as `proctor ls
 * --json` has them; texts are valid during the call. */
PROCTOR_API int proctor_runs_list(void (*fn)(const char *json, void *data), void *data,
                                  struct proctor_error *err);

#ifdef __cplusplus
}
#endif
#endif
