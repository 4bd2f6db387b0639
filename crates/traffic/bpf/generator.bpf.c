// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The generator: run by BPF_PROG_RUN on live frames, it turns every frame it is handed into the
 * next one of the planned flows and redirects it to the tester's interface.
 *
 * The kernel recycles the pages of its live frames as the DUT left them, so the whole head of the
 * frame is written again each time; what lies behind the head is the same in all flows.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define FLOWS_MAX 2048
/* Ethernet, IPv4, UDP and 18 bytes of payload make 60; Ethernet, IPv6 and UDP make 62. */
#define HEAD_SIZE 64

/* A pacer that fell behind by more than this does not make up for it: a burst of that length would
 * no longer be the load that was asked for. */
#define BACKLOG_NS_MAX 20000000ULL

struct template {
	__u64 words[HEAD_SIZE / 8];
};

/* Written by the tester while the generator stands still, read at any time. */
struct generator {
	__u64 offered_frames; /* frames redirected to the interface */
	__u64 gap_ns;	      /* time between two frames; 0: as fast as it goes */
	__u64 next_ns;	      /* when the next frame is due */
	__u32 gap_fraction;   /* the gap's part below 1 ns, in 2^-32 ns */
	__u32 next_fraction;
	__u32 flows;
	__u32 flow; /* the next frame's flow */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS_MAX);
	__type(key, __u32);
	__type(value, struct template);
} templates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct generator);
} generator SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} interface SEC(".maps");

/* Whether a frame is due, and if so when the next one is. */
static __always_inline int frame_is_due(struct generator *g)
{
	__u64 now_ns = bpf_ktime_get_ns();

	if (now_ns < g->next_ns)
		return 0;
	if (now_ns - g->next_ns > BACKLOG_NS_MAX)
		g->next_ns = now_ns;
	__u64 fraction = (__u64)g->next_fraction + g->gap_fraction;

	g->next_fraction = (__u32)fraction;
	g->next_ns += g->gap_ns + (fraction >> 32);
	return 1;
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	__u64 *frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 zero = 0;
	struct generator *g = bpf_map_lookup_elem(&generator, &zero);

	if (!g || (void *)frame + 60 > end)
		return XDP_ABORTED;
	if (g->gap_ns && !frame_is_due(g))
		return XDP_DROP;

	__u32 flow = g->flow;
	struct template *t = bpf_map_lookup_elem(&templates, &flow);

	if (!t)
		return XDP_ABORTED;
	frame[0] = t->words[0];
	frame[1] = t->words[1];
	frame[2] = t->words[2];
	frame[3] = t->words[3];
	frame[4] = t->words[4];
	frame[5] = t->words[5];
	frame[6] = t->words[6];
	*(__u32 *)&frame[7] = (__u32)t->words[7];
	if ((void *)frame + 62 <= end)
		*(__u16 *)((void *)frame + 60) = (__u16)(t->words[7] >> 32);

	g->flow = flow + 1 < g->flows ? flow + 1 : 0;
	g->offered_frames++;
	return bpf_redirect_map(&interface, 0, XDP_ABORTED);
}

/* The yardstick of the generator's own cost: the same loop, one constant frame. */
SEC("xdp")
int redirect_constant(struct xdp_md *ctx)
{
	return bpf_redirect_map(&interface, 0, XDP_ABORTED);
}

char _license[] SEC("license") = "Dual BSD/GPL";
