//! The small files of the public archive: whatever they hold is read or refused with one of their lines,
//! and a key is recognised.
#![no_main]

use fwdlab_netbenches::{
    Assignments, BenchInfo, BenchName, ConfigSet, Dialect, Estimate, LabConfig, PktGenConfig,
    PrintedTime, Secret, Table, Uname, differences, parse_rates_mbps,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let lines = text.split(|&byte| byte == b'\n').count();
    for dialect in [Dialect::Shell, Dialect::Settings] {
        let mut before = 0;
        for read in Assignments::new(text, dialect) {
            let line = read.map_or_else(|error| error.line(), |read| read.line);
            assert!((before..=lines).contains(&line));
            before = line;
        }
    }
    if let Ok(table) = Table::parse(text) {
        let is_whole = |numbers: usize| numbers == table.number_columns;
        assert!(table.rows.iter().all(|row| is_whole(row.numbers.len())));
        assert!(table.rows.is_sorted_by_key(|row| row.line));
    }
    let estimate = Estimate::of_log(text);
    assert!(estimate.is_none_or(|estimate| (1..=lines).contains(&estimate.line)));
    let _ = parse_rates_mbps(text);
    let _ = BenchInfo::parse(text);
    let _ = LabConfig::parse(text);
    let _ = PktGenConfig::parse(text);
    if let Ok(line) = str::from_utf8(text) {
        let _ = Uname::parse(line).and_then(|uname| uname.built_s());
        let _ = PrintedTime::parse(line);
        if let Some(name) = BenchName::parse(line) {
            assert!(line.contains(name.stem));
        }
    }

    let mut set = ConfigSet::default();
    set.read("etc/rc.conf", text);
    set.read("boot/loader.conf", text);
    set.read("etc/pf.conf", text);
    assert_eq!(differences(&set, &set), []);

    // A key is found wherever a line has one.
    let with_key = [text, b"\n-----BEGIN PRIVATE KEY-----\n"].concat();
    assert_eq!(Secret::of_content(&with_key), Some(Secret::PrivateKey));
});
