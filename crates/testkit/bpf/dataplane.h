// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A dataplane whose versions differ in how often they look up a hash map for every frame: LOOKUPS. */
#include "router.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

/* Not inlined: it has a name of its own in profiles. The map is empty. */
static __attribute__((noinline)) int is_known(__u32 first)
{
	__u32 i;

	for (i = 0; i < LOOKUPS; i++) {
		__u32 key = first + i;

		if (bpf_map_lookup_elem(&table, &key))
			return 1;
	}
	return 0;
}

SEC("xdp")
int dataplane(struct xdp_md *ctx)
{
	if (is_known(ctx->ingress_ifindex))
		return XDP_DROP;
	return forward(ctx);
}

char _license[] SEC("license") = "Dual BSD/GPL";
