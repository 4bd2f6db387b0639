/* Preloaded into fwdlab by tests/surroundings.rs: lets the wall clock jump.
 *
 * CLOCK_STEP_S=N: how far, in seconds, backwards where it is negative.
 * CLOCK_STEP_AFTER=N: so many readings of the clock are right.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static atomic_long readings;
static long step_s, after;

__attribute__((constructor)) static void start(void)
{
	const char *step = getenv("CLOCK_STEP_S"), *number = getenv("CLOCK_STEP_AFTER");

	step_s = step ? atol(step) : 0;
	after = number ? atol(number) : 0;
	/* The commands that fwdlab starts know the right time. */
	unsetenv("LD_PRELOAD");
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*real)(clockid_t, struct timespec *);
	int result;

	if (!real)
		real = dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, time);
	if (!result && clock == CLOCK_REALTIME && atomic_fetch_add(&readings, 1) >= after)
		time->tv_sec += step_s;
	return result;
}
