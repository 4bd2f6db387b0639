//! Samples of what a CPU or a thread is doing: the stacks of the kernel and of the process, at a steady
//! frequency.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_RECORD_LOST,
    PERF_RECORD_LOST_SAMPLES, PERF_RECORD_SAMPLE, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, perf_event_attr,
    perf_event_mmap_page,
};
use perf_event_open_sys::{ioctls, perf_event_open};

use crate::SysError;
use crate::mapping::Mapping;

/// Sizes of the buffer to be tried, in pages: what holds seconds of samples, and what an ordinary user may
/// lock.
const BUFFER_PAGES: [usize; 3] = [2048, 512, 128];

/// Addresses from here on are no addresses: they say whose the next ones are.
const CONTEXTS: u64 = (-4095_i64).cast_unsigned();
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512_i64).cast_unsigned();

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// Whatever runs on a CPU, in the kernel and outside; for root.
    Cpu(u32),
    /// A thread of this process outside the kernel, wherever it runs; for everybody.
    Thread(u32),
}

/// What a sample is taken after a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledEvent {
    /// Cycles of the CPU, counted by its hardware.
    Cycles,
    /// Time in which the CPU was not idle, counted by the kernel.
    CpuClock,
}

impl SampledEvent {
    /// Its name, as perf has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
        }
    }
}

/// One look at what was being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// When, on the clock of [`monotonic_ns`].
    pub at_ns: u64,
    /// The thread; 0 where the CPU was idle, or served an interrupt that came then.
    pub thread: u32,
    /// Addresses in the kernel, the innermost first.
    pub kernel: Vec<u64>,
    /// Addresses in the process, the innermost first.
    pub user: Vec<u64>,
}

/// What was sampled since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The samples, in the order in which they were taken.
    pub samples: Vec<StackSample>,
    /// How many found no room.
    pub lost: u64,
}

/// Takes samples while it is switched on.
#[derive(Debug)]
pub struct StackSampler {
    event_file: Arc<File>,
    ring: Mapping,
    data_start: usize,
    data_bytes: u64,
    event: SampledEvent,
    has_kernel: bool,
}

impl StackSampler {
    /// Opens a sampler that is switched off.
    ///
    /// Cycles are preferred; machines without such a counter, as most virtual ones, have the kernel's clock.
    ///
    /// Units: samples a second.
    ///
    /// # Errors
    /// Where the kernel does not allow it: whole CPUs are for root, or `perf_event_paranoid` forbids all.
    pub fn open(sampled: Sampled, frequency_hz: u32) -> Result<Self, SysError> {
        let what = || match sampled {
            Sampled::Cpu(cpu) => format!("sampling stacks on CPU {cpu}"),
            Sampled::Thread(thread) => format!("sampling the stacks of thread {thread}"),
        };
        let open = |event| open_event(sampled, event, frequency_hz).map(|file| (file, event));
        let (file, event) = open(SampledEvent::Cycles)
            .or_else(|_| open(SampledEvent::CpuClock))
            .map_err(|error| SysError::new(what(), error))?;
        let page = usize::try_from(
            nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
                .ok()
                .flatten()
                .unwrap_or(4096),
        )
        .unwrap_or(4096);
        let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
        for pages in BUFFER_PAGES {
            // The first page is the kernel's note of where it writes.
            match Mapping::of(file.as_fd(), (pages + 1) * page, 0) {
                Ok(ring) => {
                    return Ok(Self {
                        event_file: Arc::new(file),
                        ring,
                        data_start: page,
                        data_bytes: (pages * page) as u64,
                        event,
                        has_kernel: matches!(sampled, Sampled::Cpu(_)),
                    });
                }
                Err(error) => refused = error,
            }
        }
        Err(SysError::new(what(), refused))
    }

    /// What samples are taken after.
    #[must_use]
    pub fn event(&self) -> SampledEvent {
        self.event
    }

    /// Whether it samples the kernel's functions, too.
    #[must_use]
    pub fn has_kernel(&self) -> bool {
        self.has_kernel
    }

    /// Its switch, for whichever thread is to use it.
    #[must_use]
    pub fn switch(&self) -> SamplerSwitch {
        SamplerSwitch(Arc::clone(&self.event_file))
    }

