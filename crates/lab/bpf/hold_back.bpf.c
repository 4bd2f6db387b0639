// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Keeps the frames that a forwarder in user space takes from the kernel's stack, which packet sockets leave the original.
 *
 * It runs after XDP programs and after packet sockets of all protocols (ETH_P_ALL). Stolen, and not dropped: the kernel counts no frame here.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int fwdlab_hold(struct __sk_buff *frame)
{
	return TC_ACT_STOLEN;
}

char _license[] SEC("license") = "Dual BSD/GPL";
