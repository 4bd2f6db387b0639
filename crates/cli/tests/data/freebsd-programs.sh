#!/bin/sh
# Stands in for FreeBSD's programs, by the name that it is called: what is simple is done by the Linux kernel of the
# namespace, the rest stands in files. What is asked and what is changed is written down in the host's home folder.
asked=${0##*/}${*:+ $*}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
home=/run/testlab/disk/home
boot=/run/freebsd
if mkdir "$boot" 2>/dev/null; then
    # The first program after a boot finds what the loader has read.
    echo "$(($(cat "$home/boots" 2>/dev/null || echo 0) + 1))" > "$home/boots"
    sed -n 's/^\([a-z][^= ]*=".*"\)$/\1/p' /boot/loader.conf.local > "$boot/kenv" 2>/dev/null
    echo 66047 > "$boot/kern.random.harvest.mask"
fi
changes() { echo "$asked" >> "$home/changes"; }
questions() { echo "$asked" >> "$home/questions"; }
fail() { echo "${asked%% *}: $*" >&2; exit 1; }
tunable() { sed -n "s/^$1=\"\(.*\)\"/\1/p" "$boot/kenv" | grep . ; }
value() {
    case $1 in
        kern.boottime)
            echo "{ sec = $((1700000000 + 60 * $(cat "$home/boots"))), usec = 123456 } Tue Nov 14 22:13:20 2023" ;;
        kern.bootfile) echo /boot/kernel/kernel ;;
        kern.conftxt) printf 'options\tINET\noptions\tINET6\nident\tGENERIC\n' ;;
        hw.ncpu) echo 8 ;;
        hw.model) echo 'Intel(R) Atom(TM) CPU  C2758  @ 2.40GHz' ;;
        kern.vm_guest) echo none ;;
        kern.timecounter.hardware) echo TSC ;;
        machdep.hyperthreading_allowed) echo 1 ;;
        vm.loadavg) echo '{ 0.10 0.20 0.30 }' ;;
        net.isr.maxthreads | net.isr.bindthreads) echo 1 ;;
        hw.clockrate) echo 2400 ;;
        kern.clockrate) echo '{ hz = 1000, tick = 1000, profhz = 8128, stathz = 100 }' ;;
        kern.cp_times)
            awk '/^cpu[0-9]/ { printf "%s%d %d %d %d %d", sep, $2, $3, $4, $7 + $8, $5 + $6; sep = " " } END { print "" }' \
                /proc/stat ;;
        net.inet.ip.forwarding) cat /proc/sys/net/ipv4/ip_forward ;;
        net.inet6.ip6.forwarding) cat /proc/sys/net/ipv6/conf/all/forwarding ;;
        kern.random.harvest.mask) cat "$boot/$1" ;;
        dev.eth.[12].iflib.simple_tx) tunable "$1" || echo 0 ;;
        *) fail "unknown oid '$1'" ;;
    esac
}
address() { ip -o -4 address show dev "$1" | awk '{ split($4, a, "/"); print a[1], a[2] }'; }
case $asked in
    'sysctl -n '*) questions; value "$2" ;;
    'sysctl -aeW')
        questions
        for name in net.inet.ip.forwarding net.inet6.ip6.forwarding kern.random.harvest.mask; do
            echo "$name=$(value $name)"
        done ;;
    'sysctl -aeT')
        questions
        for name in dev.eth.1.iflib.simple_tx dev.eth.2.iflib.simple_tx; do echo "$name=$(value $name)"; done ;;
    'sysctl net.inet.ip.forwarding='*) changes; echo "${1#*=}" > /proc/sys/net/ipv4/ip_forward ;;
    'sysctl kern.random.harvest.mask='*) changes; echo "${1#*=}" > "$boot/kern.random.harvest.mask" ;;
    'ifconfig '*' inet '*' alias') changes; ip address add "$3" dev "$1" ;;
    'ifconfig '*' inet '*' -alias')
        changes
        length=$(address "$1" | awk -v wanted="$3" '$1 == wanted { print $2 }')
        ip address delete "$3/$length" dev "$1" ;;
    'ifconfig '*' '*) fail "what is $asked" ;;
    'ifconfig '*)
        questions
        [ -e "/sys/class/net/$1" ] || fail "interface $1 does not exist"
        echo "$1: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500"
        printf '\toptions=4e507bb<RXCSUM,TXCSUM,TSO4,LRO>\n\tether %s\n' "$(cat "/sys/class/net/$1/address")"
        address "$1" | while read -r inet length; do
            printf '\tinet %s netmask 0xffffff00 broadcast 198.18.0.255\n' "$inet"
        done
        printf '\tmedia: Ethernet autoselect (10Gbase-SR <full-duplex,rxpause,txpause>)\n'
        [ "$(cat "/sys/class/net/$1/carrier")" = 1 ] && status=active || status='no carrier'
        printf '\tstatus: %s\n' "$status" ;;
    'route -n -4 get default')
        questions
        interface=$(ip -4 route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p')
        [ "$interface" ] || fail 'route has not been found'
        printf '   route to: default\n  interface: %s\n      flags: <UP,GATEWAY,DONE,STATIC>\n' "$interface" ;;
    'route -n -6 get default') questions; fail 'route has not been found' ;;
    'route -q -4 add -net '*) changes; ip route add "$5" via "$6" ;;
    'route -q -4 delete -net '*) changes; ip route delete "$5" via "$6" ;;
    'arp -S '*)
        changes
        interface=$(ip route get "$2" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
        ip neigh replace "$2" lladdr "$3" dev "$interface" nud permanent ;;
    'arp -d '*)
        changes
        interface=$(ip route get "$2" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
        ip neigh delete "$2" dev "$interface" ;;
    'arp -an')
        questions
        ip -4 neigh show nud permanent | while read -r address dev interface lladdr mac state; do
            echo "? ($address) at $mac on $interface permanent [ethernet]"
        done ;;
    'ndp -an') questions; echo 'Neighbor                        Linklayer Address  Netif Expire    S Flags' ;;
    'netstat -rn -f inet')
        questions
        printf 'Routing tables\n\nInternet:\nDestination        Gateway            Flags     Netif Expire\n'
        ip -4 route show | sed -n 's/^\([^ ]*\) via \([^ ]*\) dev \([^ ]*\).*/\1 \2 UGS \3/p' ;;
    'netstat -rn -f inet6')
        questions
        printf 'Routing tables\n\nInternet6:\nDestination        Gateway            Flags     Netif Expire\n' ;;
    'netstat -s -p ip')
        questions
        printf 'ip:\n\t123 total packets received\n\t0 bad header checksums\n\t0 packets not forwardable\n' ;;
    'netstat -Q') questions; printf 'Workstreams:\nWSID CPU   Name     Len WMark   Disp%sd  HDisp%sd   QDrops   Queued  Handled\n   0   0   ip         0     1        1        0        0        1        2\n' "'" "'" ;;
    'netstat -i -b -n -d -W -I '*)
        questions
        counter() { cat "/sys/class/net/$interface/statistics/$1"; }
        interface=$7
        echo 'Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop'
        echo "$7 1500 <Link#1> 02:00:00:00:00:01 $(counter rx_packets) 0 $(counter rx_dropped) $(counter rx_bytes)" \
            "$(counter tx_packets) 0 $(counter tx_bytes) 0 $(counter tx_dropped)" ;;
    kenv) questions; cat "$boot/kenv" ;;
    'kenv -q '*) questions; tunable "$2" ;;
    kldstat)
        questions
        printf 'Id Refs Address                Size Name\n 1   14 0xffffffff80200000  2465d28 kernel\n' ;;
    'kldstat -q -m hwpmc') questions ;;
    # Of two CPUs one forwards.
    'pmcstat -n '*' -S unhalted-cycles -l '*' -O '*) changes; sleep "$6"; echo samples > "$8" ;;
    'pmcstat -R '*' -z 32 -G '*)
        [ "$(cat "$2")" = samples ] || fail 'no log'
        {
            printf '@ CPU_CLK_UNHALTED.THREAD_P [300 samples]\n\n90.00%%  [270]      ip_tryforward @ /boot/kernel/kernel\n'
            printf ' 100.0%%  [270]       ether_demux\n\n10.00%%  [30]       acpi_cpu_c1 @ /boot/kernel/kernel\n\n'
            printf '@ CPU_CLK_UNHALTED.THREAD_P [7 samples]\n\n100.0%%  [7]        sched_idletd @ /boot/kernel/kernel\n\n'
        } > "$6" ;;
    'uname -v') questions; echo 'FreeBSD 15.0-CURRENT #0 main-n277567: Tue Nov 14 22:13:20 UTC 2023' ;;
    # nanobsd: the root can be read only, but for the moment when something is written.
    'mount -p')
        questions
        printf '/dev/ufs/BSDRPs1a\t/\tufs\t%s\t1 1\n' "$([ -e "$boot/writable" ] && echo rw || echo ro)" ;;
    'mount -uw /') changes; touch "$boot/writable" ;;
    'mount -ur /') changes; rm "$boot/writable" ;;
    'shutdown -r now')
        changes
        [ ! -e "$boot/writable" ] || fail 'a root that can be written to would panic the next boot'
        exec /run/testlab/bin/reboot ;;
    *) questions; fail "this stand-in does not know: $asked" ;;
esac
