/* Preloaded into fwdlab by tests: lets the n-th effect of a run fail (faults.rs), or the load of its
 * n-th generator (surroundings.rs).
 *
 * An effect is a call that changes something outside the process: writing, syncing or renaming a
 * file, making or removing one, a netlink message, an eBPF call, starting a command. What goes to the
 * terminal does not count.
 *
 * FAIL_NTH=N: effect N fails, once; 0: none does.
 * FAIL_LOAD=N: the N-th generator that is started ends with an error after some hundred thousand frames.
 * SLOW_LOAD=N: the first call of the N-th generator takes longer than a generator may take until it is held.
 * FAIL_LOG=FILE: the number of effects, and which one failed, is written there at the end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Runs from which a call is the load of a block, and after which it fails. Probes are sent in fewer. */
#define LOAD_RUNS (1 << 12)
#define FRAMES_BEFORE_FAILURE 300000
#define SLOW_CALL_S 12

static atomic_long effects, loads;
/* A load is made by many calls of one thread. */
static __thread int is_counted;
static long nth, nth_load, nth_slow_load;
static const char *log_path;
static const char *failed = "none";
static pid_t process;

static void *next(const char *name)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	if (!symbol)
		abort();
	return symbol;
}

__attribute__((constructor)) static void start(void)
{
	const char *number = getenv("FAIL_NTH"), *load = getenv("FAIL_LOAD");
	const char *slow_load = getenv("SLOW_LOAD");

	log_path = getenv("FAIL_LOG");
	process = getpid();
	nth = number ? atol(number) : 0;
	nth_load = load ? atol(load) : 0;
	nth_slow_load = slow_load ? atol(slow_load) : 0;
	/* The commands that fwdlab starts are to work. */
	unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void end(void)
{
	if (!log_path || getpid() != process)
		return;
	int (*real_open)(const char *, int, ...) = next("open");
	ssize_t (*real_write)(int, const void *, size_t) = next("write");
	int file = real_open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char text[128];
	int length = snprintf(text, sizeof(text), "%ld %s\n", atomic_load(&effects), failed);

	if (file >= 0) {
		real_write(file, text, length);
		close(file);
	}
}

static int fails(const char *what)
{
	if (getpid() != process || atomic_fetch_add(&effects, 1) + 1 != nth)
		return 0;
	failed = what;
	return 1;
}

#define FAIL(what, code)           \
	do {                       \
		if (fails(what)) { \
			errno = code; \
			return -1; \
		}                  \
	} while (0)

ssize_t write(int file, const void *bytes, size_t size)
{
	ssize_t (*real)(int, const void *, size_t) = next("write");

	if (file > STDERR_FILENO)
		FAIL("write", ENOSPC);
	return real(file, bytes, size);
}

int fsync(int file)
{
	int (*real)(int) = next("fsync");

	FAIL("fsync", EIO);
	return real(file);
}

int fdatasync(int file)
{
	int (*real)(int) = next("fdatasync");

	FAIL("fdatasync", EIO);
	return real(file);
}

int ftruncate64(int file, off64_t size)
{
	int (*real)(int, off64_t) = next("ftruncate64");

	FAIL("ftruncate", EIO);
	return real(file, size);
}

int rename(const char *from, const char *to)
{
	int (*real)(const char *, const char *) = next("rename");

	FAIL("rename", ENOSPC);
	return real(from, to);
}

int mkdir(const char *path, mode_t mode)
{
	int (*real)(const char *, mode_t) = next("mkdir");

	FAIL("mkdir", ENOSPC);
	return real(path, mode);
}

int unlink(const char *path)
{
	int (*real)(const char *) = next("unlink");

	FAIL("unlink", EPERM);
	return real(path);
}

int open64(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = next("open64");
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (flags & O_CREAT)
		FAIL("open", ENOSPC);
	return real(path, flags, mode);
}

ssize_t send(int socket, const void *bytes, size_t size, int flags)
{
	ssize_t (*real)(int, const void *, size_t, int) = next("send");

	FAIL("send", ENOBUFS);
	return real(socket, bytes, size, flags);
}

ssize_t sendto(int socket, const void *bytes, size_t size, int flags,
	       const struct sockaddr *address, socklen_t length)
{
	ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) =
		next("sendto");

	FAIL("sendto", ENOBUFS);
	return real(socket, bytes, size, flags, address, length);
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = next("syscall");
	va_list arguments;
	long a[6];

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_bpf)
		FAIL("bpf", ENOMEM);
	if (number == SYS_bpf && a[0] == BPF_PROG_TEST_RUN) {
		union bpf_attr *attributes = (union bpf_attr *)a[1];

		if (attributes->test.repeat >= LOAD_RUNS && !is_counted++) {
			long load = atomic_fetch_add(&loads, 1) + 1;

			if (load == nth_load) {
				attributes->test.repeat = FRAMES_BEFORE_FAILURE;
				real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
				errno = ENOMEM;
				return -1;
			}
			if (load == nth_slow_load)
				sleep(SLOW_CALL_S);
		}
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
	int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
		    const posix_spawnattr_t *, char *const[], char *const[]) = next("posix_spawnp");

	/* Tells its error as its result. */
	if (fails("posix_spawn"))
		return EAGAIN;
	return real(pid, file, actions, attributes, argv, environment);
}
