//! What a large data set costs in memory: counted by the allocator.

use std::fmt::Write;

use peak_alloc::PeakAlloc;
use rlhf_lang::graph::{Column, Data, Elem};
use rlhf_lang::source::Span;
use rlhf_text::rows::{Column as Cells, load};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const ROWS: usize = 20_000;

#[test]
fn rows_stay_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (mut lines, mut table) = (String::new(), String::from("t,i\n"));
    for i in 0..ROWS {
        let long = "x".repeat(1000 + i % 7);
        writeln!(lines, "{{\"t\": \"{i} {long}\", \"i\": {i}}}").unwrap();
        writeln!(table, "{i} {long},{i}").unwrap();
    }
    let size = lines.len();
    std::fs::write(dir.path().join("d.jsonl"), lines).unwrap();
    std::fs::write(dir.path().join("d.csv"), table).unwrap();
    for format in ["jsonl", "csv"] {
        let column = |(name, elem): (&str, Elem)| Column {
            name: name.into(),
            source: name.into(),
            elem,
            span: Span::default(),
        };
        let data = Data {
            name: "d".into(),
            format: format.into(),
            path: format!("d.{format}"),
            split: None,
            config: None,
            columns: [("t", Elem::Text), ("i", Elem::Int)].map(column).into(),
            span: Span::default(),
            path_span: Span::default(),
        };
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let rows = load(&data, dir.path(), dir.path()).unwrap();
        let peak = MEMORY.peak_usage() - before;
        let held = MEMORY.current_usage() - before;
        println!("{format}: {size} bytes, {peak} at the peak, {held} held");
        assert!(
            held < size / 40,
            "{format}: {held} of {size} bytes are held"
        );
        assert!(
            peak < size / 5,
            "{format}: {peak} of {size} bytes at the peak"
        );
        assert_eq!(rows.held(), ROWS * 16);
        let taken = rows.take(&[1], &[ROWS - 1, 0, 77]).unwrap();
        assert_eq!(taken, [Cells::Int(vec![(ROWS - 1) as f64, 0.0, 77.0])]);
    }
}
