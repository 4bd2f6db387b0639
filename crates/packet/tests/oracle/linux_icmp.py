#!/usr/bin/env python3
"""What the Linux kernel answers or forwards, as lines of `name sent|got hex`.

    unshare -m -n python3 linux_icmp.py > linux_icmp.txt

Two veth pairs in a network namespace of its own; frames are written to the
tester's end of the first and read there, or at the end of the second. Neither
end has the neighbours' MAC addresses, so that the kernel only looks on there.
"""
import ipaddress
import os
import socket
import struct
import subprocess
import time

ROUTER, TESTER = bytes.fromhex("020000000101"), bytes.fromhex("020000000199")
SINK, SINK6 = "198.51.100.2", "2001:db8:2::2"
IPV4, IPV6, UDP, ICMP, ICMP6 = 0x0800, 0x86DD, 17, 1, 58
SET_UP = """
ip link set lo up
ip link add t0 address 02:00:00:00:01:02 type veth peer name r0 address 02:00:00:00:01:01
ip link add t1 address 02:00:00:00:02:02 type veth peer name r1 address 02:00:00:00:02:01
sysctl -qw net.ipv6.conf.t0.disable_ipv6=1 net.ipv6.conf.t1.disable_ipv6=1
sysctl -qw net.ipv4.conf.t0.arp_ignore=8 net.ipv4.conf.t1.arp_ignore=8
sysctl -qw net.ipv6.conf.r0.accept_dad=0 net.ipv6.conf.r1.accept_dad=0
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv4.icmp_msgs_per_sec=100000 net.ipv6.icmp.ratelimit=0
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.r0.rp_filter=0
sysctl -qw net.ipv4.neigh.r1.mcast_solicit=1 net.ipv4.neigh.r1.retrans_time_ms=100
sysctl -qw net.ipv6.neigh.r1.mcast_solicit=1 net.ipv6.neigh.r1.retrans_time_ms=100
ip link set t0 up
ip link set t1 up
ip link set r0 up
ip link set r1 up mtu 1280
ip addr add 192.0.2.1/24 dev r0
ip addr add 198.51.100.1/24 dev r1
ip addr add 2001:db8:1::1/64 dev r0 nodad
ip addr add 2001:db8:2::1/64 dev r1 nodad
ip neigh add 192.0.2.2 lladdr 02:00:00:00:01:99 dev r0
ip neigh add 192.0.2.9 lladdr 02:00:00:00:01:09 dev r0
ip neigh add 198.51.100.2 lladdr 02:00:00:00:02:99 dev r1
ip neigh add 2001:db8:1::2 lladdr 02:00:00:00:01:99 dev r0
ip neigh add fe80::9 lladdr 02:00:00:00:01:09 dev r0
ip neigh add 2001:db8:2::2 lladdr 02:00:00:00:02:99 dev r1
ip route add 203.0.113.0/24 via 192.0.2.9 dev r0
ip route add 2001:db8:7::/64 via fe80::9 dev r0
"""


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(payload, destination=SINK, ttl=64, tos=0, options=b"", flags_and_offset=0x4000, protocol=UDP):
    words, length = 5 + len(options) // 4, 20 + len(options) + len(payload)
    addresses = socket.inet_aton("192.0.2.2") + socket.inet_aton(destination)
    head = struct.pack("!BBHHHBB", 0x40 | words, tos, length, 0x1234, flags_and_offset, ttl, protocol)
    tail = addresses + options
    return head + struct.pack("!H", checksum(head + tail)) + tail + payload


def ipv6(payload, destination=SINK6, next_header=UDP, hop_limit=64, traffic_class=0, flow_label=0):
    first = 6 << 28 | traffic_class << 20 | flow_label
    addresses = b"".join(ipaddress.ip_address(a).packed for a in ("2001:db8:1::2", destination))
    return struct.pack("!IHBB", first, len(payload), next_header, hop_limit) + addresses + payload


def udp(length):
    return struct.pack("!HHHH", 1000, 2000, 8 + length, 0xC0DE) + bytes(i & 255 for i in range(length))


def hop_by_hop(options):
    return bytes([UDP, 0]) + options + udp(4)


def received(port, ether_type):
    frame, address = port.recvfrom(4096)
    packet = frame[14:]
    if address[2] == socket.PACKET_OUTGOING or frame[12:14] != struct.pack("!H", ether_type):
        return None
    if ether_type == IPV6:
        # Multicast listener reports and neighbour discovery, but not redirects.
        if packet[6] == ICMP6 and packet[40] in (*range(130, 137), 143):
            return None
        # What is redirected is forwarded as well; reports have options.
        if port is not sink and packet[6] in (0, UDP):
            return None
    elif port is not sink and packet[9] == UDP:
        return None
    return packet


