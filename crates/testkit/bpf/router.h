// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How test programs forward a frame by the kernel's FIB. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10
/* Bytes of the tag of a VLAN, behind the EtherType that says that there is one. */
#define TAG_LENGTH 4

static __always_inline void decrease_ttl(struct iphdr *ip)
{
	__u32 check = ip->check;

	check += bpf_htons(0x0100);
	ip->check = (__u16)(check + (check >= 0xffff));
	ip->ttl--;
}

/* Looks the way of a frame up that came in at a port, and rewrites its head; 0 where the kernel's stack has to see
 * to it. */
static __always_inline __u32 rewrite_frame(void *ctx, void *frame, void *end, __u32 port, int ages)
{
	struct ethhdr *ethernet = frame;
	void *packet = ethernet + 1;
	struct bpf_fib_lookup fib = { .ifindex = port };

	if (packet + TAG_LENGTH > end)
		return 0;

	__u16 protocol = ethernet->h_proto;

	if (protocol == bpf_htons(ETH_P_8021Q)) {
		protocol = *(__u16 *)(packet + TAG_LENGTH - 2);
		packet += TAG_LENGTH;
	}

	struct iphdr *ip4 = packet;
	struct ipv6hdr *ip6 = packet;

	if (protocol == bpf_htons(ETH_P_IP)) {
		if ((void *)(ip4 + 1) > end)
			return 0;
		fib.family = AF_INET;
		fib.tot_len = bpf_ntohs(ip4->tot_len);
		fib.ipv4_src = ip4->saddr;
		fib.ipv4_dst = ip4->daddr;
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(ip6 + 1) > end)
			return 0;
		fib.family = AF_INET6;
		fib.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
		__builtin_memcpy(fib.ipv6_src, &ip6->saddr, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, &ip6->daddr, sizeof(fib.ipv6_dst));
	} else {
		return 0;
	}
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	if (fib.family == AF_INET && ages)
		decrease_ttl(ip4);
	else if (ages)
		ip6->hop_limit--;
	__builtin_memcpy(ethernet->h_dest, fib.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, fib.smac, ETH_ALEN);
	return fib.ifindex;
}

static __always_inline __u32 rewrite(struct xdp_md *ctx, int ages)
{
	void *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	return rewrite_frame(ctx, frame, end, ctx->ingress_ifindex, ages);
}

static __always_inline int forward(struct xdp_md *ctx)
{
	__u32 port = rewrite(ctx, 1);

	return port ? bpf_redirect(port, 0) : XDP_PASS;
}
