// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The sink: counts every frame of the tester that the DUT forwarded, compares every n-th one with
 * what a correct router makes of it, and keeps frames that are not the tester's apart.
 *
 * A sampled frame is compared as a whole with the frame expected of its flow and length: MAC
 * addresses, TTL, checksums, addresses, ports and all of the payload are in there.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "frame.h"

/* What was wrong first with a sampled frame. */
enum wrong {
	WRONG_FLOW,	/* addresses that no planned flow has */
	WRONG_LENGTH,	/* one that no planned size has */
	WRONG_MAC,
	WRONG_TTL,
	WRONG_CONTENT,	/* checksums, ports, payload, any other byte */
	WRONG_KINDS,
};

/* One a CPU, so that no two CPUs ever write the same counter. */
struct sink {
	__u64 forwarded_frames;
	__u64 foreign_frames;
	__u64 checked_frames;
	__u64 wrong_frames[WRONG_KINDS];
	__u32 until_check; /* frames to go until the next one is checked */
	__u32 padding;
};

/* Written by the tester. */
struct plan {
	__u32 family; /* ETH_P_IP or ETH_P_IPV6 */
	__u32 sources;
	__u32 destinations;
	__u32 source_ports;
	__u32 destination_ports;
	__u32 source_base;	/* last four bytes of the first source address, host order */
	__u32 destination_base; /* likewise */
	__u16 source_port;	/* the first, host order */
	__u16 destination_port; /* likewise */
	__u32 check_every;
};

/* The smallest frame of each flow, as a router makes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as there are flows */
	__type(key, __u32);
	__type(value, union head);
} expected SEC(".maps");

/* How often each flow was among the checked frames. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as there are flows */
	__type(key, __u32);
	__type(value, __u32);
} checked_flows SEC(".maps");

/* The planned sizes, each at the place of its length; all other places are zero. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LENGTH_MAX + 1);
	__type(key, __u32);
	__type(value, struct size);
} sizes SEC(".maps");

/* How often each length was among the checked frames. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LENGTH_MAX + 1);
	__type(key, __u32);
	__type(value, __u32);
} checked_sizes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, union rest);
} rest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sink);
} sink SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct plan);
} plan SEC(".maps");

/* Whether what follows the head is not as it was sent. */
static __always_inline int is_rest_wrong(const void *at, const void *end, const union rest *r)
{
	__u32 compared = 0;

	for (; compared < REST_SIZE - 8; compared += 8, at += 8) {
		if (at + 8 > end)
			break;
		if (*(const __u64 *)at != r->words[compared / 8])
			return 1;
	}
	for (int left = 0; left < 7; left++, at++) {
		if (at + 1 > end)
			break;
		if (*(const __u8 *)at != r->bytes[compared + left])
			return 1;
	}
	return 0;
}

