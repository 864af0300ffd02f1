/* Counts the calls of a process that change files, and kills it right before a chosen one.
 *
 * Preloaded into a driver and its JVM. TORTURE_CALLS names a file per program, <it>.java and
 * <it>.python, which holds int32 values: the armed call (0: none), how many of it are left
 * until death, and a counter per call. See calls.py, which writes and reads it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum call { RENAME = 1, LINK, UNLINK, MKDIR, RMDIR, CHMOD, CREATE, TRUNCATE, WRITE, SYNC, CALLS };

struct control {
    atomic_int armed, left, counts[CALLS];
};

static struct control *control;

__attribute__((constructor)) static void open_control(void) {
    const char *path = getenv("TORTURE_CALLS");
    char program[4096], file[4200];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (path == NULL || length < 0) return;
    program[length] = 0;
    const char *name = strrchr(program, '/') + 1;
    if (strcmp(name, "java") != 0 && strncmp(name, "python", 6) != 0) return;
    snprintf(file, sizeof file, "%s.%s", path, *name == 'j' ? "java" : "python");
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int handle = real(file, O_RDWR);
    if (handle < 0) return;
    void *shared = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
    if (shared != MAP_FAILED) control = shared;
}

static void pass(enum call call) {
    if (control == NULL) return;
    atomic_fetch_add(&control->counts[call], 1);
    if (atomic_load(&control->armed) == (int)call && atomic_fetch_sub(&control->left, 1) == 1)
        kill(getpid(), SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define HOOK(call, name, parameters, arguments) \
    int name parameters { pass(call); return REAL(name) arguments; }

HOOK(RENAME, rename, (const char *a, const char *b), (a, b))
HOOK(RENAME, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b))
HOOK(RENAME, renameat2, (int d, const char *a, int e, const char *b, unsigned f), (d, a, e, b, f))
HOOK(LINK, link, (const char *a, const char *b), (a, b))
HOOK(LINK, linkat, (int d, const char *a, int e, const char *b, int f), (d, a, e, b, f))
HOOK(UNLINK, unlink, (const char *a), (a))
HOOK(UNLINK, unlinkat, (int d, const char *a, int f), (d, a, f))
HOOK(UNLINK, remove, (const char *a), (a))
HOOK(MKDIR, mkdir, (const char *a, mode_t m), (a, m))
HOOK(MKDIR, mkdirat, (int d, const char *a, mode_t m), (d, a, m))
HOOK(RMDIR, rmdir, (const char *a), (a))
HOOK(CHMOD, chmod, (const char *a, mode_t m), (a, m))
HOOK(CHMOD, fchmodat, (int d, const char *a, mode_t m, int f), (d, a, m, f))
HOOK(TRUNCATE, ftruncate64, (int d, off64_t n), (d, n))
HOOK(SYNC, fsync, (int d), (d))
HOOK(SYNC, fdatasync, (int d), (d))

#define OPEN(name, parameters, arguments)                  \
    int name parameters {                                  \
        mode_t mode = 0;                                   \
        if (flags & O_CREAT) {                             \
            va_list more;                                  \
            va_start(more, flags);                         \
            mode = va_arg(more, mode_t);                   \
            va_end(more);                                  \
            pass(CREATE);                                  \
        }                                                  \
        return REAL(name) arguments;                       \
    }

OPEN(open, (const char *a, int flags, ...), (a, flags, mode))
OPEN(open64, (const char *a, int flags, ...), (a, flags, mode))
OPEN(openat, (int d, const char *a, int flags, ...), (d, a, flags, mode))
OPEN(openat64, (int d, const char *a, int flags, ...), (d, a, flags, mode))

static void pass_write(int handle) {
    struct stat about;
    if (control != NULL && fstat(handle, &about) == 0 && S_ISREG(about.st_mode)) pass(WRITE);
}

ssize_t write(int d, const void *b, size_t n) { pass_write(d); return REAL(write)(d, b, n); }
ssize_t pwrite64(int d, const void *b, size_t n, off64_t o) { pass_write(d); return REAL(pwrite64)(d, b, n, o); }
