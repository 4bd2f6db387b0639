// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The XDP forwarder: asks the kernel's FIB for every packet and redirects what it may.
 *
 * Whatever the FIB does not answer with a ready next hop, and whatever needs more than the fast
 * path (options, fragments, an expiring TTL), goes on to the kernel's stack, as in the kernel's
 * own xdp_fwd sample. Every outcome is counted.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10
#define IP_FRAGMENT 0x3fff /* more fragments, or an offset */

enum outcome {
	REDIRECTED,
	PASSED,	 /* left to the kernel's stack */
	DROPPED, /* the route says so: blackhole, unreachable, prohibit */
	OUTCOMES,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OUTCOMES);
	__type(key, __u32);
	__type(value, __u64);
} outcomes SEC(".maps");

static __always_inline int end_with(__u32 outcome, int action)
{
	__u64 *frames = bpf_map_lookup_elem(&outcomes, &outcome);

	if (frames)
		(*frames)++;
	return action;
}

/* Incremental update of the header checksum for a TTL that is one less (RFC 1624). */
static __always_inline void decrease_ttl(struct iphdr *ip)
{
	__u32 check = ip->check;

	check += bpf_htons(0x0100);
	ip->check = (__u16)(check + (check >= 0xffff));
	ip->ttl--;
}

SEC("xdp")
int forward(struct xdp_md *ctx)
{
	void *frame = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = frame;
	struct iphdr *ip4 = (void *)(ethernet + 1);
	struct ipv6hdr *ip6 = (void *)(ethernet + 1);
	struct bpf_fib_lookup fib = { .ifindex = ctx->ingress_ifindex };

	if ((void *)(ethernet + 1) > end)
		return end_with(PASSED, XDP_PASS);
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		if ((void *)(ip4 + 1) > end || ip4->ihl != 5 || ip4->ttl <= 1 ||
		    (ip4->frag_off & bpf_htons(IP_FRAGMENT)))
			return end_with(PASSED, XDP_PASS);
		fib.family = AF_INET;
		fib.tos = ip4->tos;
		fib.l4_protocol = ip4->protocol;
		fib.tot_len = bpf_ntohs(ip4->tot_len);
		fib.ipv4_src = ip4->saddr;
		fib.ipv4_dst = ip4->daddr;
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(ip6 + 1) > end || ip6->hop_limit <= 1)
			return end_with(PASSED, XDP_PASS);
		fib.family = AF_INET6;
		fib.flowinfo = *(__be32 *)ip6 & bpf_htonl(0x0fffffff);
		fib.l4_protocol = ip6->nexthdr;
		fib.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
		__builtin_memcpy(fib.ipv6_src, &ip6->saddr, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, &ip6->daddr, sizeof(fib.ipv6_dst));
	} else {
		return end_with(PASSED, XDP_PASS);
	}

	switch (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		break;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return end_with(DROPPED, XDP_DROP);
	default:
		return end_with(PASSED, XDP_PASS);
	}
	if (fib.family == AF_INET)
		decrease_ttl(ip4);
	else
		ip6->hop_limit--;
	__builtin_memcpy(ethernet->h_dest, fib.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, fib.smac, ETH_ALEN);
	return end_with(REDIRECTED, bpf_redirect(fib.ifindex, 0));
}

char _license[] SEC("license") = "Dual BSD/GPL";
