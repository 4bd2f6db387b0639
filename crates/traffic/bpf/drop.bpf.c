// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The drop-at-ingress control: on the DUT's receiving interface it ends every frame at once, so
 * that what is left is the generator's own cost.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} dropped SEC(".maps");

SEC("xdp")
int drop(struct xdp_md *ctx)
{
	__u32 zero = 0;
	__u64 *frames = bpf_map_lookup_elem(&dropped, &zero);

	if (frames)
		(*frames)++;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
