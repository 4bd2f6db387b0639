// SPDX-License-Identifier: BSD-2-Clause
/* A router in user space, as small as can be: packet sockets on two interfaces, recvmmsg and sendmmsg.
 *
 * usage: packet_router IN OUT NEXT_HOP_MAC [spin] [crash=N] [lose=N] [damage=N] [wrong=N] [keep=N] [late] [back=MAC] [ttl]
 *
 * One of N frames is lost, or kept until the end; from the N-th on, all are damaged, or go to a wrong MAC address. With `late`,
 * kept frames go out once none has come in for a while. With `back`, frames go back too, to that MAC address.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define BATCH 64
#define ROOM 2048
/* Bytes of the tag of a VLAN; received frames leave room for it. */
#define TAG 4
#define KEPT_MAX 256
#define LATE_US 100000

static volatile sig_atomic_t is_over;
static void end(int signal) { (void)signal; is_over = 1; }

static int open_port(const char *name, int receives, unsigned char mac[6])
{
	int s = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = 8 << 20;
	struct timeval late = { .tv_usec = LATE_US };
	struct ifreq request = {0};
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	if (s < 0 || ioctl(s, SIOCGIFHWADDR, &request))
		return perror(name), exit(1), -1;
	memcpy(mac, request.ifr_hwaddr.sa_data, 6);
	/* Sent past queueing disciplines, and not seen again. */
	setsockopt(s, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
	setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
	setsockopt(s, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on);
	setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
	setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &late, sizeof late);
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(name),
				  .sll_protocol = receives ? htons(ETH_P_ALL) : 0 };
	if (bind(s, (struct sockaddr *)&at, sizeof at))
		return perror(name), exit(1), -1;
	return s;
}

/* Whether the frame is to be sent. */
static int route(unsigned char *f, unsigned length, const unsigned char *from, const unsigned char *to, int ttl)
{
	if (length < 34)
		return 0;
	unsigned type = f[12] << 8 | f[13];
	if (type == ETH_P_IP) {
		if (f[22] <= 1)
			return 0;
		f[22] -= ttl;
		uint32_t sum = (f[24] << 8 | f[25]) + (ttl ? 0x100 : 0);
		sum = (sum & 0xffff) + (sum >> 16);
		f[24] = sum >> 8;
		f[25] = sum;
	} else if (type == ETH_P_IPV6) {
		if (f[21] <= 1 || f[20] == 58) /* neighbour discovery is not forwarded */
			return 0;
		f[21] -= ttl;
	} else {
		return 0;
	}
	memcpy(f, to, 6);
	memcpy(f + 6, from, 6);
	return 1;
}

/* Puts a tag, which the kernel shows beside the frame, before the frame's EtherType: its length. */
static unsigned put_tag(unsigned char *room, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		struct tpacket_auxdata beside;
		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&beside, CMSG_DATA(c), sizeof beside);
		if (!(beside.tp_status & TP_STATUS_VLAN_VALID))
			return 0;
		memmove(room, room + TAG, 12);
		room[12] = beside.tp_vlan_tpid >> 8;
		room[13] = beside.tp_vlan_tpid;
		room[14] = beside.tp_vlan_tci >> 8;
		room[15] = beside.tp_vlan_tci;
		return TAG;
	}
	return 0;
}

/* Sends all of them, and returns how many were sent. */
static unsigned long send_all(int to, struct mmsghdr *out, int n)
{
	unsigned long sent = 0;

	for (int i = 0; i < n;) {
		int done = sendmmsg(to, out + i, n - i, 0);
		if (done < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			return perror("sendmmsg"), exit(1), 0;
		/* The ring behind it is full: the frame is lost, as in a router. */
		i += done > 0 ? done : 1;
		sent += done > 0 ? done : 0;
	}
	return sent;
}

static int parse_mac(const char *text, unsigned char mac[6])
{
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) == 6;
}