static __always_inline void check(struct xdp_md *ctx, struct sink *s, const struct plan *p,
				  __u32 source, __u32 destination, __u32 source_port,
				  __u32 destination_port)
{
	const __u64 *frame = (void *)(long)ctx->data;
	const void *end = (void *)(long)ctx->data_end;
	int is_inet6 = p->family == ETH_P_IPV6;
	__u32 zero = 0;

	s->checked_frames++;
	if (source >= p->sources || destination >= p->destinations) {
		s->wrong_frames[WRONG_FLOW]++;
		return;
	}
	__u32 flow = ((source * p->destinations + destination) * p->source_ports + source_port) *
			     p->destination_ports +
		     destination_port;
	const union head *head = bpf_map_lookup_elem(&expected, &flow);
	__u32 *flow_seen = bpf_map_lookup_elem(&checked_flows, &flow);

	if (!head || !flow_seen) {
		s->wrong_frames[WRONG_FLOW]++;
		return;
	}
	(*flow_seen)++;

	__u32 length = end - (void *)frame;
	const struct size *size = bpf_map_lookup_elem(&sizes, &length);
	__u32 *size_seen = bpf_map_lookup_elem(&checked_sizes, &length);
	const union rest *r = bpf_map_lookup_elem(&rest, &zero);

	/* What is behind the MAC addresses and the tag, as if there were no tag. */
	const __u64 *behind = (void *)frame + (tag ? TAG_LENGTH : 0);

	if (!size || !size->length || !size_seen || !r ||
	    (void *)behind + INET_HEAD_LENGTH > end) {
		s->wrong_frames[WRONG_LENGTH]++;
		return;
	}
	(*size_seen)++;

	union head e = *head;
	__u64 last = *(const __u32 *)&behind[7];
	const void *after_head = (void *)behind + INET_HEAD_LENGTH;

	resize(e.halves, head, size, is_inet6);
	if (is_inet6) {
		after_head = (void *)behind + INET6_HEAD_LENGTH;
		if (after_head <= end)
			last |= (__u64)*(const __u16 *)(after_head - 2) << 32;
	}

	__u64 macs = (frame[0] ^ e.words[0]) | ((frame[1] ^ e.words[1]) & 0xffffffffULL);
	/* The TTL is byte 22 of an IPv4 frame, the hop limit byte 21 of an IPv6 one. */
	__u64 ttl = (behind[2] ^ e.words[2]) & (is_inet6 ? 0xffULL << 40 : 0xffULL << 48);
	__u64 others = ((behind[1] ^ e.words[1]) >> 32) | (behind[2] ^ e.words[2]) |
		       (behind[3] ^ e.words[3]) | (behind[4] ^ e.words[4]) |
		       (behind[5] ^ e.words[5]) | (behind[6] ^ e.words[6]) |
		       (last ^ e.words[7]);

	if (tag)
		others |= ((const __u32 *)frame)[3] ^ tag;
	if (macs)
		s->wrong_frames[WRONG_MAC]++;
	else if (ttl)
		s->wrong_frames[WRONG_TTL]++;
	else if (others || is_rest_wrong(after_head, end, r))
		s->wrong_frames[WRONG_CONTENT]++;
}

SEC("xdp")
int fwdlab_count(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, source, destination, source_port, destination_port;
	struct sink *s = bpf_map_lookup_elem(&sink, &zero);
	const struct plan *p = bpf_map_lookup_elem(&plan, &zero);
	struct udphdr *udp;

	if (!s || !p)
		return XDP_ABORTED;
	/* A frame that has lost its tag is the tester's all the same, and wrong. */
	if (tag && frame + sizeof(struct ethhdr) <= end &&
	    ((struct ethhdr *)frame)->h_proto == bpf_htons(ETH_P_8021Q))
		frame += TAG_LENGTH;

	/* Where there is a tag, not the MAC addresses. */
	struct ethhdr *ethernet = frame;

	if ((void *)(ethernet + 1) > end || ethernet->h_proto != bpf_htons(p->family))
		goto foreign;
	if (p->family == ETH_P_IP) {
		struct iphdr *ip = (void *)(ethernet + 1);

		udp = (void *)(ip + 1);
		if ((void *)(udp + 1) > end || ip->protocol != IPPROTO_UDP)
			goto foreign;
		source = bpf_ntohl(ip->saddr);
		destination = bpf_ntohl(ip->daddr);
	} else {
		struct ipv6hdr *ip = (void *)(ethernet + 1);

		udp = (void *)(ip + 1);
		if ((void *)(udp + 1) > end || ip->nexthdr != IPPROTO_UDP)
			goto foreign;
		source = bpf_ntohl(ip->saddr.in6_u.u6_addr32[3]);
		destination = bpf_ntohl(ip->daddr.in6_u.u6_addr32[3]);
	}
	/* 16-bit differences: a port below the first is far above the last. */
	source_port = (__u16)(bpf_ntohs(udp->source) - p->source_port);
	destination_port = (__u16)(bpf_ntohs(udp->dest) - p->destination_port);
	if (source_port >= p->source_ports || destination_port >= p->destination_ports)
		goto foreign;

	s->forwarded_frames++;
	if (s->until_check) {
		s->until_check--;
		return XDP_DROP;
	}
	s->until_check = p->check_every - 1;
	check(ctx, s, p, source - p->source_base, destination - p->destination_base, source_port,
	      destination_port);
	return XDP_DROP;

foreign:
	s->foreign_frames++;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