    /// Takes out what has been sampled.
    pub fn take(&mut self) -> Samples {
        let head = self
            .ring
            .long_word(offset_of!(perf_event_mmap_page, data_head));
        let tail = self
            .ring
            .long_word(offset_of!(perf_event_mmap_page, data_tail));
        // What the kernel wrote before it moved the head is seen behind this.
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut samples = Samples::default();
        let mut record = Vec::new();
        while at < end {
            let mut header = [0; 8];
            self.copy_out(at, &mut header);
            let length = u16::from_ne_bytes([header[6], header[7]]).into();
            if length < header.len() {
                // The kernel writes none that is shorter; what follows cannot be told.
                break;
            }
            record.resize(length, 0);
            self.copy_out(at, &mut record);
            samples.add(&record);
            at += length as u64;
        }
        // All reading is done before the kernel may write there again.
        tail.store(end, Ordering::Release);
        samples
    }

    /// Reads from the ring, round its end.
    fn copy_out(&self, at: u64, bytes: &mut [u8]) {
        let start = usize::try_from(at % self.data_bytes).unwrap_or(0);
        let data_bytes = usize::try_from(self.data_bytes).unwrap_or(usize::MAX);
        let (first, rest) = bytes.split_at_mut(bytes.len().min(data_bytes - start));
        self.ring.copy_out(self.data_start + start, first);
        self.ring.copy_out(self.data_start, rest);
    }
}

/// Switches a sampler on and off.
#[derive(Clone, Debug)]
pub struct SamplerSwitch(Arc<File>);

impl SamplerSwitch {
    /// Begins to take samples.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn on(&self) -> Result<(), SysError> {
        // SAFETY: the descriptor is an event's, and the request takes no memory.
        let result = unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) };
        asked(result, "starting to sample stacks")
    }

    /// Takes no more samples.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn off(&self) -> Result<(), SysError> {
        // SAFETY: as in `on`.
        let result = unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) };
        asked(result, "ending to sample stacks")
    }
}

impl Samples {
    /// Reads a record as the kernel writes it; what is none of ours is passed over.
    fn add(&mut self, record: &[u8]) {
        let mut words = record
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("a chunk of eight bytes")));
        // Its kind is in the lower half of the header.
        let header = words.next().unwrap_or_default();
        let kind = u32::try_from(header & u64::from(u32::MAX)).unwrap_or_default();
        if kind == PERF_RECORD_SAMPLE {
            self.samples.extend(sample(words));
        } else if kind == PERF_RECORD_LOST {
            self.lost += words.nth(1).unwrap_or_default();
        } else if kind == PERF_RECORD_LOST_SAMPLES {
            self.lost += words.next().unwrap_or_default();
        }
    }
}

/// A sample of [`PERF_SAMPLE_TID`], [`PERF_SAMPLE_TIME`] and [`PERF_SAMPLE_CALLCHAIN`], in this order.
fn sample(mut words: impl Iterator<Item = u64>) -> Option<StackSample> {
    let thread = u32::try_from(words.next()? >> 32).ok()?;
    let at_ns = words.next()?;
    let count = usize::try_from(words.next()?).ok()?;
    let mut sample = StackSample {
        at_ns,
        thread,
        kernel: Vec::new(),
        user: Vec::new(),
    };
    let mut is_kernel = false;
    for address in words.take(count) {
        match address {
            CONTEXT_KERNEL => is_kernel = true,
            CONTEXT_USER => is_kernel = false,
            CONTEXTS.. => {}
            address if is_kernel => sample.kernel.push(address),
            address => sample.user.push(address),
        }
    }
    Some(sample)
}

/// The clock of samples.
///
/// Units: nanoseconds; only differences mean anything.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every kernel that runs this has the clock");
    now.tv_sec().cast_unsigned() * 1_000_000_000 + now.tv_nsec().cast_unsigned()
}

/// The calling thread, as samples name it.
#[must_use]
pub fn this_thread() -> u32 {
    nix::unistd::gettid().as_raw().cast_unsigned()
}

/// What a request to an event came to, told by the number that it returned.
fn asked(result: i32, what: &str) -> Result<(), SysError> {
    let asked = Errno::result(result).map(drop);
    asked.map_err(|errno| SysError::new(what, errno))
}

