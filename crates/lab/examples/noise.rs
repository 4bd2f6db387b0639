//! scratch
use std::collections::BTreeMap;
use fwdlab_lab::*;
use fwdlab_model::*;
fn main() {
    let nft10 = "table inet fwdlab { chain forward { type filter hook forward priority 0; policy accept;\n".to_string() + &(0..10).map(|i| format!("udp dport {} drop\n", 5001+i)).collect::<String>() + "}\n}\n";
    let ct = "table inet fwdlab { chain forward { type filter hook forward priority 0; policy drop;\n ct state established,related accept\n ct state new accept\n}\n}\n".to_string();
    let mk = |label: &str, f: &str, x: &str| Variant { name: VariantName::from_label(label), label: label.into(), levels: BTreeMap::from([("f".to_string(), Level::Text(f.into())), ("x".to_string(), Level::Text(x.into()))]), control_of: None, unavailable: None };
    let variants = vec![mk("none","none","off"), mk("ten","ten","off"), mk("ct","ct","off"), mk("fib","none","fib"), mk("again","none","off")];
    let fam = if std::env::args().nth(1).as_deref() == Some("inet6") { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let rounds: usize = std::env::args().nth(2).map_or(10, |x| x.parse().unwrap());
    let blocks: u32 = std::env::args().nth(3).map_or(1, |x| x.parse().unwrap());
    let resolved = Resolved { name: "q".into(), question: "q".into(), background: None, factors: vec![], variants: variants.clone(), comparisons: vec![],
        traffic: Traffic { families: vec![fam], frame_size: 64, sources: 20, destinations: 100, regime: LoadRegime::SelfClocked, intended_load_pps: None },
        design: Design { blocks: 1, rounds: 10, slice_ms: 100, settle_ms: 50, warm_up_ms: 200, seed: 0, seed_was_drawn: true, threshold_percent: 1.0, confidence_percent: 95.0 },
        lab: Lab { name: "netns".into(), description: None, kind: LabKind::Netns, load_cpu: None, control_cpu: None, bindings: BTreeMap::from([
            ("f".to_string(), Binding::Nft(BTreeMap::from([("none".to_string(), String::new()), ("ten".to_string(), nft10), ("ct".to_string(), ct)]))),
            ("x".to_string(), Binding::Xdp(BTreeMap::from([("off".to_string(), XdpProgram::Off), ("fib".to_string(), XdpProgram::Fib)])))]) } };
    let mut lab = NetnsLab::open(&resolved, fwdlab_sys::watch_interrupts().unwrap()).unwrap();
    println!("leftovers {:?} unavailable {:?}", lab.leftovers(), lab.unavailable().unwrap());
    let mut seed = 12345u64;
    for b in 1..=blocks {
    let planned = PlannedBlock { number: b, families: vec![FamilyOrder { family: fam, rounds: (0..rounds).map(|_| { let mut v: Vec<_> = variants.iter().map(|v| v.name.clone()).collect(); for i in (1..v.len()).rev() { seed ^= seed<<13; seed ^= seed>>7; seed ^= seed<<17; v.swap(i, (seed % (i as u64+1)) as usize); } v }).collect() }] };
    match lab.measure(&planned, 1, 1, &mut |_| ()) {
        Ok(o) => {
            if b == 1 { println!("{:#?}", o.block); }
            for t in &o.trials { println!("{b} {:8} {:.0} pooled {:.0} steal {} cal {} {:?} {:?}", t.variant, t.observation_pps, t.pooled_pps, t.steal_s, t.calibration_ns, t.invalid, t.drops); }
            use std::io::Write; let mut f = std::fs::OpenOptions::new().append(true).create(true).open("/tmp/slices.csv").unwrap();
            for s in &o.slices { writeln!(f, "{b},{},{},{},{:.5},{:.5},{},{},{},{:.4},{}", s.round, s.position, s.variant, s.start_s, s.time_s, s.offered_frames, s.forwarded_frames, s.calibration_ns, s.switch_s, s.steal_s).unwrap(); }
        }
        Err(e) => println!("{e}"),
    }}
}
