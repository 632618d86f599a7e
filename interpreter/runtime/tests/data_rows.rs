//! Which rows a batch takes, and their cells as values.

use rlhf_lang::graph::{AxisId, Column, Data, Elem};
use rlhf_lang::source::Span;
use rlhf_runtime::data::{Order, batch_rows, batches, values};
use rlhf_text::rows::load;

#[test]
fn cells_are_taken_in_the_order_of_the_batch() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"i\": 3, \"b\": true, \"c\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n\
                {\"i\": null, \"b\": false, \"c\": []}\n";
    std::fs::write(dir.path().join("d.jsonl"), text).unwrap();
    let column = |(name, elem): (&str, Elem)| Column {
        name: name.into(),
        source: name.into(),
        elem,
        span: Span::default(),
    };
    let data = Data {
        name: "train".into(),
        format: "jsonl".into(),
        path: "d.jsonl".into(),
        split: None,
        config: None,
        columns: [("i", Elem::Int), ("b", Elem::Bool), ("c", Elem::Chat)]
            .map(column)
            .into(),
        span: Span::default(),
        path_span: Span::default(),
    };
    let table = load(&data, dir.path(), dir.path()).unwrap();
    let of = |column, rows: &[usize]| {
        let mut values = values(&table, &[column], AxisId(0), rows).unwrap();
        values.remove(0)
    };
    let ints = of(0, &[1, 0, 0]).numbers().unwrap();
    assert!(ints[0].is_nan());
    assert_eq!(ints[1..], [3.0, 3.0]);
    assert_eq!(of(1, &[1, 0]).numbers().unwrap(), [0.0, 1.0]);
    assert_eq!(of(2, &[0]).chats().unwrap()[0][0].content, "hi");
    assert!(values(&table, &[0], AxisId(0), &[2]).is_err());
    assert!(values(&table, &[3], AxisId(0), &[0]).is_err());
}

#[test]
fn an_epoch_takes_every_row_at_most_once_in_an_order_of_its_own() {
    let (rows, batch) = (103, 8);
    let epoch = |seed, epoch| -> Vec<usize> {
        (0..batches(rows, batch))
            .flat_map(|i| batch_rows(Order::Seeded(seed), epoch, rows, batch, i).unwrap())
            .collect()
    };
    let first = epoch(1, 0);
    assert_eq!(first.len(), 96);
    let mut sorted = first.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 96);
    assert!(sorted.iter().all(|r| *r < rows));
    assert_eq!(first, epoch(1, 0));
    assert_ne!(first, epoch(1, 1));
    assert_ne!(first, epoch(2, 0));
}

#[test]
fn the_order_is_the_same_on_every_machine() {
    assert_eq!(batch_rows(Order::Seeded(0), 0, 10, 10, 0).unwrap(), ORDER);
    // Each row comes first about equally often.
    let mut first = [0; 10];
    for seed in 0..5000 {
        first[batch_rows(Order::Seeded(seed), 0, 10, 1, 0).unwrap()[0]] += 1;
    }
    assert!(first.iter().all(|n| (400..600).contains(n)), "{first:?}");
}

/// From an implementation of the same algorithm in another language.
const ORDER: [usize; 10] = [1, 7, 6, 2, 0, 9, 8, 4, 5, 3];

#[test]
fn too_few_rows_for_one_batch_is_an_error() {
    let f = batch_rows(Order::Seeded(0), 0, 100, 256, 0).unwrap_err();
    assert_eq!(f.diagnostic.code, "D314");
    assert_eq!(f.to_string(), "100 rows cannot fill one batch of 256");
    assert!(batch_rows(Order::Seeded(0), 0, 100, 50, 2).is_err());
}

#[test]
fn rows_may_come_as_the_data_has_them() {
    let rows = |epoch, index| batch_rows(Order::Data, epoch, 7, 3, index).unwrap();
    assert_eq!(rows(0, 0), [0, 1, 2]);
    assert_eq!(rows(1, 1), [3, 4, 5]);
}
