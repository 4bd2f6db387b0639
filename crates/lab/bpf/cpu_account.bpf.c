// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Accounts for the time on watched CPUs that is not the load's: that of other programs, of kernel threads that do not
 * work for the load, of interrupts, and of timers, such as a profiler's; where the load never rests, that of nobody, too:
 * it was kept from running, as by the quota of a control group.
 *
 * Time is charged when it ends: at a switch of tasks, at the end of an interrupt or a timer. What a reader on a watched CPU sees of
 * that CPU is complete, as the switch to the reader was the last.
 *
 * What the kernel does with the frames of other devices after their interrupts is not charged: a program at every poll
 * would cost the load some percent.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* As much of the kernel's types as is read here; where each field is, the kernel's BTF says. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct irqaction {
	unsigned int flags;
	const char *name;
} __attribute__((preserve_access_index));

struct nsproxy {
	struct net *net_ns;
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int flags;
	int pid;
	struct task_struct *group_leader;
	struct nsproxy *nsproxy;
	char comm[16];
} __attribute__((preserve_access_index));

struct hrtimer {
	void *function;
} __attribute__((preserve_access_index));

/* From linux/sched.h: a thread of the kernel. */
#define PF_KTHREAD 0x00200000

/* From linux/interrupt.h: interrupts of timers, and of each CPU for itself, which the load has as well. */
#define IRQF_TIMER 0x00000200
#define IRQF_PERCPU 0x00000400

/* Who had a CPU. */
#define PROGRAM 0
#define KERNEL_THREAD 1
#define INTERRUPT 2
#define TIMER 3
#define IDLE 4

#define NAME_LENGTH 32

/* Written by the loader: this process, by its number in its own namespace of processes. */
volatile const __u64 PID_NAMESPACE_DEVICE = 0;
volatile const __u64 PID_NAMESPACE_INODE = 0;
volatile const __u32 PROCESS = 0;

/* Written by the loader: functions of timers that the load has as well, such as the tick. */
#define OWN_TIMERS_MAX 6
volatile const __u64 OWN_TIMERS[OWN_TIMERS_MAX] = {};

/* A CPU. */
struct cpu {
	/* When what runs began, or was charged last; 0 before the first switch. */
	__u64 since_ns;
	/* What others took so far. */
	__u64 taken_ns;
	/* What interrupts took since `since_ns`. */
	__u64 interrupts_ns;
	/* When the interrupt that is served began. */
	__u64 interrupt_since_ns;
	__u64 is_watched;
	/* When the timer that is served began, and its function. */
	__u64 timer_since_ns;
	__u64 timer_function;
	/* Whether the load never rests there, so that what is idle was taken from it. */
	__u64 is_never_idle;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

struct taker {
	__u32 cpu;
	__u32 kind;
	char name[NAME_LENGTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct taker);
	__type(value, __u64);
} takers SEC(".maps");

/* The network namespaces of the load; who lives in them works for it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} namespaces SEC(".maps");

static __always_inline struct cpu *watched_cpu(__u32 number)
{
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &number);

	return cpu && cpu->is_watched ? cpu : 0;
}

static __always_inline int is_of_load(__u32 namespace)
{
	__u32 first = 0, second = 1;
	__u32 *one = bpf_map_lookup_elem(&namespaces, &first);
	__u32 *other = bpf_map_lookup_elem(&namespaces, &second);

	return namespace && ((one && *one == namespace) || (other && *other == namespace));
}

/* What does not find room is in the sum all the same. */
static __always_inline void charge(struct cpu *cpu, struct taker *taker, __u64 time_ns)
{
	__u64 *sum = bpf_map_lookup_elem(&takers, taker);

	cpu->taken_ns += time_ns;
	if (sum)
		*sum += time_ns;
	else
		bpf_map_update_elem(&takers, taker, &time_ns, BPF_ANY);
}

static __always_inline int begins_with(const char *name, const char *start, int length)
{
	for (int i = 0; i < length; i++)
		if (name[i] != start[i])
			return 0;
	return 1;
}

/* Threads of the kernel that serve the load's frames where the load itself does not. */
static __always_inline int serves_frames(const char *name)
{
	return begins_with(name, "ksoftirqd/", 10) || begins_with(name, "napi/", 5);
}

static __always_inline int is_this_process(void)
{
	struct bpf_pidns_info info;

	return !bpf_get_ns_current_pid_tgid(PID_NAMESPACE_DEVICE, PID_NAMESPACE_INODE, &info, sizeof(info)) &&
	       info.tgid == PROCESS;
}

SEC("tp_btf/sched_switch")
int charge_task(__u64 *arguments)
{
	struct task_struct *task = (void *)arguments[1];
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = watched_cpu(number);

	if (!cpu)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	__u64 time_ns = now - cpu->since_ns;
	int is_first = !cpu->since_ns;

	time_ns = time_ns > cpu->interrupts_ns ? time_ns - cpu->interrupts_ns : 0;
	cpu->since_ns = now;
	cpu->interrupts_ns = 0;
	if (is_first || (!task->pid && !cpu->is_never_idle))
		return 0;
	struct taker taker = { .cpu = number, .kind = PROGRAM };

	if (!task->pid) {
		taker.kind = IDLE;
	} else if (task->flags & PF_KTHREAD) {
		taker.kind = KERNEL_THREAD;
		bpf_probe_read_kernel_str(taker.name, sizeof(task->comm), task->comm);
		if (serves_frames(taker.name))
			return 0;
	} else {
		if (is_this_process() || is_of_load(task->nsproxy->net_ns->ns.inum))
			return 0;
		bpf_probe_read_kernel_str(taker.name, sizeof(task->comm), task->group_leader->comm);
	}
	charge(cpu, &taker, time_ns);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int begin_interrupt(__u64 *arguments)
{
	struct cpu *cpu = watched_cpu(bpf_get_smp_processor_id());

	if (cpu)
		cpu->interrupt_since_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int charge_interrupt(__u64 *arguments)
{
	struct irqaction *action = (void *)arguments[1];
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = watched_cpu(number);

	if (!cpu || !cpu->interrupt_since_ns)
		return 0;
	struct taker taker = { .cpu = number, .kind = INTERRUPT };
	__u64 time_ns = bpf_ktime_get_ns() - cpu->interrupt_since_ns;

	cpu->interrupt_since_ns = 0;
	if (action->flags & (IRQF_TIMER | IRQF_PERCPU))
		return 0;
	cpu->interrupts_ns += time_ns;
	bpf_probe_read_kernel_str(taker.name, sizeof(taker.name), action->name);
	charge(cpu, &taker, time_ns);
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int begin_timer(__u64 *arguments)
{
	struct hrtimer *timer = (void *)arguments[0];
	struct cpu *cpu = watched_cpu(bpf_get_smp_processor_id());

	if (!cpu)
		return 0;
	cpu->timer_function = (__u64)timer->function;
	cpu->timer_since_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int charge_timer(__u64 *arguments)
{
	__u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = watched_cpu(number);

	if (!cpu || !cpu->timer_since_ns)
		return 0;
	struct taker taker = { .cpu = number, .kind = TIMER };
	__u64 time_ns = bpf_ktime_get_ns() - cpu->timer_since_ns;

	cpu->timer_since_ns = 0;
	for (int i = 0; i < OWN_TIMERS_MAX; i++)
		if (OWN_TIMERS[i] == cpu->timer_function)
			return 0;
	cpu->interrupts_ns += time_ns;
	*(__u64 *)taker.name = cpu->timer_function;
	charge(cpu, &taker, time_ns);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
