// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The generator: run by BPF_PROG_RUN on live frames, it turns every frame it is handed into the
 * next one of the planned flows and redirects it to the tester's interface, or, in both directions,
 * to its interfaces in turn.
 *
 * The kernel recycles the pages of its live frames as the DUT left them, so that the whole frame is
 * written again each time.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "frame.h"

/* A pacer that fell behind by more than this does not make up for it: a burst of that length would
 * no longer be the load that was asked for. */
#define BACKLOG_NS_MAX 20000000ULL

/* Written by the tester while the generator stands still, read at any time. */
struct generator {
	__u64 offered_frames; /* frames redirected to the interface */
	__u64 gap_ns;	      /* time between two bursts; 0: as fast as it goes */
	__u64 next_ns;	      /* when the next burst is due */
	__u32 gap_fraction;   /* the gap's part below 1 ns, in 2^-32 ns */
	__u32 next_fraction;
	__u32 flows; /* in one direction */
	__u32 place; /* of the next frame in the order of flows */
	__u32 burst_frames;
	__u32 burst_left; /* frames that are due with the last one */
	/* Only for frames of several sizes, or of one that is not the smallest. */
	__u32 slots; /* frames in a turn of the sizes */
	__u32 slot;  /* the next frame's place in it */
	/* Places and slots meet again after a stretch: their least common multiple. Each stretch
	 * begins one slot further, until every place had every slot. */
	__u64 stretch;
	__u64 stretch_left;
	__u32 stretches;
	__u32 stretches_done;
	__u32 is_inet6;
	/* Of traffic in both directions every flow's frame is followed by one of the flow that
	 * answers it: 0 is there, 1 is back. */
	__u32 direction;
	__u32 last_direction;
	/* After so many frames the order of flows repeats. Where flows are sent in turn, there are
	 * as many places as flows, and a place is its flow. */
	__u32 places;
};

#define FLOWS_IN_PIECE 512 /* a power of two */

/* A piece of the order of flows that are not sent in turn. */
struct piece {
	__u16 flows[FLOWS_IN_PIECE];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as there are flows: first those there, then those back */
	__type(key, __u32);
	__type(value, union head);
} heads SEC(".maps");

/* The flow at each place, where flows are not sent in turn. Packed, and read one after the other, so that
 * it takes few of the caches that the DUT's tables are in. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as hold all places */
	__type(key, __u32);
	__type(value, struct piece);
} schedule SEC(".maps");

/* The sizes of a turn, in the order in which they are sent. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as there are slots */
	__type(key, __u32);
	__type(value, struct size);
} turn SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, union rest);
} rest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct generator);
} generator SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2); /* one a direction */
	__type(key, __u32);
	__type(value, __u32);
} interfaces SEC(".maps");

/* Whether a frame is due, and if so when the next one is. */
static __always_inline int frame_is_due(struct generator *g)
{
	if (g->burst_left) {
		g->burst_left--;
		return 1;
	}
	__u64 now_ns = bpf_ktime_get_ns();

	if (now_ns < g->next_ns)
		return 0;
	if (now_ns - g->next_ns > BACKLOG_NS_MAX)
		g->next_ns = now_ns;
	__u64 fraction = (__u64)g->next_fraction + g->gap_fraction;

	g->next_fraction = (__u32)fraction;
	g->next_ns += g->gap_ns + (fraction >> 32);
	g->burst_left = g->burst_frames - 1;
	return 1;
}

/* Writes the MAC addresses and a tag over a head that was written TAG_LENGTH bytes further. */
static __always_inline void write_tag(void *frame, const union head *h, __u32 own_tag)
{
	*(__u64 *)frame = h->words[0];
	((__u32 *)frame)[2] = (__u32)h->words[1];
	((__u32 *)frame)[3] = own_tag;
}

/* Writes a head to a frame that is not shorter than one of IPv4; beyond its end it writes zeros, if anything. */
static __always_inline void write_head(__u64 *frame, void *end, const union head *h)
{
	frame[0] = h->words[0];
	frame[1] = h->words[1];
	frame[2] = h->words[2];
	frame[3] = h->words[3];
	frame[4] = h->words[4];
	frame[5] = h->words[5];
	frame[6] = h->words[6];
	*(__u32 *)&frame[7] = (__u32)h->words[7];
	if ((void *)frame + INET6_HEAD_LENGTH <= end)
		*(__u16 *)((void *)frame + INET_HEAD_LENGTH) = (__u16)(h->words[7] >> 32);
}

/* Writes what follows the head, up to the frame's end. Word by word: the kernel's helper copies
 * with one instruction that takes several times as long for some sizes. */
static __always_inline void write_rest(void *at, void *end, const union rest *r)
{
	__u32 written = 0;

	for (; written < REST_SIZE - 64; written += 64, at += 64) {
		__u64 *to = at;
		const __u64 *from = &r->words[written / 8];

		if (at + 64 > end)
			break;
		to[0] = from[0];
		to[1] = from[1];
		to[2] = from[2];
		to[3] = from[3];
		to[4] = from[4];
		to[5] = from[5];
		to[6] = from[6];
		to[7] = from[7];
	}
	for (; written < REST_SIZE - 8; written += 8, at += 8) {
		if (at + 8 > end)
			break;
		*(__u64 *)at = r->words[written / 8];
	}
	for (int left = 0; left < 7; left++, at++) {
		if (at + 1 > end)
			break;
		*(__u8 *)at = r->bytes[written + left];
	}
}

