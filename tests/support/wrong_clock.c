/* Preloaded into a process, lets its wall clock be CLOCK_AHEAD_SECONDS ahead, and nothing else.

   Debian 12's libfaketime ends `time.sleep` with EINVAL and keeps PostgreSQL's timeouts from coming
   if the monotonic clock stays right, and leaves shared memory behind. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static int (*right_clock)(clockid_t, struct timespec *);
static time_t ahead;

__attribute__((constructor)) static void begin(void) {
  const char *seconds = getenv("CLOCK_AHEAD_SECONDS");
  ahead = seconds ? atol(seconds) : 0;
  right_clock = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  /* Other libraries' constructors may come first. */
  if (!right_clock) begin();
  int result = right_clock(clock, now);
  if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME_COARSE, &found);
  if (now) *now = found.tv_sec;
  return found.tv_sec;
}
