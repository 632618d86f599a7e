//! Data sets from files: what is read, and what is said of a file that does not fit.

use std::path::Path;

use rlhf_lang::graph::{AxisId, Column, Data, Elem};
use rlhf_lang::source::Span;
use rlhf_runtime::data::{Column as Cells, batch_rows, batches, load};
use rlhf_runtime::fault::Fault;

fn declared(format: &str, file: &str, columns: &[(&str, Elem)]) -> Data {
    Data {
        name: "train".into(),
        format: format.into(),
        path: file.into(),
        split: None,
        columns: columns
            .iter()
            .map(|(name, elem)| Column {
                name: (*name).into(),
                source: (*name).into(),
                elem: *elem,
                span: Span::default(),
            })
            .collect(),
        span: Span::default(),
        path_span: Span::default(),
    }
}

fn fault(text: &str, columns: &[(&str, Elem)]) -> Fault {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("train.jsonl"), text).unwrap();
    load(&declared("jsonl", "train.jsonl", columns), dir.path()).unwrap_err()
}

const QA: [(&str, Elem); 2] = [("question", Elem::Text), ("answer", Elem::Text)];

#[test]
fn every_type_is_read_and_blank_lines_and_a_byte_order_mark_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let text = "\u{feff}{\"t\": \"é\", \"i\": 3, \"f\": 1.5, \"b\": true, \"l\": [\"a\"], \
                \"c\": [{\"role\": \"user\", \"content\": \"hi\"}], \"unused\": 0}\n\n   \n\
                {\"t\": null, \"i\": null, \"f\": -2, \"b\": false, \"l\": [], \"c\": []}\r\n";
    std::fs::write(dir.path().join("d.jsonl"), text).unwrap();
    let columns = [
        ("t", Elem::Text),
        ("i", Elem::Int),
        ("f", Elem::Float),
        ("b", Elem::Bool),
        ("l", Elem::TextList),
        ("c", Elem::Chat),
    ];
    let table = load(&declared("jsonl", "d.jsonl", &columns), dir.path()).unwrap();
    assert_eq!(table.rows(), 2);
    assert_eq!(
        table.columns()[0],
        Cells::Text(vec![Some("é".into()), None])
    );
    assert_eq!(table.columns()[2], Cells::Float(vec![1.5, -2.0]));
    let axis = AxisId(0);
    let ints = table.value(1, axis, &[1, 0, 0]).unwrap().numbers().unwrap();
    assert!(ints[0].is_nan());
    assert_eq!(ints[1..], [3.0, 3.0]);
    assert_eq!(
        table.value(3, axis, &[1, 0]).unwrap().numbers().unwrap(),
        [0.0, 1.0]
    );
    assert_eq!(
        table.value(5, axis, &[0]).unwrap().chats().unwrap()[0][0].content,
        "hi"
    );
}

#[test]
fn a_json_file_is_a_list_of_objects() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.json");
    let data = declared("json", "d.json", &[("x", Elem::Int)]);
    std::fs::write(&path, "[{\"x\": 1},\n {\"x\": 2}]").unwrap();
    assert_eq!(
        load(&data, dir.path()).unwrap().columns()[0],
        Cells::Int(vec![1.0, 2.0])
    );
    std::fs::write(&path, "{\"x\": 1}").unwrap();
    let fault = load(&data, dir.path()).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "`d.json` is an object; expected a list of objects"
    );
    std::fs::write(&path, "[{\"x\": 1},\n {\"x\" 2}]").unwrap();
    let fault = load(&data, dir.path()).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "line 2 of `d.json` is not JSON: expected `:` at column 7"
    );
}

#[test]
fn a_missing_file_is_named_with_the_nearest_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(dir.path().join("data/sums.jsonl"), "").unwrap();
    let fault = load(&declared("jsonl", "data/sum.jsonl", &QA), dir.path()).unwrap_err();
    assert_eq!(fault.to_string(), "there is no file `data/sum.jsonl`");
    assert!(fault.diagnostic.help.unwrap().ends_with("has `sums.jsonl`"));
    assert_eq!(fault.diagnostic.labels.len(), 1);
}

#[test]
fn an_absolute_path_and_one_from_the_working_directory_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.jsonl");
    std::fs::write(&path, "{\"x\": 1}").unwrap();
    let absolute = path.to_str().unwrap();
    let data = declared("jsonl", absolute, &[("x", Elem::Int)]);
    assert_eq!(load(&data, Path::new("/nowhere")).unwrap().rows(), 1);
    // Tests run in the crate's folder.
    let data = declared(
        "json",
        "tests/fixtures/expr_ops.json",
        &[("name", Elem::Text)],
    );
    assert!(load(&data, Path::new("/nowhere")).unwrap().rows() > 40);
}

