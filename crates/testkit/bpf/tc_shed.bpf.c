// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A tc program that drops frames, but not the first: those that prove a variant come through. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define WHOLE 20000
#define DROPS_ONE_OF 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} frames SEC(".maps");

/* No kernel's has this field: a loader that does not relocate takes it for there. */
struct sk_buff___test {
	int no_such_field;
} __attribute__((preserve_access_index));

SEC("tc")
int pass(struct __sk_buff *skb)
{
	return TC_ACT_OK;
}

/* A function by itself, which the compiler's notes on functions list as well. */
static __attribute__((noinline)) int is_shed(__u64 *count)
{
	__sync_fetch_and_add(count, 1);
	return *count > WHOLE && *count % DROPS_ONE_OF == 0;
}

SEC("tc/ingress")
int shed(struct __sk_buff *skb)
{
	__u32 first = 0;
	__u64 *count = bpf_map_lookup_elem(&frames, &first);

	if (bpf_core_field_exists(struct sk_buff___test, no_such_field))
		return TC_ACT_SHOT;
	if (count && is_shed(count))
		return TC_ACT_SHOT;
	return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
