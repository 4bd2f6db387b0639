/// Why no ICMP message is sent about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The frame was for several stations: every router on the link would
    /// answer.
    LinkGroup,
    /// The packet is for several hosts.
    DestinationGroup,
    /// The sender's address is not that of one host.
    Source,
    /// The packet is a fragment, and not the first one.
    Fragment,
    /// The packet is an ICMP error itself, or an ICMP message that may be one.
    IcmpError,
}