#[test]
fn a_malformed_line_is_quoted_with_its_number() {
    let f = fault(
        "{\"question\": \"a\", \"answer\": \"b\"}\n\n{\"question\": \"a\" \"answer\"}\n",
        &QA,
    );
    assert_eq!(
        f.to_string(),
        "line 3 of `train.jsonl` is not JSON: expected `,` or `}` at column 18"
    );
    assert_eq!(
        f.diagnostic.help.unwrap(),
        "the line is `{\"question\": \"a\" \"answer\"}`"
    );
    let f = fault("[1, 2]\n", &QA);
    assert_eq!(
        f.to_string(),
        "line 1 of `train.jsonl` is a list; expected an object"
    );
}

#[test]
fn an_unknown_column_is_named_with_those_found() {
    let columns = [("question", Elem::Text), ("anwser", Elem::Text)];
    let f = fault("{\"question\": \"a\", \"answer\": \"b\"}\n", &columns);
    assert_eq!(f.diagnostic.code, "D301");
    assert_eq!(
        f.to_string(),
        "`train.jsonl` has no column `anwser` (row 1 has `question`, `answer`)"
    );
    assert_eq!(f.diagnostic.help.unwrap(), "a similar one: `answer`");
}

#[test]
fn a_cell_of_another_type_is_named_with_its_row() {
    let good = "{\"question\": \"a\", \"answer\": \"b\"}\n\n";
    let f = fault(
        &format!("{good}{{\"question\": \"a\", \"answer\": 4}}\n"),
        &QA,
    );
    assert_eq!(f.diagnostic.code, "D302");
    assert_eq!(
        f.to_string(),
        "row 2 (line 3) of `train.jsonl`: `answer` is a number, the program declares `text`"
    );
    let f = fault("{\"n\": 1.5}", &[("n", Elem::Int)]);
    assert_eq!(
        f.to_string(),
        "row 1 of `train.jsonl`: `n` is a number with a fraction, the program declares `int`"
    );
    let f = fault("{\"c\": [{\"role\": \"user\"}]}", &[("c", Elem::Chat)]);
    assert_eq!(
        f.to_string(),
        "row 1 of `train.jsonl`: `c` is a list, the program declares `chat`"
    );
    let f = fault("{\"b\": null}", &[("b", Elem::Bool)]);
    assert_eq!(
        f.to_string(),
        "row 1 of `train.jsonl`: `b` is null, the program declares `bool`"
    );
}

#[test]
fn an_empty_file_is_refused() {
    assert_eq!(
        fault("\n  \n", &QA).to_string(),
        "`train.jsonl` has no rows"
    );
}

#[test]
fn an_unknown_source_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("d.xml"), "x").unwrap();
    let f = load(&declared("xml", "d.xml", &QA), dir.path()).unwrap_err();
    assert_eq!(f.to_string(), "no data source `xml`");
    assert_eq!(f.diagnostic.help.unwrap(), "one of: jsonl, json");
}

#[test]
fn an_epoch_takes_every_row_at_most_once_in_an_order_of_its_own() {
    let (rows, batch) = (103, 8);
    let epoch = |seed, epoch| -> Vec<usize> {
        (0..batches(rows, batch))
            .flat_map(|i| batch_rows(seed, epoch, rows, batch, i).unwrap())
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
    assert_eq!(batch_rows(0, 0, 10, 10, 0).unwrap(), ORDER);
    // Each row comes first about equally often.
    let mut first = [0; 10];
    for seed in 0..5000 {
        first[batch_rows(seed, 0, 10, 1, 0).unwrap()[0]] += 1;
    }
    assert!(first.iter().all(|n| (400..600).contains(n)), "{first:?}");
}

/// From an implementation of the same algorithm in another language.
const ORDER: [usize; 10] = [1, 7, 6, 2, 0, 9, 8, 4, 5, 3];

#[test]
fn too_few_rows_for_one_batch_is_an_error() {
    let f = batch_rows(0, 0, 100, 256, 0).unwrap_err();
    assert_eq!(f.diagnostic.code, "D314");
    assert_eq!(f.to_string(), "100 rows cannot fill one batch of 256");
    assert!(batch_rows(0, 0, 100, 50, 2).is_err());
}
