// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* XDP dataplanes of an author: each forwards by the kernel's FIB, and does something of its own besides. */
#include "router.h"

#define WHOLE 20000
#define DROPS_ONE_OF 16
#define LOOKUPS_MAX 64

/* How often `looks_up` looks up a key for every frame. */
const volatile __u32 lookups = 1;
/* What it has to find for the frame to be forwarded. */
const volatile __u64 expected[2] = { 0, 0 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10000);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} frames SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
} stages SEC(".maps");

SEC("xdp")
int plain(struct xdp_md *ctx)
{
	return forward(ctx);
}

/* What is in the table decides: a frame is forwarded where the values found are those expected. */
SEC("xdp")
int looks_up(struct xdp_md *ctx)
{
	__u64 found[2] = { 0, 0 };
	__u32 i;

	for (i = 0; i < LOOKUPS_MAX && i < lookups; i++) {
		/* Of its own: the verifier does not follow a counter whose address is taken. */
		__u32 key = i;
		__u64 *value = bpf_map_lookup_elem(&table, &key);

		if (value)
			found[key & 1] += *value;
	}
	if (found[0] != expected[0] || found[1] != expected[1])
		return XDP_DROP;
	return forward(ctx);
}

/* By a device map instead of the number that the FIB gives. */
SEC("xdp.frags")
int by_port(struct xdp_md *ctx)
{
	return rewrite(ctx, 1) ? bpf_redirect_map(&ports, 1, 0) : XDP_PASS;
}

/* In two stages: without the second one nothing comes through. */
SEC("xdp")
int first_stage(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &stages, 1);
	return XDP_DROP;
}

/* Drops frames, but not the first: those that prove a variant come through. */
SEC("xdp")
int sheds(struct xdp_md *ctx)
{
	__u32 first = 0;
	__u64 *count = bpf_map_lookup_elem(&frames, &first);

	if (count && __sync_fetch_and_add(count, 1) > WHOLE && *count % DROPS_ONE_OF == 0)
		return XDP_DROP;
	return forward(ctx);
}

/* Forgets the TTL. */
SEC("xdp")
int spoils(struct xdp_md *ctx)
{
	__u32 port = rewrite(ctx, 0);

	return port ? bpf_redirect(port, 0) : XDP_PASS;
}

/* Reads without a look at the frame's end, which no verifier lets pass. */
SEC("xdp")
int is_refused(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = (void *)(long)ctx->data;

	return ethernet->h_proto == bpf_htons(ETH_P_IP) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
