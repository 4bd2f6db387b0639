// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The sink: counts every frame of the tester that the DUT forwarded, compares every n-th one with
 * what a correct router makes of it, and keeps frames that are not the tester's apart.
 *
 * A sampled frame is compared as a whole with the frame expected of its flow: MAC addresses, TTL,
 * checksums, addresses, ports and payload are all in there.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FLOWS_MAX 2048
#define HEAD_SIZE 64
#define MAC_SIZE 12

struct expected {
	__u64 words[HEAD_SIZE / 8];
};

/* What was wrong first with a sampled frame. */
enum wrong {
	WRONG_FLOW,	/* addresses that no planned flow has */
	WRONG_LENGTH,
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
	__u32 length; /* bytes without FCS */
	__u32 sources;
	__u32 destinations;
	__u32 source_base;	/* last four bytes of the first source address, host order */
	__u32 destination_base; /* likewise */
	__u16 source_port;
	__u16 destination_port;
	__u32 check_every;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS_MAX);
	__type(key, __u32);
	__type(value, struct expected);
} expected SEC(".maps");

/* How often each flow was among the checked frames. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} checked_flows SEC(".maps");

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

static __always_inline void check(struct xdp_md *ctx, struct sink *s, const struct plan *p,
				  __u32 source, __u32 destination)
{
	const __u64 *frame = (void *)(long)ctx->data;
	const void *end = (void *)(long)ctx->data_end;
	__u32 source_index = source - p->source_base;
	__u32 destination_index = destination - p->destination_base;

	s->checked_frames++;
	if (source_index >= p->sources || destination_index >= p->destinations) {
		s->wrong_frames[WRONG_FLOW]++;
		return;
	}
	__u32 flow = source_index * p->destinations + destination_index;
	const struct expected *e = bpf_map_lookup_elem(&expected, &flow);
	__u32 *seen = bpf_map_lookup_elem(&checked_flows, &flow);

	if (!e || !seen) {
		s->wrong_frames[WRONG_FLOW]++;
		return;
	}
	(*seen)++;
	if ((void *)frame + 60 > end || end - (void *)frame != p->length) {
		s->wrong_frames[WRONG_LENGTH]++;
		return;
	}
	__u64 last = *(const __u32 *)&frame[7];

	if ((void *)frame + 62 <= end)
		last |= (__u64)*(const __u16 *)((void *)frame + 60) << 32;

	__u64 macs = (frame[0] ^ e->words[0]) | ((frame[1] ^ e->words[1]) & 0xffffffffULL);
	/* The TTL is byte 22 of an IPv4 frame, the hop limit byte 21 of an IPv6 one. */
	__u64 ttl = (frame[2] ^ e->words[2]) &
		    (p->family == ETH_P_IP ? 0xffULL << 48 : 0xffULL << 40);
	__u64 rest = (frame[1] ^ e->words[1]) | (frame[2] ^ e->words[2]) |
		     (frame[3] ^ e->words[3]) | (frame[4] ^ e->words[4]) |
		     (frame[5] ^ e->words[5]) | (frame[6] ^ e->words[6]) | (last ^ e->words[7]);

	if (macs)
		s->wrong_frames[WRONG_MAC]++;
	else if (ttl)
		s->wrong_frames[WRONG_TTL]++;
	else if (rest)
		s->wrong_frames[WRONG_CONTENT]++;
}

SEC("xdp")
int count(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, source, destination;
	struct sink *s = bpf_map_lookup_elem(&sink, &zero);
	const struct plan *p = bpf_map_lookup_elem(&plan, &zero);
	struct ethhdr *ethernet = frame;
	struct udphdr *udp;

	if (!s || !p)
		return XDP_ABORTED;
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
	if (udp->source != bpf_htons(p->source_port) || udp->dest != bpf_htons(p->destination_port))
		goto foreign;

	s->forwarded_frames++;
	if (s->until_check) {
		s->until_check--;
		return XDP_DROP;
	}
	s->until_check = p->check_every - 1;
	check(ctx, s, p, source, destination);
	return XDP_DROP;

foreign:
	s->foreign_frames++;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
