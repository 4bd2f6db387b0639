// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Lets every frame through. Drivers of many cards send what is redirected to a port only where the
 * port has a program itself: only then do they have rings for it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* The same for frames in several pieces: where a port's MTU makes such, only this may follow a
 * program that takes them. */
SEC("xdp.frags")
int pass_frags(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
