/* Stands for ssh in tests (hosts/faults.rs): counts how often it is started, and lets some of the starts fail.
 *
 * SSH=PROGRAM: the real one.
 * OPERATIONS=FILE: a byte for each start is added there, 'x' where it fails and '.' where it does not.
 * FAULTS="HOW NTH TIMES ...": starts NTH to NTH + TIMES - 1, from 1, fail; HOW is "before", with nothing done, or
 *     "after", when it was done and nobody is told.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a start fails; NULL where it does not. */
static const char *fault_at(long number)
{
	static char how[8];
	const char *rest = getenv("FAULTS");
	long nth, times;
	int length;

	for (; rest && sscanf(rest, "%7s %ld %ld%n", how, &nth, &times, &length) == 3; rest += length)
		if (number >= nth && number < nth + times)
			return how;
	return NULL;
}

/* Counts this start, and tells how it fails. */
static const char *counted(void)
{
	int file = open(getenv("OPERATIONS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	const char *how;
	struct stat seen;

	/* Several may be started at a time. */
	if (file < 0 || flock(file, LOCK_EX) || fstat(file, &seen))
		abort();
	how = fault_at(seen.st_size + 1);
	if (write(file, how ? "x" : ".", 1) != 1)
		abort();
	close(file);
	return how;
}

static void run(char **arguments)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(getenv("SSH"), arguments);
		_exit(127);
	}
	waitpid(child, NULL, 0);
}

int main(int count, char **arguments)
{
	const char *how = counted();
	int is_connection = 0;

	if (!how) {
		execv(getenv("SSH"), arguments);
		return 127;
	}
	for (int i = 1; i < count; i++)
		is_connection |= !strcmp(arguments[i], "-N");
	/* What holds a connection has no end of its own. */
	if (!strcmp(how, "after") && !is_connection)
		run(arguments);
	fputs("Connection reset by peer\n", stderr);
	return 255;
}
