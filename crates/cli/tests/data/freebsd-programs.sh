#!/bin/sh
# Stands in for FreeBSD's programs, by the name that it is called: what is simple is done by the Linux kernel of the
# namespace, the rest stands in files. What is asked and what is changed is written down in the host's home folder.
asked=${0##*/}${*:+ $*}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
home=/run/testlab/disk/home
boot=/run/freebsd
# Read by the shell itself where it is one file: tests call these programs some thousand times.
cat() {
    [ $# = 1 ] || { command cat "$@"; return; }
    while IFS= read -r line || [ "$line" ]; do printf '%s\n' "$line"; done < "$1"
}
# Its card: two ports of a driver of iflib's, but for cxl. One that the test does not name has units as the ports' names have.
card=$(cat "$home/card" 2>/dev/null || echo eth)
[ "$card" = eth ] && units='1 2' || units='0 1'
# What its CPU counts cycles by: an Atom's events are those of lib/libpmc/pmu-events/arch/x86/silvermont, and that of the alias
# `unhalted-cycles` (libpmc_pmu_util.c, pmu_intel_alias_table) is not there; pmu_amd_alias_table does not have that alias.
[ "$card" = ixl ] && event=ls_not_halted_cyc || event=cpu_clk_unhalted.core_p
# There it is one of nanobsd: with two slices, or partitions of a GPT, and what is kept of /etc. A stock one has neither
# BSDRP's `upgrade` nor its `config`.
nanobsd=$home/nanobsd
is_gpt() { [ -e "$nanobsd/gpt" ]; }
root() { if is_gpt; then echo "gpt/BSDRP$(slice)"; else echo "ufs/BSDRPs$(slice)a"; fi; }
slice() { cat "$boot/slice" 2>/dev/null || echo 1; }
# nanobsd's /etc is a copy in memory, of the slice and of what was kept; the other slice has a /boot of its own.
boot_nanobsd() {
    cp "$nanobsd/active" "$boot/slice"
    mkdir "$boot/base" "$boot/work" "$boot/sbin"
    echo "/dev/$(root) / ufs ro 1 1" > "$boot/base/fstab"
    cp -a "$nanobsd/cfg" "$boot/etc"
    mount -t overlay etc -o "lowerdir=$boot/base:/etc,upperdir=$boot/etc,workdir=$boot/work" /etc
    [ -e "$nanobsd/stock" ] || ln -s /run/testlab/bin/config /run/testlab/bin/upgrade "$boot/sbin"
    mount --bind "$boot/sbin" /usr/local/sbin
    [ "$(slice)" = 1 ] || mount --bind "$nanobsd/slice2/boot" /boot
    grep -q "$(root)" /etc/fstab || echo 'its fstab is that of the other slice' >> "$home/changes"
    [ ! -e "$boot/etc/rc.conf" ] || (. /etc/rc.conf && set_up)
}
# What rc.conf asks for.
set_up() {
    [ "$gateway_enable" != YES ] || echo 1 > /proc/sys/net/ipv4/ip_forward
    ip address add "${ifconfig_eth1#inet }" dev eth1
    ip address add "${ifconfig_eth2#inet }" dev eth2
    for name in $static_routes; do
        eval "set -- \$route_$name"
        ip route add "$2" via "$3"
    done
    for name in $static_arp_pairs; do
        eval "set -- \$static_arp_$name"
        ip neigh replace "$1" lladdr "$2" nud permanent dev "$(interface_to "$1")"
    done
}
interface_to() { ip route get "$1" | sed -n 's/.* dev \([^ ]*\).*/\1/p'; }
has_begun=
if [ ! -e "$boot" ] && mkdir "$boot" 2>/dev/null; then
    has_begun=yes
    # The first program after a boot finds what the loader has read.
    echo "$(($(cat "$home/boots" 2>/dev/null || echo 0) + 1))" > "$home/boots"
    [ ! -e "$nanobsd" ] || boot_nanobsd
    sed -n 's/^\([a-z][^= ]*=".*"\)$/\1/p' /boot/loader.conf.local > "$boot/kenv" 2>/dev/null
    [ ! -e "$nanobsd" ] || echo "vfs.root.mountfrom=\"ufs:/dev/$(root)\"" >> "$boot/kenv"
    { [ -e "$home/older" ] && echo 66047 || echo 135647; } > "$boot/kern.random.harvest.mask"
    # sys/netinet6/nd6.c, nd6_ifattach: IPv6 is off on each port that rc.conf gives none.
    touch "$boot/eth1.ifdisabled" "$boot/eth2.ifdisabled"
    # What is to boot once.
    mv /boot/nextboot.conf "$boot/kernel" 2>/dev/null || echo kernel > "$boot/kernel"
    mv "$home/activated" "$boot/environment" 2>/dev/null || echo default > "$boot/environment"
fi
changes() { echo "$asked" >> "$home/changes"; }
questions() { echo "$asked" >> "$home/questions"; }
fail() { echo "${asked%% *}: $*" >&2; exit 1; }
tunable() {
    found=
    while IFS= read -r line; do
        case $line in "$1=\""*) found=${line#*=\"} ;; esac
    done < "$boot/kenv"
    [ "$found" ] && echo "${found%\"}"
}
# How many descriptors a ring has of which so many were asked for: sys/net/iflib.c, iflib_reset_qvalues, with the numbers of
# sys/dev/ixgbe/ixgbe.h.
ring() {
    number=$(tunable "dev.$card.$1.iflib.$2" || echo 0)
    [ "$number" != 0 ] || number=2048
    [ "$number" -ge 64 ] || number=64
    [ "$number" -le 4096 ] || number=4096
    [ $((number & number - 1)) = 0 ] || number=2048
    echo "$number"
}
# The same file, iflib_device_register; libexec/rc/rc.d/dmesg keeps it.
if [ "$has_begun" ] && [ "$card" != cxl ]; then
    mkdir -p /var/run
    for unit in $units; do
        echo "$card$unit: Using $(ring "$unit" override_ntxds) TX descriptors and $(ring "$unit" override_nrxds) RX descriptors"
    done > /var/run/dmesg.boot
fi
# Sysctls that hold a value and nothing else: who can set them, the loader ("tunable"), sysctl(8), or both, and what they are by
# themselves. sys/net/iflib.c, iflib_add_device_sysctl_pre and iflib_add_device_sysctl_post; disable_prefetch is of a patch.
# sys/x86/x86/mp_x86.c; sys/netinet/ip_input.c; sys/netinet6/in6_proto.c.
kind() {
    how=
    case $1 in
        dev.cxl.*) ;;
        "dev.$card".["$units"].iflib.*)
            case ${1##*.} in
                simple_tx | use_logical_cores | disable_prefetch) how='tunable 0' ;;
                override_n[tr]xds | tx_abdicate | tx_reclaim_thresh) how='both 0' ;;
            esac ;;
        machdep.hyperthreading_allowed) how='tunable 1' ;;
        machdep.hyperthreading_intr_allowed) how='tunable 0' ;;
        net.inet.ip.redirect | net.inet6.ip6.redirect) how='sysctl 1' ;;
    esac
    [ "$how" ] || fail "unknown oid '$1'"
}
of_ports() { [ "$card" = cxl ] || for unit in $units; do for name; do echo "dev.$card.$unit.iflib.$name"; done; done; }
value() {
    case $1 in
        kern.boottime)
            echo "{ sec = $((1700000000 + 60 * $(cat "$home/boots"))), usec = 123456 } Tue Nov 14 22:13:20 2023" ;;
        kern.osreldate) [ -e "$home/older" ] && echo 1104001 || echo 1500068 ;;
        kern.bootfile) echo "/boot/$(cat "$boot/kernel")/kernel" ;;
        kern.conftxt) printf 'options\tINET\noptions\tINET6\nident\tGENERIC\n' ;;
        hw.ncpu) echo 8 ;;
        kern.smp.maxid) echo 7 ;;
        # sys/kern/subr_bus.c, device_sysctl_init: a device has a domain where its bus tells one.
        vm.ndomains) cat "$home/domains" 2>/dev/null || echo 1 ;;
        dev.eth.2.%domain) [ -e "$home/domains" ] || fail "unknown oid '$1'"; echo 1 ;;
        hw.model)
            [ "$card" = ixl ] && echo 'AMD Ryzen 7 PRO 8845HS' || echo 'Intel(R) Atom(TM) CPU  C2758  @ 2.40GHz' ;;
        kern.vm_guest) echo none ;;
        kern.timecounter.hardware) echo TSC ;;
        vm.loadavg) echo '{ 0.10 0.20 0.30 }' ;;
        net.fibs) echo 1 ;;
        net.isr.maxthreads | net.isr.bindthreads) echo 1 ;;
        hw.clockrate) echo 2400 ;;
        kern.clockrate) echo '{ hz = 1000, tick = 1000, profhz = 8128, stathz = 100 }' ;;
        kern.cp_times)
            awk '/^cpu[0-9]/ { printf "%s%d %d %d %d %d", sep, $2, $3, $4, $7 + $8, $5 + $6; sep = " " } END { print "" }' \
                /proc/stat ;;
        net.inet.ip.forwarding) cat /proc/sys/net/ipv4/ip_forward ;;
        net.inet6.ip6.forwarding) cat /proc/sys/net/ipv6/conf/all/forwarding ;;
        kern.random.harvest.mask) cat "$boot/$1" ;;
        net.inet.ip.fw.default_to_accept) filter; echo 1 ;;
        net.inet.ip.fw.enable | net.inet6.ip6.fw.enable) filter; cat "$boot/$1" 2>/dev/null || echo 1 ;;
        *)
            kind "$1"
            if [ -e "$boot/$1" ]; then cat "$boot/$1"; else tunable "$1" || echo "${how#* }"; fi ;;
    esac
}
values() { for name; do echo "$name=$(value "$name")"; done; }
address() { ip -o "${2:--4}" address show dev "$1" scope global | awk '{ split($4, a, "/"); print a[1], a[2], / tentative/ ? "tentative" : "" }'; }
# The address that a port gets by itself.
has_link_local() { [ -e "$boot/$1.linklocal" ]; }
is_set_up() { [ $(($(cat "/sys/class/net/$1/flags") & 1)) = 1 ]; }
# A link that the test slows down comes only so many seconds after its port was set up.
has_come() { [ ! -e "$home/slow" ] || [ "$(date +%s)" -ge $(($(cat "$boot/up.$1" 2>/dev/null || echo 0) + $(cat "$home/slow"))) ]; }
# An interface, as `ifconfig` shows it. Of its link it tells what the driver does, in these words (sbin/ifconfig/ifmedia.c,
# media_status); a port that is down has none.
shown() {
    if is_set_up "$1"; then
        echo "$1: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500"
    else
        echo "$1: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500"
    fi
    printf '\toptions=4e507bb<RXCSUM,TXCSUM,TSO4,LRO>\n\tether %s\n' "$(cat "/sys/class/net/$1/address")"
    address "$1" | while read -r inet length; do
        printf '\tinet %s netmask 0x%x broadcast 198.18.0.255\n' "$inet" $((0xffffffff << (32 - length) & 0xffffffff))
    done
    { has_link_local "$1" && echo "fe80::1%$1 64" || :; address "$1" -6; } | while read -r inet6 length tentative; do
        [ ! -e "$boot/$1.ifdisabled" ] || tentative=tentative
        printf '\tinet6 %s prefixlen %s%s\n' "$inet6" "$length" "${tentative:+ $tentative}"
    done
    printf '\tmedia: Ethernet autoselect (10Gbase-SR <full-duplex,rxpause,txpause>)\n'
    [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ] && has_come "$1" && status=active || status='no carrier'
    printf '\tstatus: %s\n' "$status"
    [ -e "$boot/$1.ifdisabled" ] && nd6='29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>' || nd6='21<PERFORMNUD,AUTO_LINKLOCAL>'
    printf '\tnd6 options=%s\n' "$nd6"
    for path in "/sys/class/net/$1"/lower_*; do
        [ ! -e "$path" ] || printf '\tmember: %s flags=143<LEARNING,DISCOVER,AUTOEDGE,AUTOPTP>\n' "${path##*/lower_}"
    done
}
# Packet filters, which are loaded where the test says so.
filter() { [ -e "$home/filters" ] || fail 'not loaded'; }
is_on() { [ -e "$boot/$1.on" ]; }
rules() { cat "$boot/$1.rules" 2>/dev/null || :; }
case $asked in
    'sysctl -n '*) questions; value "$2" ;;
    'sysctl -aeW')
        questions
        [ ! -e "$home/older" ] || fail 'illegal option -- W'
        values net.inet.ip.forwarding net.inet6.ip6.forwarding kern.random.harvest.mask net.inet.ip.redirect \
            net.inet6.ip6.redirect $(of_ports override_ntxds override_nrxds tx_abdicate tx_reclaim_thresh) ;;
    'sysctl -aeT')
        questions
        [ ! -e "$home/older" ] || fail 'illegal option -- T'
        values machdep.hyperthreading_allowed machdep.hyperthreading_intr_allowed \
            $(of_ports simple_tx use_logical_cores disable_prefetch override_ntxds override_nrxds tx_abdicate) ;;
    'sysctl -e net')
        questions
        values net.inet.ip.forwarding net.inet6.ip6.forwarding net.inet.ip.fw.enable net.inet6.ip6.fw.enable ;;
    'sysctl -e hw') questions; values hw.ncpu ;;
    'sysctl -e kern.random') questions; values kern.random.harvest.mask ;;
    'sysctl -e machdep') questions; values machdep.hyperthreading_allowed ;;
    'sysctl -e dev.eth') questions; values dev.eth.1.iflib.simple_tx dev.eth.2.iflib.simple_tx ;;
    'sysctl net.inet.ip.forwarding='*) changes; echo "${1#*=}" > /proc/sys/net/ipv4/ip_forward ;;
    'sysctl net.inet6.ip6.forwarding='*) changes; echo "${1#*=}" > /proc/sys/net/ipv6/conf/all/forwarding ;;
    # sys/dev/random/random_harvestq.c, random_check_uint_harvestmask: of 15 the bits of NET_ETHER, UMA and of hardware
    # (from 13 on) stay as they were, of 11 none does.
    'sysctl kern.random.harvest.mask='*)
        changes
        asked=${1#*=} stood=$(value "${1%=*}")
        [ -e "$home/older" ] && kept=0 || kept=$((0xffffe420))
        [ "$asked" -lt $((1 << 30)) ] || fail "${1%=*}=$asked: Invalid argument"
        echo $((asked & ~kept | stood & kept)) > "$boot/${1%=*}" ;;
    'sysctl net.inet.ip.fw.enable='*' net.inet6.ip6.fw.enable='*)
        changes
        filter
        for switch; do echo "${switch#*=}" > "$boot/${switch%=*}"; done ;;
    'sysctl '*=*)
        changes
        for setting; do
            name=${setting%%=*} wanted=${setting#*=}
            kind "$name"
            # sbin/sysctl/sysctl.c, parse.
            [ "${how% *}" != tunable ] || fail "oid '$name' is a read only tunable"
            case $name in
                # sys/net/iflib.c, iflib_handle_tx_reclaim_thresh.
                *.tx_reclaim_thresh)
                    unit=${name%.iflib*}
                    [ "$wanted" -le $(($(ring "${unit##*.}" override_ntxds) / 2)) ] || fail "$setting: Invalid argument" ;;
            esac
            echo "$wanted" > "$boot/$name"
        done ;;
    'ifconfig '*' inet '*' alias') changes; ip address add "$3" dev "$1" ;;
    # sys/netinet6/in6.c, in6_control: the flag goes; sys/netinet6/nd6.c, nd6_ioctl: a link-local address comes.
    'ifconfig '*' inet6 '*' alias')
        changes
        ip address add "$3" dev "$1"
        [ ! -e "$boot/$1.ifdisabled" ] || mv "$boot/$1.ifdisabled" "$boot/$1.linklocal" ;;
    'ifconfig '*' inet6 fe80::1%'*' -alias') changes; rm "$boot/$1.linklocal" ;;
    'ifconfig '*' inet6 ifdisabled') changes; touch "$boot/$1.ifdisabled" ;;
    'ifconfig '*' inet6') questions; shown "$1" | grep -v '^	inet ' ;;
    'ifconfig '*' inet '*' -alias' | 'ifconfig '*' inet6 '*' -alias')
        changes
        [ "$2" = inet ] && family=-4 || family=-6
        length=$(address "$1" $family | awk -v wanted="$3" '$1 == wanted { print $2 }')
        ip address delete "$3/$length" dev "$1" ;;
    # sys/netinet6/in6.c, in6_if_up: a link-local address comes, unless IPv6 is off.
    'ifconfig '*' up')
        changes
        date +%s > "$boot/up.$1"
        [ -e "$boot/$1.ifdisabled" ] || touch "$boot/$1.linklocal"
        ip link set dev "$1" up ;;
    'ifconfig '*' down') changes; ip link set dev "$1" down ;;
    dmesg) questions; cat "$home/dmesg" 2>/dev/null || : ;;
    'ifconfig -C') questions; echo 'bridge epair gif lagg lo tap tun vlan' ;;
    'ifconfig '*' '*) fail "what is $asked" ;;
    'ifconfig '*)
        questions
        [ -e "/sys/class/net/$1" ] || fail "interface $1 does not exist"
        shown "$1" ;;
    ifconfig) questions; for path in /sys/class/net/*; do shown "${path##*/}"; done ;;
    'route -n -'[46]' get '*)
        questions
        way=$(ip -o "$2" route get "$4") || fail 'route has not been found'
        printf '   route to: %s\n' "$4"
        case $way in *' via '*) echo '    gateway: 198.18.0.254' ;; esac
        printf '  interface: %s\n      flags: <UP,DONE,STATIC>\n' "$(echo "$way" | sed -n 's/.* dev \([^ ]*\).*/\1/p')" ;;
    'route -q -'[46]' add -net '*) changes; ip "$2" route add "$5" via "$6" ;;
    'route -q -'[46]' delete -net '*) changes; ip "$2" route delete "$5" via "$6" ;;
    'arp -S '* | 'ndp -s '*)
        changes
        ip neigh replace "$2" lladdr "$3" dev "$(interface_to "$2")" nud permanent ;;
    'arp -d '* | 'ndp -d '*) changes; ip neigh delete "$2" dev "$(interface_to "$2")" ;;
    'arp -an')
        questions
        ip -4 neigh show nud permanent | while read -r address dev interface lladdr mac state; do
            echo "? ($address) at $mac on $interface permanent [ethernet]"
        done ;;
    'ndp -an')
        questions
        echo 'Neighbor                        Linklayer Address  Netif Expire    S Flags'
        ip -6 neigh show nud permanent | while read -r address dev interface lladdr mac state; do
            echo "$address $mac $interface permanent R"
        done
        for port in eth1 eth2; do ! has_link_local $port || echo "fe80::1%$port 02:00:00:00:00:01 $port permanent R"; done ;;
    'netstat -rn -f inet')
        questions
        printf 'Routing tables\n\nInternet:\nDestination        Gateway            Flags     Netif Expire\n'
        ip -4 route show | sed -n 's/^\([^ ]*\) via \([^ ]*\) dev \([^ ]*\).*/\1 \2 UGS \3/p' ;;
    'netstat -rn -f inet6')
        questions
        printf 'Routing tables\n\nInternet6:\nDestination        Gateway            Flags     Netif Expire\n'
        ip -6 route show | sed -n 's/^\([^ ]*\) via \([^ ]*\) dev \([^ ]*\).*/\1 \2 UGS \3/p'
        for port in eth1 eth2; do ! has_link_local $port || echo "fe80::1%$port link#1 UHS lo0"; done ;;
    'netstat -rnW')
        questions
        for family in '-4 Internet' '-6 Internet6'; do
            printf '%s:\nDestination        Gateway            Flags     Netif Expire\n' "${family#* }"
            ip "${family% *}" route show | sed -n 's/^\([^ ]*\) via \([^ ]*\) dev \([^ ]*\).*/\1 \2 UGS \3/p'
        done ;;
    'sockstat -46cw -P tcp')
        questions
        echo 'USER     COMMAND    PID   FD  PROTO  LOCAL ADDRESS         FOREIGN ADDRESS'
        ss -Htn state established '( sport = :22 )' | while read -r received sent local peer; do
            echo "root     sshd       812   4   tcp4   $local $peer"
        done ;;
    'netstat -s -p ip')
        questions
        printf 'ip:\n\t123 total packets received\n\t0 bad header checksums\n\t0 packets not forwardable\n' ;;
    'netstat -s -p ip6') questions; printf 'ip6:\n\t123 total packets received\n\t0 packets not forwardable\n' ;;
    'netstat -Q') questions; printf 'Workstreams:\nWSID CPU   Name     Len WMark   Disp%sd  HDisp%sd   QDrops   Queued  Handled\n   0   0   ip         0     1        1        0        0        1        2\n' "'" "'" ;;
    'netstat -i -b -n -d -W -I '*)
        questions
        counter() { read -r "$1" < "/sys/class/net/$interface/statistics/$1"; }
        interface=$7
        for name in rx_packets rx_dropped rx_bytes tx_packets tx_bytes tx_dropped; do counter $name; done
        echo 'Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop'
        echo "$7 1500 <Link#1> 02:00:00:00:00:01 $rx_packets 0 $rx_dropped $rx_bytes $tx_packets 0 $tx_bytes 0 $tx_dropped" ;;
    kenv) questions; cat "$boot/kenv" ;;
    'kenv -q '*) questions; tunable "$2" ;;
    # usr.bin/cpuset/cpuset.c, main, printset: of eight CPUs a domain has four, and no number is 0.
    'cpuset -g -d '*)
        questions
        case $3 in
            '' | 0) echo 'domain 0 mask: 0, 1, 2, 3' ;;
            1) echo 'domain 1 mask: 4, 5, 6, 7' ;;
            *) fail 'getaffinity: No such process' ;;
        esac ;;
    kldstat)
        questions
        printf 'Id Refs Address                Size Name\n 1   14 0xffffffff80200000  2465d28 kernel\n' ;;
    'kldstat -q -m hwpmc') questions ;;
    # Of eight CPUs the second and the fourth forward, the first idles, and the others sleep.
    'pmcstat -L') questions; printf '\tbr_inst_retired.all_branches\n\t%s\n' "$event" ;;
    'pmcstat -n '*" -S $event -l "*' -O '*) changes; sleep "$6"; echo samples > "$8" ;;
    'pmcstat -n '*' -S '*)
        changes
        fail "ERROR: Cannot allocate system-mode pmc with specification \"$4\": Invalid argument" ;;
    'pmcstat -R '*' -c '*' -z 32 -G '*)
        [ "$(cat "$2")" = samples ] || fail 'no log'
        echo 'CONVERSION STATISTICS:'
        case $4 in
            0) printf '@ %s [7 samples]\n\n100.0%%  [7]        sched_idletd @ /boot/kernel/kernel\n\n' "$event" ;;
            [13])
                printf '@ %s [150 samples]\n\n90.00%%  [135]      ip_tryforward @ /boot/kernel/kernel\n' "$event"
                printf ' 100.0%%  [135]       ether_demux\n\n10.00%%  [15]       acpi_cpu_c1 @ /boot/kernel/kernel\n\n' ;;
        esac > "$8" ;;
    # Asked only where a command may still be under way.
    'uname -s') echo FreeBSD ;;
    'uname -sr') questions; echo 'FreeBSD 15.0-CURRENT' ;;
    'uname -v')
        questions
        [ "$(slice)" = 2 ] && revision=$(cat "$nanobsd/slice2/image") || revision=main-n277567
        [ "$(cat "$boot/kernel")" = kernel ] || revision=$revision-$(cat "$boot/kernel")
        [ "$(cat "$boot/environment")" = default ] || revision=$revision-$(cat "$boot/environment")
        echo "FreeBSD 15.0-CURRENT #0 $revision: Tue Nov 14 22:13:20 UTC 2023" ;;
    # nanobsd: the root can be read only, but for the moment when something is written.
    'mount -p')
        questions
        printf '/dev/%s\t/\tufs\t%s\t1 1\n' "$(root)" "$([ -e "$boot/writable" ] && echo rw || echo ro)" ;;
    'mount -u -o current -w /') changes; touch "$boot/writable" ;;
    'mount -u -o current -r /') changes; rm "$boot/writable" ;;
    'glabel status')
        questions
        printf '          Name  Status  Components\n'
        if is_gpt; then
            printf '    gpt/BSDRP1     N/A  ada0p3\n    gpt/BSDRP2     N/A  ada0p4\n'
        else
            printf '  ufs/BSDRPs1a     N/A  ada0s1a\n  ufs/BSDRPs2a     N/A  ada0s2a\n'
        fi ;;
    'gpart set -a bootme -i '[34]' ada0') changes; echo $(($5 - 2)) > "$nanobsd/active" ;;
    'gpart unset -a bootme -i '[34]' ada0') changes ;;
    'gpart set -a active -i '[12]' ada0') changes; echo "$5" > "$nanobsd/active" ;;
    'boot0cfg -v ada0') questions ;;
    'boot0cfg -s '[12]' ada0') changes ;;
    # As BSDRP's does, where the system is on the first slice.
    upgrade)
        changes
        [ "$(slice)" = 1 ] || fail "the owner's system is on the other slice"
        mkdir -p "$nanobsd/slice2/boot"
        cat > "$nanobsd/slice2/image"
        cp /boot/loader.conf.local "$nanobsd/slice2/boot"
        sed -i -e s/BSDRPs1a/BSDRPs2a/ -e s/BSDRP1/BSDRP2/ /etc/fstab
        cp /etc/fstab "$nanobsd/cfg"
        echo 2 > "$nanobsd/active" ;;
    # As nanobsd's, to which all files of a slice are its own.
    updatep2)
        changes
        [ "$(slice)" = 1 ] || fail "it runs from the slice that it would write"
        mkdir -p "$nanobsd/slice2/boot"
        cat > "$nanobsd/slice2/image"
        echo 2 > "$nanobsd/active" ;;
    'config save') changes; rm -r "$nanobsd/cfg"; cp -a "$boot/etc" "$nanobsd/cfg" ;;
    'sha256 -q '*) questions; sha256sum "$2" | cut -d ' ' -f 1 ;;
    'nextboot -k '*) changes; echo "$2" > /boot/nextboot.conf ;;
    'bectl list -H')
        questions
        now=$(cat "$boot/environment")
        for name in default patched; do
            active=$([ $name != "$now" ] || printf N)$([ $name != default ] || printf R)
            printf '%s\t%s\t/\t1.2G\t2026-11-01 10:00\n' $name "${active:--}"
        done ;;
    'bectl activate -t patched') changes; echo patched > "$home/activated" ;;
    'bectl activate -T patched') changes; rm "$home/activated" ;;
    'pfctl -s info')
        questions
        filter
        is_on pf && echo 'Status: Enabled for 0 days 00:00:05' || echo 'Status: Disabled for 0 days 00:00:05' ;;
    'pfctl -s rules') questions; filter; rules pf ;;
    'pfctl -s nat' | 'pfctl -s Tables' | 'pfctl -s Anchors' | 'pfctl -v -s Interfaces') questions; filter ;;
    # sbin/pfctl/pfctl.c, main: newer ones refuse -T without -t.
    'pfctl -q -A -N -R -T load -t '*' -o none -f -') changes; filter; cat > "$boot/pf.rules" ;;
    'pfctl -q -e') changes; filter; ! is_on pf || fail 'pf already enabled'; touch "$boot/pf.on" ;;
    'pfctl -q -d') changes; filter; is_on pf || fail 'pf not enabled'; rm "$boot/pf.on" ;;
    # sbin/ipfw/ipfw2.c, show_static_rule
    'ipfw -S list')
        questions
        filter
        rules ipfw | sed '/ set /!s/ / set 0 /'
        echo '65535 set 31 allow ip from any to any' ;;
    'ipfw -q /dev/stdin')
        changes
        filter
        : > "$boot/ipfw.rules"
        # sbin/ipfw/main.c, ipfw_main: what is no command ends it.
        while read -r word rest; do
            case "$word $rest" in
                'add '[0-9]*) echo "000$rest" >> "$boot/ipfw.rules" ;;
                'add '*) fail "invalid action" ;;
                '-f flush' | 'table '*) ;;
                *) fail "bad command \`$word'" ;;
            esac
        done ;;
    'ipf -V')
        questions
        filter
        echo 'ipf: IP Filter: v5.1.2 (576)'
        is_on ipf && echo 'Running: yes' || echo 'Running: no' ;;
    'ipfstat -io') questions; filter; [ "$(rules ipf)" ] && rules ipf || echo 'empty list for ipfilter(in)' ;;
    # sys/netpfil/ipfilter/netinet/ip_fil_freebsd.c, ipfioctl: EIO while it is off; ipfdetach drops the rules.
    'ipf -Fa -f -') changes; filter; is_on ipf || fail 'ioctl(SIOCIPFFL): Input/output error'; cat > "$boot/ipf.rules" ;;
    'ipf -E') changes; touch "$boot/ipf.on" ;;
    'ipf -D') changes; rm -f "$boot/ipf.on" "$boot/ipf.rules" ;;
    'shutdown -r now')
        changes
        [ ! -e "$boot/writable" ] || fail 'a root that can be written to would panic the next boot'
        exec /run/testlab/bin/reboot ;;
    *) questions; fail "this stand-in does not know: $asked" ;;
esac
