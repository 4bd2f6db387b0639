// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A tc program that lets every frame through. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

SEC("classifier")
int pass(struct __sk_buff *skb)
{
	return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
