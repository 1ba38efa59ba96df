/* What a disk holds after a power cut: beside each file below POWER_CUT_FROM a copy below POWER_CUT_TO, which gets the
   bytes of the file when it is synced, and not before. Names count at once: only contents can be lost. Preloaded into a
   server, which must write with system calls (no mapped files, no asynchronous I/O of the kernel). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 4096
#define MOST_RANGES 512

struct range { off_t from, to; };
struct file { dev_t device; ino_t number; off_t end; int count; struct range ranges[MOST_RANGES]; };

static struct file *files[MOST_FILES];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* The copy's path in `to`; 0 where the file is not one of ours. */
static int copy_of(const char *path, char *to, size_t size) {
    const char *from = getenv("POWER_CUT_FROM"), *there = getenv("POWER_CUT_TO");
    if (!from || !there || strncmp(path, from, strlen(from))) return 0;
    snprintf(to, size, "%s%s", there, path + strlen(from));
    return 1;
}

static int path_of(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, size - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return 1;
}

static struct file *file_of(int fd) {
    char path[4096], to[4096];
    struct stat is, copy;
    if (!path_of(fd, path, sizeof path) || !copy_of(path, to, sizeof to)) return NULL;
    if (fstat(fd, &is) || !S_ISREG(is.st_mode)) return NULL;
    for (int n = 0; n < MOST_FILES; n++) {
        if (!files[n]) {
            files[n] = calloc(1, sizeof **files);
            files[n]->device = is.st_dev;
            files[n]->number = is.st_ino;
            files[n]->end = stat(to, &copy) ? 0 : copy.st_size;
            return files[n];
        }
        if (files[n]->device == is.st_dev && files[n]->number == is.st_ino) return files[n];
    }
    abort();
}

static void written(int fd, off_t from, ssize_t size) {
    if (size <= 0) return;
    int kept = errno;
    pthread_mutex_lock(&turn);
    struct file *file = file_of(fd);
    if (file) {
        if (from + size > file->end) file->end = from + size;
        struct range *last = file->count ? &file->ranges[file->count - 1] : NULL;
        if (last && from >= last->from && from <= last->to) {
            if (from + size > last->to) last->to = from + size;
        } else if (file->count < MOST_RANGES) {
            file->ranges[file->count++] = (struct range){from, from + size};
        } else { /* too many: one that has them all */
            struct range whole = {from, from + size};
            for (int n = 0; n < file->count; n++) {
                if (file->ranges[n].from < whole.from) whole.from = file->ranges[n].from;
                if (file->ranges[n].to > whole.to) whole.to = file->ranges[n].to;
            }
            file->ranges[0] = whole;
            file->count = 1;
        }
    }
    pthread_mutex_unlock(&turn);
    errno = kept;
}

static void synced(int fd) {
    char path[4096], to[4096];
    static char bytes[1 << 16];
    int kept = errno;
    pthread_mutex_lock(&turn);
    struct file *file = file_of(fd);
    if (file && path_of(fd, path, sizeof path) && copy_of(path, to, sizeof to)) {
        int own = REAL(open)(path, O_RDONLY), copy = REAL(open)(to, O_WRONLY | O_CREAT, 0600);
        struct stat is;
        if (own < 0 || copy < 0 || fstat(own, &is)) abort();
        if (is.st_size > file->end) { /* written in a way that is not seen here, as by stdio */
            file->ranges[0] = (struct range){0, is.st_size};
            file->count = 1;
        }
        for (int n = 0; n < file->count; n++)
            for (off_t at = file->ranges[n].from; at < file->ranges[n].to;) {
                size_t left = file->ranges[n].to - at;
                ssize_t got = pread(own, bytes, left < sizeof bytes ? left : sizeof bytes, at);
                if (got <= 0) break;
                if (REAL(pwrite)(copy, bytes, got, at) != got) abort();
                at += got;
            }
        if (ftruncate(copy, is.st_size)) abort();
        file->count = 0;
        file->end = is.st_size;
        close(own);
        close(copy);
    }
    pthread_mutex_unlock(&turn);
    errno = kept;
}

static off_t here(int fd) { return lseek(fd, 0, SEEK_CUR); }

ssize_t write(int fd, const void *bytes, size_t size) {
    ssize_t done = REAL(write)(fd, bytes, size);
    if (done > 0) written(fd, here(fd) - done, done);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    ssize_t done = REAL(writev)(fd, parts, count);
    if (done > 0) written(fd, here(fd) - done, done);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    ssize_t done = REAL(pwrite)(fd, bytes, size, at);
    written(fd, at, done);
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) { return pwrite(fd, bytes, size, at); }

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    ssize_t done = REAL(pwritev)(fd, parts, count, at);
    written(fd, at, done);
    return done;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return pwritev(fd, parts, count, at); }

int fsync(int fd) {
    int failed = REAL(fsync)(fd);
    if (!failed) synced(fd);
    return failed;
}

int fdatasync(int fd) {
    int failed = REAL(fdatasync)(fd);
    if (!failed) synced(fd);
    return failed;
}

int rename(const char *old, const char *new) {
    char was[4096], will[4096], path[4096];
    int failed = REAL(rename)(old, new);
    const char *full = realpath(new, path);
    if (failed || !full || !copy_of(full, will, sizeof will)) return failed;
    char from[4096];
    if (old[0] == '/') snprintf(from, sizeof from, "%s", old);
    else if (getcwd(from, sizeof from)) { strncat(from, "/", sizeof from - strlen(from) - 1); strncat(from, old, sizeof from - strlen(from) - 1); }
    if (copy_of(from, was, sizeof was)) REAL(rename)(was, will);
    return 0;
}

int rename64(const char *old, const char *new) { return rename(old, new); }

int mkdir(const char *path, mode_t mode) {
    char full[4096], to[4096];
    int failed = REAL(mkdir)(path, mode);
    if (!failed && realpath(path, full) && copy_of(full, to, sizeof to)) REAL(mkdir)(to, 0700);
    return failed;
}

int unlink(const char *path) {
    char full[4096], to[4096];
    int is_ours = realpath(path, full) && copy_of(full, to, sizeof to);
    int failed = REAL(unlink)(path);
    if (!failed && is_ours) REAL(unlink)(to);
    return failed;
}
