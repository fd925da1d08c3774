/*
 * Preloaded into a process: counts what it writes below KILL_ROOT, one call of the operating system after the other, and
 * kills it with signal 9 at call KILL_AT: before it, or after half of its bytes. Without KILL_AT it only counts, and
 * leaves the number in KILL_COUNT.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long seen;

static int is_below(const char *path) {
  const char *root = getenv("KILL_ROOT");
  return root != NULL && path != NULL && strncmp(path, root, strlen(root)) == 0;
}

static int is_watched(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_below(path);
}

/* 0: go on. 1: this is the call at which only half arrives. Does not return where the process is to die before it. */
static int at_point(void) {
  long now = __sync_add_and_fetch(&seen, 1);
  const char *wanted = getenv("KILL_AT");
  if (wanted == NULL || atol(wanted) != now) return 0;
  const char *how = getenv("KILL_HOW");
  if (how != NULL && strcmp(how, "torn") == 0) return 1;
  kill(getpid(), SIGKILL);
  pause();
  return 0;
}

static void die(void) {
  kill(getpid(), SIGKILL);
  pause();
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  if (!is_watched(fd) || !at_point()) return real(fd, data, size);
  real(fd, data, size / 2);
  die();
  return -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  REAL(pwrite);
  if (!is_watched(fd) || !at_point()) return real(fd, data, size, offset);
  real(fd, data, size / 2, offset);
  die();
  return -1;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  REAL(pwrite64);
  if (!is_watched(fd) || !at_point()) return real(fd, data, size, offset);
  real(fd, data, size / 2, offset);
  die();
  return -1;
}

#define ON_DESCRIPTOR(name, type, arguments, call) \
  type name arguments { \
    REAL(name); \
    if (is_watched(fd) && at_point()) die(); \
    return real call; \
  }

ON_DESCRIPTOR(writev, ssize_t, (int fd, const struct iovec *parts, int count), (fd, parts, count))
ON_DESCRIPTOR(ftruncate, int, (int fd, off_t size), (fd, size))
ON_DESCRIPTOR(ftruncate64, int, (int fd, off64_t size), (fd, size))
ON_DESCRIPTOR(fsync, int, (int fd), (fd))
ON_DESCRIPTOR(fdatasync, int, (int fd), (fd))

#define ON_PATH(name, type, arguments, call) \
  type name arguments { \
    REAL(name); \
    if (is_below(path) && at_point()) die(); \
    return real call; \
  }

ON_PATH(rename, int, (const char *path, const char *to), (path, to))
ON_PATH(unlink, int, (const char *path), (path))

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("KILL_COUNT");
  if (path == NULL) return;
  FILE *file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", seen);
  fclose(file);
}
