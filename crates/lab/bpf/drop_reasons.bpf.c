// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counts the frames that the kernel frees as dropped in one network namespace, by its reason.
 *
 * The tracepoint is passed by every such frame of the machine, the sink's among them, so that this
 * is listened to only where nothing is measured.
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

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* Reasons of the kernel's core; those of its other parts are counted as the last one. */
#define REASONS 256

/* Written by the loader: the namespace's inode number. */
volatile const __u32 NAMESPACE = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, __u32);
	__type(value, __u64);
} reasons SEC(".maps");

SEC("tp_btf/kfree_skb")
int count_drop(__u64 *arguments)
{
	struct sk_buff *skb = (void *)arguments[0];
	__u32 reason = (__u32)arguments[2];
	struct net_device *dev = skb->dev;

	if (!dev || dev->nd_net.net->ns.inum != NAMESPACE)
		return 0;
	if (reason >= REASONS)
		reason = REASONS - 1;
	__u64 *frames = bpf_map_lookup_elem(&reasons, &reason);

	if (frames)
		(*frames)++;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
