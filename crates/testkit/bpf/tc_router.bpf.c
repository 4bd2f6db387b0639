// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A tc dataplane: forwards by the kernel's FIB, and leaves a frame's tag where it is. */
#include "router.h"

#include <linux/pkt_cls.h>

SEC("tc")
int routes(struct __sk_buff *skb)
{
	void *frame = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 port = rewrite_frame(skb, frame, end, skb->ingress_ifindex, 1);

	return port ? bpf_redirect(port, 0) : TC_ACT_OK;
}

/* As it was sent, but for the tag. */
SEC("tc")
int untags(struct __sk_buff *skb)
{
	bpf_skb_vlan_pop(skb);

	void *frame = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 port = rewrite_frame(skb, frame, end, skb->ingress_ifindex, 1);

	return port ? bpf_redirect(port, 0) : TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
