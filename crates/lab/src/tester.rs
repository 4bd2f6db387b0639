//! What sends and counts the frames here: the best that works.

use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{AddressFamily, Direction, Tester, Traffic};
use fwdlab_traffic::{
    CountingProgram, RunningSender, Sender, SenderPort, drop_control, ebpf_refusal,
};

use crate::topology::receiving;
use crate::{LabError, Topology};

/// Frames by which a socket shows that it sends.
const PROOF_FRAMES: u32 = 64;

/// How long they may take.
const PROOF_TIME_MAX: Duration = Duration::from_millis(500);

/// The tester, and why it is not a better one.
#[derive(Clone, Debug)]
pub struct TesterChoice {
    /// How frames are sent and counted.
    pub tester: Tester,
    /// What would have been better, and why this process cannot have it.
    pub refused: Vec<(Tester, String)>,
}

impl TesterChoice {
    /// Tries one after the other, the best first.
    ///
    /// # Errors
    /// When the lab cannot be made at all, or none works: then the last one's error.
    pub(crate) fn probe() -> Result<Self, LabError> {
        let Some(refusal) = ebpf_refusal() else {
            return Ok(Self {
                tester: Tester::Ebpf,
                refused: Vec::new(),
            });
        };
        let mut refused = vec![(Tester::Ebpf, refusal.to_string())];
        let mut topology = Topology::build()?;
        let [others @ .., last] = Tester::SOCKETS;
        for tester in others {
            match prove(tester, &mut topology) {
                Ok(()) => return Ok(Self { tester, refused }),
                Err(error) => refused.push((tester, error.to_string())),
            }
        }
        prove(last, &mut topology)?;
        Ok(Self {
            tester: last,
            refused,
        })
    }
}

/// Has a sender send some frames, which the interface has to count.
fn prove(tester: Tester, topology: &mut Topology) -> Result<(), LabError> {
    let frames = topology.frames(AddressFamily::Inet, &Traffic::default())?;
    let interface = topology.generator_interface();
    let mut sender = topology.tester().run(|| {
        let port = SenderPort::open(tester, interface)?;
        Sender::load(&port, &frames)
    })??;
    sender.send(PROOF_FRAMES)?;
    let deadline = Instant::now() + PROOF_TIME_MAX;
    loop {
        let sent = sender.offered_frames()?;
        if sent == u64::from(PROOF_FRAMES) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(LabError::SenderSilent {
                sender: tester.sender(),
                handed_over: PROOF_FRAMES,
                sent,
            });
        }
        sleep(Duration::from_millis(1));
    }
}

/// What ends every frame as it comes in at the DUT, so that what is left is the generator's own cost.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of them, and it is not moved"
)]
pub(crate) enum IngressControl {
    /// An XDP program on the DUT's receiving interfaces drops it.
    Xdp(CountingProgram),
    /// The generator addresses it to another station, and the DUT's IP stack drops it at its first
    /// look.
    OtherStation,
}

impl IngressControl {
    pub(crate) fn new(tester: Tester) -> Result<Self, LabError> {
        Ok(match tester {
            Tester::Ebpf => {
                let mut control = drop_control()?;
                control.xdp.park()?;
                Self::Xdp(control)
            }
            _ => Self::OtherStation,
        })
    }

    /// From now on no frame is forwarded.
    pub(crate) fn begin(
        &mut self,
        topology: &Topology,
        direction: Direction,
        running: &RunningSender,
    ) -> Result<(), LabError> {
        match (self, running) {
            (Self::Xdp(control), _) => {
                for interface in receiving(direction) {
                    topology
                        .dut()
                        .run(|| control.xdp.attach_to_stay(interface))??;
                }
            }
            (Self::OtherStation, RunningSender::Socket(running)) => running.misaddress(true),
            (Self::OtherStation, RunningSender::Ebpf(_)) => {
                unreachable!("sender and control are of one tester")
            }
        }
        Ok(())
    }

    /// From now on frames are forwarded again.
    pub(crate) fn end(&mut self, running: &RunningSender) -> Result<(), LabError> {
        match (self, running) {
            (Self::Xdp(control), _) => control.xdp.detach()?,
            (Self::OtherStation, RunningSender::Socket(running)) => running.misaddress(false),
            (Self::OtherStation, RunningSender::Ebpf(_)) => {}
        }
        Ok(())
    }

    /// Frames that it has ended.
    pub(crate) fn frames(&self, topology: &mut Topology) -> Result<u64, LabError> {
        match self {
            Self::Xdp(control) => Ok(control.frames(0)?),
            Self::OtherStation => topology.misaddressed_frames(),
        }
    }
}