/* The head of the next frame. */
static __always_inline union head *next_head(const struct generator *g, __u32 place,
					     __u32 direction, int is_scheduled)
{
	__u32 flow = place;

	if (is_scheduled) {
		__u32 number = place / FLOWS_IN_PIECE;
		const struct piece *p = bpf_map_lookup_elem(&schedule, &number);

		if (!p)
			return 0;
		flow = p->flows[place % FLOWS_IN_PIECE];
	}
	if (direction)
		flow += g->flows;
	return bpf_map_lookup_elem(&heads, &flow);
}

/* Goes on to the flow that answers, or to the next place: whether to the next place. */
static __always_inline int go_on(struct generator *g, __u32 place, __u32 direction)
{
	if (direction != g->last_direction) {
		g->direction = 1;
		return 0;
	}
	g->direction = 0;
	g->place = place + 1 < g->places ? place + 1 : 0;
	return 1;
}

/* Frames of the smallest size only. */
static __always_inline int generate(struct xdp_md *ctx, int is_scheduled)
{
	void *frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 zero = 0;
	struct generator *g = bpf_map_lookup_elem(&generator, &zero);
	const __u32 own_tag = tag;
	void *behind = frame + (own_tag ? TAG_LENGTH : 0);

	if (!g || behind + INET_HEAD_LENGTH > end)
		return XDP_ABORTED;
	if (g->gap_ns && !frame_is_due(g))
		return XDP_DROP;

	__u32 place = g->place, direction = g->direction;
	union head *h = next_head(g, place, direction, is_scheduled);

	if (!h)
		return XDP_ABORTED;
	write_head(behind, end, h);
	if (own_tag)
		write_tag(frame, h, own_tag);

	go_on(g, place, direction);
	g->offered_frames++;
	return bpf_redirect_map(&interfaces, direction, XDP_ABORTED);
}

/* Frames of any sizes: each comes as large as the largest and is cut. */
static __always_inline int generate_sizes(struct xdp_md *ctx, int is_scheduled)
{
	__u32 zero = 0;
	struct generator *g = bpf_map_lookup_elem(&generator, &zero);
	union rest *r = bpf_map_lookup_elem(&rest, &zero);

	if (!g || !r)
		return XDP_ABORTED;
	if (g->gap_ns && !frame_is_due(g))
		return XDP_DROP;

	__u32 place = g->place, slot = g->slot, direction = g->direction;
	union head *h = next_head(g, place, direction, is_scheduled);
	struct size *size = bpf_map_lookup_elem(&turn, &slot);

	if (!h || !size)
		return XDP_ABORTED;

	void *frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	long surplus = end - frame - size->length;

	if (surplus && bpf_xdp_adjust_tail(ctx, -surplus))
		return XDP_ABORTED;
	frame = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;

	const __u32 own_tag = tag;
	void *behind = frame + (own_tag ? TAG_LENGTH : 0);

	if (g->is_inet6) {
		if (behind + INET6_HEAD_LENGTH > end)
			return XDP_ABORTED;
		write_head(behind, end, h);
		resize(behind, h, size, 1);
		write_rest(behind + INET6_HEAD_LENGTH, end, r);
	} else {
		if (behind + INET_HEAD_LENGTH > end)
			return XDP_ABORTED;
		write_head(behind, end, h);
		resize(behind, h, size, 0);
		write_rest(behind + INET_HEAD_LENGTH, end, r);
	}
	if (own_tag)
		write_tag(frame, h, own_tag);

	if (go_on(g, place, direction)) {
		g->slot = slot + 1 < g->slots ? slot + 1 : 0;
		if (!--g->stretch_left) {
			__u32 done = g->stretches_done + 1;

			g->stretches_done = done < g->stretches ? done : 0;
			g->slot = g->stretches_done;
			g->stretch_left = g->stretch;
		}
	}
	g->offered_frames++;
	return bpf_redirect_map(&interfaces, direction, XDP_ABORTED);
}

/* Each with a schedule is a program of its own: what it costs more, flows in turn need not pay. */
SEC("xdp")
int fwdlab_generate(struct xdp_md *ctx)
{
	return generate(ctx, 0);
}

SEC("xdp")
int fwdlab_generate_scheduled(struct xdp_md *ctx)
{
	return generate(ctx, 1);
}

SEC("xdp")
int fwdlab_generate_sizes(struct xdp_md *ctx)
{
	return generate_sizes(ctx, 0);
}

SEC("xdp")
int fwdlab_generate_sizes_scheduled(struct xdp_md *ctx)
{
	return generate_sizes(ctx, 1);
}

/* The yardstick of the generator's own cost: the same loop, one constant frame. */
SEC("xdp")
int redirect_constant(struct xdp_md *ctx)
{
	return bpf_redirect_map(&interfaces, 0, XDP_ABORTED);
}

char _license[] SEC("license") = "Dual BSD/GPL";
