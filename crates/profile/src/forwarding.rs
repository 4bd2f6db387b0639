//! Which functions forward packets.

/// How functions begin that are run for packets and hardly for anything else, on Linux and FreeBSD.
const BEGINNINGS: &[&str] = &[
    // Linux
    "[bpf]",
    "__dev_queue_xmit",
    "__ip_finish_output",
    "__netif_receive_skb",
    "bpf_prog_",
    "dev_hard_start_xmit",
    "eth_type_trans",
    "fib6_",
    "fib_",
    "ip6_finish_output",
    "ip6_forward",
    "ip6_output",
    "ip6_pol_route",
    "ip6_rcv",
    "ip_finish_output",
    "ip_forward",
    "ip_output",
    "ip_rcv",
    "ip_route_",
    "ip_sabotage",
    "ipv6_rcv",
    "napi_gro",
    "netif_receive_skb",
    "nf_",
    "nft_",
    "skb_",
    "veth_",
    "xdp_",
    // FreeBSD
    "bridge_",
    "ether_",
    "fib4_",
    "iflib_",
    "in6_",
    "ip6_input",
    "ip6_tryforward",
    "ip_input",
    "ip_tryforward",
    "ipf_",
    "ipfw_",
    "netisr_",
    "pf_",
];

/// The reference router's own functions.
const ROUTER: &str = "fwdlab_router::";

/// Whether a frame is a function that forwards; with its object before a backquote or without.
///
/// By its name alone: what has another name may forward as well.
#[must_use]
pub fn is_forwarding(frame: &str) -> bool {
    let symbol = frame.rsplit('`').next().unwrap_or(frame);
    symbol.contains(ROUTER) || BEGINNINGS.iter().any(|begin| symbol.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_is_what_handles_packets() {
        for forwards in [
            "ip_forward",
            "kernel`ip_tryforward",
            "nft_do_chain",
            "bpf_prog_6deef7357e7b4530_forward",
            "[bpf]",
            "<fwdlab_router::Worker>::poll",
        ] {
            assert!(is_forwarding(forwards), "{forwards}");
        }
        for other in ["do_idle", "pv_native_safe_halt", "main", "clear_page_erms"] {
            assert!(!is_forwarding(other), "{other}");
        }
    }
}
