/* Stands between a process and its files: kills it at a chosen change of the disk, or lets the
 * disk be full from there on. Loaded with LD_PRELOAD, so that SQLite's and Arrow's writes count
 * like Python's. A change is any call below, on a path within FAULT_ROOT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_int changes;
static int kill_at, full_from, trace = -1;
static long clock_shift;

/* Set by the process under test, after a fork: from then on changes are counted. */
void fault_arm(int kill_at_, int full_from_, int trace_) {
    atomic_store(&changes, 0);
    kill_at = kill_at_, full_from = full_from_, trace = trace_;
}
int fault_changes(void) { return atomic_load(&changes); }
void fault_clock(long seconds) { clock_shift = seconds; }

static int inside(const char *path) {
    const char *root = getenv("FAULT_ROOT");
    char whole[4096];
    if (trace < 0 || root == NULL || path == NULL) return 0;
    if (path[0] != '/') {
        if (getcwd(whole, sizeof whole) == NULL) return 0;
        strncat(whole, "/", sizeof whole - strlen(whole) - 1);
        strncat(whole, path, sizeof whole - strlen(whole) - 1);
        path = whole;
    }
    return strncmp(path, root, strlen(root)) == 0;
}

/* Counts a change; 1 if it is to fail for want of space. */
static int change(const char *what, const char *path, int takes_space) {
    int now, saved = errno;
    if (!inside(path)) return 0;
    now = atomic_fetch_add(&changes, 1) + 1;
    dprintf(trace, "%s %s\n", what, path);
    if (now == kill_at) kill(getpid(), SIGKILL);
    errno = saved;
    if (!takes_space || !full_from || now < full_from) return 0;
    errno = ENOSPC;
    return 1;
}

static int change_fd(const char *what, int fd, int takes_space) {
    char link[64], path[4096];
    ssize_t length;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length < 0) return 0;
    path[length] = 0;
    return change(what, path, takes_space);
}

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

#define WRITES(name, declared, given)                                          \
    ssize_t name declared {                                                    \
        if (change_fd("write", fd, 1)) return -1;                              \
        return REAL(name) given;                                               \
    }
WRITES(write, (int fd, const void *data, size_t n), (fd, data, n))
WRITES(pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
WRITES(pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at))
WRITES(writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))

#define CHANGES(name, what, space, declared, given)                            \
    int name declared {                                                        \
        if (change_fd(what, fd, space)) return -1;                             \
        return REAL(name) given;                                               \
    }
CHANGES(fsync, "fsync", 0, (int fd), (fd))
CHANGES(fdatasync, "fsync", 0, (int fd), (fd))
CHANGES(ftruncate, "truncate", 0, (int fd, off_t n), (fd, n))
CHANGES(ftruncate64, "truncate", 0, (int fd, off64_t n), (fd, n))

#define NAMES(name, what, space, path, declared, given)                        \
    int name declared {                                                        \
        if (change(what, path, space)) return -1;                              \
        return REAL(name) given;                                               \
    }
NAMES(rename, "rename", 0, to, (const char *from, const char *to), (from, to))
NAMES(link, "link", 1, to, (const char *from, const char *to), (from, to))
NAMES(unlink, "unlink", 0, path, (const char *path), (path))
NAMES(mkdir, "mkdir", 1, path, (const char *path, mode_t mode), (path, mode))

#define OPENS(name, declared, given)                                           \
    int name declared {                                                        \
        va_list more;                                                          \
        mode_t mode;                                                           \
        va_start(more, flags);                                                 \
        mode = va_arg(more, mode_t);                                           \
        va_end(more);                                                          \
        if (flags & (O_CREAT | O_TRUNC) && change("open", path, 1)) return -1; \
        return REAL(name) given;                                               \
    }
OPENS(open, (const char *path, int flags, ...), (path, flags, mode))
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode))
OPENS(openat, (int fd, const char *path, int flags, ...), (fd, path, flags, mode))
OPENS(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode))

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = REAL(clock_gettime)(clock, at);
    if (!failed && clock == CLOCK_REALTIME) at->tv_sec += clock_shift;
    return failed;
}