def record(name, packet, at_sink=0):
    ether_type = IPV4 if packet[0] >> 4 == 4 else IPV6
    port = sink if at_sink else tester
    print(name, "sent", packet.hex())
    tester.send(ROUTER + TESTER + struct.pack("!H", ether_type) + packet)
    left, end = at_sink or 1, time.monotonic() + 2
    while left and time.monotonic() < end:
        try:
            answer = received(port, ether_type)
        except TimeoutError:
            continue
        if answer is not None:
            print(name, "got", answer.hex())
            left -= 1


for line in SET_UP.strip().splitlines():
    subprocess.run(line.split(), check=True)
time.sleep(0.5)
tester, sink = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(2))
tester.bind(("t0", 3))
sink.bind(("t1", 3))
tester.settimeout(0.2)
sink.settimeout(0.2)

print("# Linux", os.uname().release)
small = udp(18)
record("inet.ttl", ipv4(small, ttl=1))
record("inet.ttl_tos", ipv4(small, ttl=1, tos=0xBB))
record("inet.ttl_long", ipv4(udp(1000), ttl=1))
record("inet.ttl_options", ipv4(small, ttl=1, options=bytes([1, 0x9E, 3, 0xAA])))
record("inet.ttl_first_fragment", ipv4(udp(16), ttl=1, flags_and_offset=0x2000))
record("inet.ttl_next_fragment", ipv4(udp(16), ttl=1, flags_and_offset=0x0001))
record("inet.ttl_of_error", ipv4(bytes([3, 0, 0xFC, 0xFF, 0, 0, 0, 0]), ttl=1, protocol=ICMP))
record("inet.ttl_of_echo", ipv4(bytes([8, 0, 0xF7, 0xFF, 0, 0, 0, 0]), ttl=1, protocol=ICMP))
record("inet.fragmentation_needed", ipv4(udp(1300)))
time.sleep(1.2)  # The kernel's error of this kind needs a second's credit.
record("inet.no_route", ipv4(small, destination="10.9.9.9"))
record("inet.no_neighbour", ipv4(small, destination="198.51.100.77"))
record("inet.option_too_short", ipv4(small, options=bytes([1, 0x9E, 1, 0])))
record("inet.option_too_long", ipv4(small, options=bytes([1, 0x9E, 9, 0])))
record("inet.option_pointer", ipv4(small, options=bytes([1, 7, 7, 3, 0, 0, 0, 0])))
record("inet.redirect", ipv4(small, destination="203.0.113.5"))
record("inet.source_route", ipv4(small, options=bytes([1, 0x83, 7, 4, 198, 51, 100, 2])))
record("inet.record_route", ipv4(small, options=bytes([1, 7, 7, 4, 0, 0, 0, 0])), at_sink=1)
record("inet.unknown_option", ipv4(small, options=bytes([1, 0x9E, 3, 0xAA])), at_sink=1)
options = bytes([0x9E, 3, 0xAA, 0x1E, 4, 0xBB, 0xCC, 1])
record("inet.fragments", ipv4(udp(1300), flags_and_offset=0, options=options), at_sink=2)
record("inet6.hop_limit", ipv6(udp(4), hop_limit=1))
record("inet6.hop_limit_class", ipv6(udp(4), hop_limit=1, traffic_class=0xBB, flow_label=0x12345))
record("inet6.hop_limit_long", ipv6(udp(1300), hop_limit=1))
record("inet6.hop_limit_of_error", ipv6(bytes([1] + [0] * 7), next_header=ICMP6, hop_limit=1))
record("inet6.packet_too_big", ipv6(udp(1300)))
record("inet6.no_route", ipv6(udp(4), destination="2001:db8:99::1"))
record("inet6.no_neighbour", ipv6(udp(4), destination="2001:db8:2::77"))
record("inet6.option_report", ipv6(hop_by_hop(bytes([0x9E, 4, 1, 2, 3, 4])), next_header=0))
record("inet6.option_report_unicast", ipv6(hop_by_hop(bytes([1, 0, 0xDE, 2, 3, 4])), next_header=0))
record("inet6.option_discard", ipv6(hop_by_hop(bytes([0x5E, 4, 1, 2, 3, 4])), next_header=0))
record("inet6.option_skip", ipv6(hop_by_hop(bytes([0x1E, 4, 1, 2, 3, 4])), next_header=0), at_sink=1)
record("inet6.option_overrun", ipv6(hop_by_hop(bytes([0x1E, 5, 1, 2, 3, 4])), next_header=0))
# Redirects to one host are at least a second apart, the first not at once.
for name, length in (("warm_up", 0), ("redirect", 5), ("redirect_long", 1300)):
    time.sleep(1.2)
    record(f"inet6.{name}", ipv6(udp(length), destination="2001:db8:7::5"))
