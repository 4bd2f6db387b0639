//! Tables that `c_library.c` prints, from C's `printf` and `strtod`.

use fwdlab_stats::ministat::{general, parse_number};

#[test]
fn numbers_are_printed_as_c_prints_them() {
    let mut rows = 0;
    for row in include_str!("printf.tsv").lines() {
        let [bits, six, eight] = columns(row);
        let number = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(general(number, 6).to_string(), six, "{row}");
        assert_eq!(format!("{:>13}", general(number, 8)), eight, "{row}");
        rows += 1;
    }
    assert!(rows > 400, "{rows} rows");
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    let mut rows = 0;
    for row in include_str!("strtod.tsv").lines() {
        let [text, bits] = columns(row);
        let expected = match bits {
            "refused" => None,
            bits => Some(u64::from_str_radix(bits, 16).unwrap()),
        };
        assert_eq!(
            parse_number(text.as_bytes()).map(f64::to_bits),
            expected,
            "{row}"
        );
        rows += 1;
    }
    assert!(rows > 400, "{rows} rows");
}

fn columns<const COUNT: usize>(row: &str) -> [&str; COUNT] {
    let columns: Vec<_> = row.split('\t').collect();
    columns.try_into().unwrap()
}