int main(int argc, char **argv)
{
	static unsigned char room[BATCH][ROOM], kept_room[KEPT_MAX][ROOM], macs[2][6], next[2][6];
	static union { char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))]; struct cmsghdr align; } beside[BATCH];
	static struct mmsghdr in[BATCH], out[BATCH], kept[KEPT_MAX];
	static struct iovec at[BATCH], kept_at[KEPT_MAX];
	unsigned long crash = 0, lose = 0, damage = 0, wrong = 0, keep = 0, seen = 0, sent = 0;
	int spin = 0, late = 0, ttl = 1, ways = 1, n_kept = 0, ports[2];

	if (argc < 4 || !parse_mac(argv[3], next[0]))
		return fprintf(stderr, "usage: packet_router IN OUT NEXT_HOP_MAC\n"), 2;
	for (int i = 4; i < argc; i++) {
		sscanf(argv[i], "crash=%lu", &crash);
		sscanf(argv[i], "lose=%lu", &lose);
		sscanf(argv[i], "damage=%lu", &damage);
		sscanf(argv[i], "wrong=%lu", &wrong);
		sscanf(argv[i], "keep=%lu", &keep);
		spin |= !strcmp(argv[i], "spin");
		late |= !strcmp(argv[i], "late");
		ttl &= strcmp(argv[i], "ttl") != 0;
		if (!strncmp(argv[i], "back=", 5) && parse_mac(argv[i] + 5, next[1]))
			ways = 2, spin = 1;
	}
	struct sigaction action = { .sa_handler = end };
	sigaction(SIGTERM, &action, 0);
	sigaction(SIGINT, &action, 0);
	ports[0] = open_port(argv[1], 1, macs[0]);
	ports[1] = open_port(argv[2], ways > 1, macs[1]);
	printf("forwarding\n");
	fflush(stdout);
	for (int way = 0; !is_over; way = (way + 1) % ways) {
		int from = ports[way], to = ports[!way];

		for (int i = 0; i < BATCH; i++) {
			at[i] = (struct iovec){ room[i] + TAG, ROOM - TAG };
			in[i].msg_hdr = (struct msghdr){ .msg_iov = &at[i], .msg_iovlen = 1, .msg_control = &beside[i],
							 .msg_controllen = sizeof beside[i] };
		}
		int got = recvmmsg(from, in, BATCH, spin ? MSG_DONTWAIT : MSG_WAITFORONE, 0), n = 0;
		if (got < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ENETDOWN)
				return perror("recvmmsg"), 1;
			if (errno == EAGAIN && late) {
				sent += send_all(ports[1], kept, n_kept);
				n_kept = 0;
			}
			continue;
		}
		for (int i = 0; i < got; i++) {
			seen++;
			if (crash && seen >= crash)
				abort();
			if (lose && seen % lose == 0)
				continue;
			unsigned char *frame = room[i] + TAG;
			if (!route(frame, in[i].msg_len, macs[!way], next[way], ttl))
				continue;
			if (damage && seen >= damage)
				frame[12] ^= 0xff; /* of no protocol that anybody knows */
			if (wrong && seen >= wrong)
				frame[5] ^= 0xff;
			unsigned tag = put_tag(room[i], &in[i].msg_hdr), length = in[i].msg_len + tag;
			frame -= tag;
			if (keep && seen % keep == 0 && n_kept < KEPT_MAX) {
				memcpy(kept_room[n_kept], frame, length);
				kept_at[n_kept] = (struct iovec){ kept_room[n_kept], length };
				kept[n_kept].msg_hdr = (struct msghdr){ .msg_iov = &kept_at[n_kept], .msg_iovlen = 1 };
				n_kept++;
				continue;
			}
			at[n] = (struct iovec){ frame, length };
			out[n].msg_hdr = (struct msghdr){ .msg_iov = &at[n], .msg_iovlen = 1 };
			n++;
		}
		sent += send_all(to, out, n);
	}
	sent += send_all(ports[1], kept, n_kept);
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof stats;
	getsockopt(ports[0], SOL_PACKET, PACKET_STATISTICS, &stats, &length);
	fprintf(stderr, "seen %lu, sent %lu, dropped at the socket %u\n", seen, sent, stats.tp_drops);
	return 0;
}
