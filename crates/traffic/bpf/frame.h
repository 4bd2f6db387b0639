/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What generator and sink know of a frame: the head, which differs from flow to flow, and the
 * rest, which is the same in all flows.
 *
 * The head is the smallest frame of a flow: Ethernet, IPv4, UDP and 18 bytes of payload make 60,
 * Ethernet, IPv6 and UDP make 62. A larger frame has the same head but for lengths and checksums.
 * Heads have no tag; where frames have one, it is between the head's MAC addresses and the rest of it.
 */
#ifndef FRAME_H
#define FRAME_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define INET_HEAD_LENGTH 60
#define INET6_HEAD_LENGTH 62
#define HEAD_SIZE 64
/* Bytes of a tag. */
#define TAG_LENGTH 4
/* Without FCS: 1500 bytes of IP, a tag and the Ethernet header. */
#define LENGTH_MAX 1518
/* LENGTH_MAX less the tag and the smaller head, in whole words, and a word to spare. */
#define REST_SIZE 1464

/* Where a field is in the head, in 16-bit words. */
#define INET_LENGTH 8
#define INET_CHECKSUM 12
#define INET_UDP_LENGTH 19
#define INET_UDP_CHECKSUM 20
#define INET6_LENGTH 9
#define INET6_UDP_LENGTH 29
#define INET6_UDP_CHECKSUM 30

/* The tag of every frame as it lies there, or 0; set before the program is loaded, so that frames without one pay
 * nothing for it. */
const volatile __u32 tag;

union head {
	__u64 words[HEAD_SIZE / 8];
	__u16 halves[HEAD_SIZE / 2];
};

union rest {
	__u64 words[REST_SIZE / 8];
	__u8 bytes[REST_SIZE];
};

/* A size of frame; all but the first field is in network order. */
struct size {
	__u16 length;	  /* of the frame without FCS */
	__u16 ip_length;  /* as the IP header states it */
	__u16 udp_length; /* as the UDP header states it */
	__u16 ip_change;  /* what the size adds to the sum of the IPv4 header */
	__u16 udp_change; /* and to that of UDP */
	__u16 padding[3];
};

/* A checksum after something was added to the sum that it stands for (RFC 1624). The sum of an
 * IPv4 header is never 0, so one carry is the last. */
static __always_inline __u16 checksum_after(__u16 checksum, __u16 change)
{
	__u32 sum = (__u32)(__u16)~checksum + change;

	return ~(__u16)(sum + (sum >> 16));
}

/* 0 would mean that there is no checksum, which IPv6 does not allow. */
static __always_inline __u16 udp_checksum_after(__u16 checksum, __u16 change)
{
	__u16 after = checksum_after(checksum, change);

	return after ? after : 0xffff;
}

/* Gives a copy of a head the lengths and checksums of a size. */
static __always_inline void resize(__u16 *copy, const union head *head, const struct size *size,
				   int is_inet6)
{
	if (is_inet6) {
		copy[INET6_LENGTH] = size->ip_length;
		copy[INET6_UDP_LENGTH] = size->udp_length;
		copy[INET6_UDP_CHECKSUM] =
			udp_checksum_after(head->halves[INET6_UDP_CHECKSUM], size->udp_change);
	} else {
		copy[INET_LENGTH] = size->ip_length;
		copy[INET_CHECKSUM] = checksum_after(head->halves[INET_CHECKSUM], size->ip_change);
		copy[INET_UDP_LENGTH] = size->udp_length;
		copy[INET_UDP_CHECKSUM] =
			udp_checksum_after(head->halves[INET_UDP_CHECKSUM], size->udp_change);
	}
}

#endif
