// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An XDP program that counts frames in a map which others find by its name. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, __u64);
} fwdlab_test_frames SEC(".maps");

SEC("xdp")
int counts(struct xdp_md *ctx)
{
	__u32 first = 0;
	__u64 *frames = bpf_map_lookup_elem(&fwdlab_test_frames, &first);

	if (frames)
		(*frames)++;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
