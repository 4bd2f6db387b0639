//! The network around the router: the same links, addresses and routes that the `netns` lab has.

use fwdlab_model::AddressFamily;
use fwdlab_router::{NeighbourConfig, NetworkConfig, PortConfig, RouteConfig};

use crate::addresses::{
    DUT_IN_MAC, DUT_OUT_MAC, SINK_MAC, TESTER_OUT_MAC, addresses, own_prefixes, spread_prefixes,
};

/// Bytes of the longest IP packet on either link.
const MTU: u16 = 1500;

/// The lab's own routes through a next hop, to the sources and to the destinations.
pub(super) const OWN_ROUTES: u32 = 2;

/// Two ports, and in each family so many routes, the lab's own among them.
pub(super) fn network(routes: u32) -> NetworkConfig {
    let families = [AddressFamily::Inet, AddressFamily::Inet6];
    let of_both = families.map(addresses);
    let port = |mac, addresses: Vec<_>| PortConfig {
        mac,
        addresses,
        mtu: MTU,
    };
    let mut config = NetworkConfig {
        ports: vec![
            port(DUT_IN_MAC, of_both.iter().map(|of| of.dut_in).collect()),
            port(DUT_OUT_MAC, of_both.iter().map(|of| of.dut_out).collect()),
        ],
        ..NetworkConfig::default()
    };
    for (family, of) in families.into_iter().zip(of_both) {
        for (port, address, mac) in [(0, of.generator, TESTER_OUT_MAC), (1, of.sink, SINK_MAC)] {
            let neighbour = NeighbourConfig { port, address, mac };
            config.neighbours.push(neighbour);
        }
        let route = |prefix, gateway| RouteConfig { prefix, gateway };
        config.routes.push(route(of.sources, of.generator));
        config.routes.push(route(of.destinations, of.sink));
        let avoided = own_prefixes(family);
        let others =
            spread_prefixes(family, &avoided).take(routes.saturating_sub(OWN_ROUTES) as usize);
        let gateway = of.sink;
        config
            .routes
            .extend(others.map(|prefix| route(prefix, gateway)));
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_router::Network;

    #[test]
    fn a_network_of_any_size_can_be_built() {
        for routes in [2, 3, 1000] {
            let config = network(routes);
            assert_eq!(config.routes.len(), 2 * routes as usize);
            Network::build(&config).unwrap();
        }
    }
}
