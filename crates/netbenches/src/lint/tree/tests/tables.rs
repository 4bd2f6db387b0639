use crate::lint::tree::sample::Sample;

#[test]
fn a_row_that_is_not_of_its_dataset_is_found() {
    let sample = Sample::sound();
    sample.edit("gnuplot.data", |text| text.replace("1103000", "1203000"));
    assert_eq!(
        sample.found(),
        ["L114\n\
          published gnuplot.data:3: 1203000 1101000 1105000\n\
          derived on.pps: 1103000 1101000 1105000"]
    );
}

#[test]
fn rows_with_the_figures_of_each_other_are_one_finding() {
    let sample = Sample::sound();
    let exchange = |text: String| {
        let text = text.replace("off ", "x ").replace("on ", "off ");
        text.replace("x ", "on ").replace("#indeon ", "#index ")
    };
    sample.edit("gnuplot.data", exchange);
    assert_eq!(
        sample.found(),
        ["L201\n\
          published gnuplot.data:2: 1003000 1001000 1005000\n\
          derived on.pps: 1103000 1101000 1105000\n\
          derived off.pps: 1003000 1001000 1005000"]
    );
}

#[test]
fn a_row_of_no_dataset_and_a_table_of_another_form_say_nothing() {
    let sample = Sample::sound();
    sample.edit("gnuplot.data", |text| text + "other 1 2 3\n");
    sample.write("bandwidth.data", "#index 10 20\noff 1\non 2\n");
    sample.write(
        "titled.data",
        "#index median minimum maximum\n\"queues off\" 1 2 3\n",
    );
    assert_eq!(sample.found(), [""; 0]);
}