fn open_event(sampled: Sampled, event: SampledEvent, frequency_hz: u32) -> io::Result<File> {
    let (kind, config) = match event {
        SampledEvent::Cycles => (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
        SampledEvent::CpuClock => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK),
    };
    let mut attributes = perf_event_attr {
        type_: kind,
        size: u32::try_from(size_of::<perf_event_attr>()).unwrap_or_default(),
        config: config.into(),
        sample_type: (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN).into(),
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_freq = frequency_hz.into();
    attributes.set_freq(1);
    attributes.set_disabled(1);
    attributes.set_use_clockid(1);
    attributes.set_exclude_hv(1);
    let (thread, cpu) = match sampled {
        Sampled::Cpu(cpu) => (-1, cpu.cast_signed()),
        Sampled::Thread(thread) => {
            attributes.set_exclude_kernel(1);
            attributes.set_exclude_callchain_kernel(1);
            (thread.cast_signed(), -1)
        }
    };
    // SAFETY: the attributes are valid and outlive the call; no group is named.
    let descriptor = unsafe {
        perf_event_open(
            &raw mut attributes,
            thread,
            cpu,
            -1,
            PERF_FLAG_FD_CLOEXEC.into(),
        )
    };
    let descriptor = Errno::result(descriptor)?;
    // SAFETY: the kernel has just given the descriptor to this process, and nothing else has it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    #[inline(never)]
    fn spin(time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            black_box(start);
        }
    }

    #[test]
    fn a_thread_is_sampled_while_it_is_switched_on() {
        let mut sampler = StackSampler::open(Sampled::Thread(this_thread()), 1000).unwrap();
        spin(Duration::from_millis(20));
        assert_eq!(sampler.take(), Samples::default());
        let start = monotonic_ns();
        sampler.switch().on().unwrap();
        spin(Duration::from_millis(200));
        sampler.switch().off().unwrap();
        let end = monotonic_ns();
        let samples = sampler.take().samples;
        assert!(samples.len() > 20, "{}", samples.len());
        for sample in &samples {
            assert!((start..=end).contains(&sample.at_ns));
            assert_eq!(sample.thread, this_thread());
            assert!(sample.kernel.is_empty());
            assert!(!sample.user.is_empty());
        }
        spin(Duration::from_millis(20));
        assert_eq!(sampler.take(), Samples::default());
    }

    #[test]
    fn a_full_buffer_loses_samples_and_says_so() {
        let mut sampler = StackSampler::open(Sampled::Thread(this_thread()), 20_000).unwrap();
        // As if the buffer were nearly full: the kernel leaves alone what was not read.
        let head = sampler
            .ring
            .long_word(offset_of!(perf_event_mmap_page, data_head));
        let tail = sampler
            .ring
            .long_word(offset_of!(perf_event_mmap_page, data_tail));
        let before = head.load(Ordering::Acquire);
        tail.store(
            before.wrapping_sub(sampler.data_bytes - 4096),
            Ordering::Release,
        );
        sampler.switch().on().unwrap();
        spin(Duration::from_millis(200));
        tail.store(before, Ordering::Release);
        spin(Duration::from_millis(50));
        sampler.switch().off().unwrap();
        assert!(sampler.take().lost > 0);
    }

    #[test]
    fn what_there_is_not_cannot_be_sampled() {
        let error = StackSampler::open(Sampled::Cpu(100_000), 1000).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("sampling stacks on CPU 100000: "),
            "{error}"
        );
    }

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let length = (words.len() as u64 + 1) * 8;
        let header = u64::from(kind) | length << 48;
        std::iter::once(&header)
            .chain(words)
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    #[test]
    fn addresses_are_told_apart_by_whose_they_are() {
        let mut samples = Samples::default();
        samples.add(&record(
            PERF_RECORD_SAMPLE,
            &[
                7 << 32 | 3,
                99,
                6,
                CONTEXT_KERNEL,
                11,
                12,
                CONTEXT_USER,
                21,
                CONTEXTS,
            ],
        ));
        samples.add(&record(PERF_RECORD_LOST, &[1, 5]));
        samples.add(&record(PERF_RECORD_LOST_SAMPLES, &[2]));
        assert_eq!(
            samples,
            Samples {
                samples: vec![StackSample {
                    at_ns: 99,
                    thread: 7,
                    kernel: vec![11, 12],
                    user: vec![21],
                }],
                lost: 7,
            }
        );
    }

    proptest! {
        #[test]
        fn any_record_is_read_or_passed_over(bytes: Vec<u8>) {
            Samples::default().add(&bytes);
        }
    }
}
