//! Data sets from files: what is read, and what is said of a file that does not fit.

use std::path::Path;

use proptest::prelude::*;
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Column, Data, Elem};
use rlhf_lang::source::{Sources, Span};
use rlhf_text::rows::{self, Column as Cells, Extent, Table, load};
use serde_json::{Value as Json, json};

fn declared(format: &str, file: &str, columns: &[(&str, Elem)]) -> Data {
    Data {
        name: "train".into(),
        format: format.into(),
        path: file.into(),
        split: None,
        config: None,
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

/// What comes of a file `train.FORMAT` with this text.
fn loaded(
    format: &str,
    text: impl AsRef<[u8]>,
    columns: &[(&str, Elem)],
) -> rlhf_text::Result<Table> {
    let dir = tempfile::tempdir().unwrap();
    let file = format!("train.{format}");
    std::fs::write(dir.path().join(&file), text).unwrap();
    load(&declared(format, &file, columns), dir.path(), dir.path())
}

/// Every cell of a table.
fn all(table: &Table) -> Vec<Cells> {
    let columns: Vec<usize> = (0..table.width()).collect();
    let rows: Vec<usize> = (0..table.rows()).collect();
    table.take(&columns, &rows).unwrap()
}

fn refused(format: &str, text: impl AsRef<[u8]>, columns: &[(&str, Elem)]) -> Diagnostic {
    *loaded(format, text, columns).unwrap_err()
}

/// The code, the message and the way out of a file that is refused.
fn said(format: &str, text: impl AsRef<[u8]>, columns: &[(&str, Elem)]) -> [String; 3] {
    let d = refused(format, text, columns);
    assert_eq!(d.labels.len(), 1, "it points at the program");
    [d.code, d.message, d.help.unwrap()]
}

const QA: [(&str, Elem); 2] = [("question", Elem::Text), ("answer", Elem::Text)];
const ALL: [(&str, Elem); 6] = [
    ("t", Elem::Text),
    ("i", Elem::Int),
    ("f", Elem::Float),
    ("b", Elem::Bool),
    ("l", Elem::TextList),
    ("c", Elem::Chat),
];

#[test]
fn every_type_is_read_and_blank_lines_and_a_byte_order_mark_are_skipped() {
    let text = "\u{feff}{\"t\": \"é\", \"i\": 3, \"f\": 1.5, \"b\": true, \"l\": [\"a\"], \
                \"c\": [{\"role\": \"user\", \"content\": \"hi\"}], \"unused\": 0}\n\n   \n\
                {\"t\": null, \"i\": null, \"f\": -2, \"b\": false, \"l\": [], \"c\": []}\r\n";
    let table = loaded("jsonl", text, &ALL).unwrap();
    assert_eq!(table.rows(), 2);
    let [t, Cells::Int(i), f, b, l, Cells::Chat(c)] = &all(&table)[..] else {
        panic!("six columns of the declared types");
    };
    assert_eq!(*t, Cells::Text(vec![Some("é".into()), None]));
    assert!(i[0] == 3.0 && i[1].is_nan());
    assert_eq!(*f, Cells::Float(vec![1.5, -2.0]));
    assert_eq!(*b, Cells::Bool(vec![true, false]));
    assert_eq!(*l, Cells::TextList(vec![["a".into()].into(), [].into()]));
    assert_eq!(c[0][0].content, "hi");
}

#[test]
fn a_json_file_is_a_list_of_objects() {
    let x = [("x", Elem::Int)];
    let table = loaded("json", "[{\"x\": 1},\n {\"x\": 2}]", &x).unwrap();
    assert_eq!(all(&table)[0], Cells::Int(vec![1.0, 2.0]));
    for (text, expected) in [
        (
            "{\"x\": 1}",
            "`train.json` is an object, and a data set is a list of objects",
        ),
        (
            "[{\"x\": 1},\n {\"x\" 2}]",
            "line 2 of `train.json` is not JSON: expected `:` at column 7",
        ),
        (
            "[{\"x\": 1}, 2]",
            "row 2 of `train.json` is a number, not an object",
        ),
        (
            "3",
            "`train.json` is a number, and a data set is a list of objects",
        ),
    ] {
        let [code, message, _] = said("json", text, &x);
        assert_eq!((code.as_str(), message.as_str()), ("D300", expected));
    }
    let [_, _, help] = said("json", "[{\"x\": 1}]\n[{\"x\": 2}]", &x);
    assert_eq!(
        help,
        "the line is `[{\"x\": 2}]`; a file with one object a line is read by `jsonl(…)`"
    );
}

#[test]
fn a_csv_file_names_its_columns_first_and_cells_are_read_as_declared() {
    let text = "\u{feff}t,i,f,b,l,c,unused\n\
                \"a, \"\"b\"\"\nc\",3,1.5,True,\"[\"\"x\"\"]\",\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"hi\"\"}]\",\n\
                ,,2,false,[],[],9\n";
    let table = loaded("csv", text, &ALL).unwrap();
    let [t, Cells::Int(i), f, b, l, Cells::Chat(c)] = &all(&table)[..] else {
        panic!("six columns of the declared types");
    };
    assert_eq!(
        *t,
        Cells::Text(vec![Some("a, \"b\"\nc".into()), Some("".into())])
    );
    assert!(i[0] == 3.0 && i[1].is_nan());
    assert_eq!(*f, Cells::Float(vec![1.5, 2.0]));
    assert_eq!(*b, Cells::Bool(vec![true, false]));
    assert_eq!(*l, Cells::TextList(vec![["x".into()].into(), [].into()]));
    assert_eq!(c[0][0].content, "hi");
}

#[test]
fn a_csv_file_that_does_not_fit_says_where() {
    let [code, message, help] = said("csv", "question,answer\n1,250 apples,3\n", &QA);
    assert_eq!(code, "D300");
    assert_eq!(
        message,
        "line 2 of `train.csv` has 3 cells, and the first line names 2"
    );
    assert!(help.contains("quotes"), "{help}");
    let [code, message, _] = said("csv", "question,answer\na,b\n\nc,d\n", &[("n", Elem::Int)]);
    assert_eq!(code, "D301");
    assert!(
        message.ends_with("(row 1 (line 2) has `question`, `answer`)"),
        "{message}"
    );
    let [code, message, help] = said("csv", "n\n1\nmany\n", &[("n", Elem::Int)]);
    assert_eq!(code, "D302");
    assert_eq!(
        message,
        "row 2 (line 3) of `train.csv`: `n` is text, the program declares `int`"
    );
    assert!(help.contains("number(n)"), "{help}");
    assert_eq!(said("csv", b"question,answer\n\xe9,b\n", &QA)[0], "D300");
    assert_eq!(said("csv", "question,answer\n", &QA)[0], "D314");
    assert_eq!(said("csv", "", &QA)[0], "D314");
}

#[test]
fn a_missing_file_is_named_with_the_nearest_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(dir.path().join("data/sums.jsonl"), "").unwrap();
    let d = load(
        &declared("jsonl", "data/sum.jsonl", &QA),
        dir.path(),
        Path::new("."),
    )
    .unwrap_err();
    assert_eq!(d.code, "D300");
    assert_eq!(d.message, "there is no file `data/sum.jsonl`");
    assert!(d.help.unwrap().ends_with("data/sums.jsonl`"));
    assert_eq!(d.labels.len(), 1);
}

#[test]
fn a_folder_is_answered_with_a_file_in_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(dir.path().join("data/sums.jsonl"), "").unwrap();
    let d = load(&declared("jsonl", "data", &QA), dir.path(), Path::new(".")).unwrap_err();
    assert_eq!(d.code, "D300");
    assert_eq!(d.message, "`data` is a folder, not a file");
    assert_eq!(
        d.help.unwrap(),
        "a data set is one file, such as `data/sums.jsonl`"
    );
}

#[test]
fn an_absolute_path_and_one_from_the_working_directory_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.jsonl");
    std::fs::write(&path, "{\"x\": 1}").unwrap();
    let absolute = path.to_str().unwrap();
    let data = declared("jsonl", absolute, &[("x", Elem::Int)]);
    assert_eq!(
        load(&data, Path::new("/nowhere"), Path::new("."))
            .unwrap()
            .rows(),
        1
    );
    // Tests run in the crate's folder.
    let file = "tests/fixtures/chat_smollm2.json";
    let data = declared("json", file, &[("text", Elem::Text)]);
    assert_eq!(
        load(&data, Path::new("/nowhere"), Path::new("."))
            .unwrap()
            .rows(),
        3
    );
}

#[test]
fn a_malformed_line_is_quoted_with_its_number() {
    let good = "{\"question\": \"a\", \"answer\": \"b\"}\n\n";
    let [code, message, help] = said(
        "jsonl",
        format!("{good}{{\"question\": \"a\" \"answer\"}}\n"),
        &QA,
    );
    assert_eq!(code, "D300");
    assert_eq!(
        message,
        "line 3 of `train.jsonl` is not a JSON object: expected `,` or `}` at column 18"
    );
    assert!(
        help.starts_with("the line is `{\"question\": \"a\" \"answer\"}`; one JSON object a line"),
        "{help}"
    );
    let [_, message, help] = said("jsonl", "[1, 2]\n", &QA);
    assert_eq!(
        message,
        "line 1 of `train.jsonl` is a list, not a JSON object"
    );
    assert!(help.contains("`json(…)`"), "{help}");
    let [_, message, _] = said("jsonl", format!("{good}7\n"), &QA);
    assert_eq!(
        message,
        "line 3 of `train.jsonl` is a number, not a JSON object"
    );
}

#[test]
fn a_list_over_many_lines_is_pointed_to_its_own_source() {
    for text in ["[\n{\"x\": 1}\n]\n", "{\n\"x\": 1\n}\n"] {
        let [_, _, help] = said("jsonl", text, &QA);
        assert!(help.contains("`json(…)`"), "{help}");
    }
}

#[test]
fn a_malformed_line_is_drawn_over_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.jsonl");
    std::fs::write(&path, "{\"é\": 1}\n{\"é\" 1}\n").unwrap();
    let data = declared("jsonl", "d.jsonl", &QA);
    let mut sources = Sources::default();
    let unreadable = rows::read(&data, &path, Extent::Head).unwrap_err();
    let d = unreadable.drawn(&data, &mut sources);
    let span = d.span().unwrap();
    let source = sources.get(span.file);
    assert_eq!(source.name, "d.jsonl");
    assert_eq!(source.slice(span), "1");
    assert_eq!(source.line_column(span.lo).0, 2);
    assert_eq!(d.labels[1].text, "declared here");
}

#[test]
fn text_in_another_encoding_is_told_apart() {
    for (bytes, message, way_out) in [
        (
            &b"{\"question\": \"caf\xe9\"}\n"[..],
            "line 1 of `train.jsonl` is not text in UTF-8 (byte 0xe9 at column 18)",
            "iconv -f WINDOWS-1252",
        ),
        (
            &b"\xff\xfe{\0"[..],
            "line 1 of `train.jsonl` is not text in UTF-8 (byte 0xff at column 1)",
            "UTF-16",
        ),
        (
            &b"\n\n\x1f\x8b\x08"[..],
            "line 3 of `train.jsonl` is not text in UTF-8 (byte 0x8b at column 2)",
            "UTF-8",
        ),
    ] {
        let [code, said_message, help] = said("jsonl", bytes, &QA);
        assert_eq!((code.as_str(), said_message.as_str()), ("D300", message));
        assert!(help.contains(way_out), "{help}");
    }
    let [_, message, _] = said("json", b"[\n{\"x\": \"\xe9\"}]", &QA);
    assert_eq!(
        message,
        "line 2 of `train.json` is not text in UTF-8 (byte 0xe9 at column 8)"
    );
}

#[test]
fn an_unknown_column_is_named_with_those_found() {
    let columns = [("question", Elem::Text), ("anwser", Elem::Text)];
    let [code, message, help] = said(
        "jsonl",
        "{\"question\": \"a\", \"answer\": \"b\"}\n",
        &columns,
    );
    assert_eq!(code, "D301");
    assert_eq!(
        message,
        "`train.jsonl` has no column `anwser` (row 1 has `question`, `answer`)"
    );
    assert!(
        help.starts_with("a similar one: `answer`;")
            && help.ends_with("`anwser: text from \"answer\"`"),
        "{help}"
    );
    let many: Json = (0..20).map(|i| (format!("k{i}"), json!(i))).collect();
    let [_, message, _] = said("jsonl", many.to_string(), &QA);
    assert!(message.ends_with("`k7`, 12 more)"), "{message}");
}

#[test]
fn a_cell_of_another_type_is_named_with_its_row() {
    let good = "{\"question\": \"a\", \"answer\": \"b\"}\n\n";
    let text = format!("{good}{{\"question\": \"a\", \"answer\": 4}}\n");
    let [code, message, _] = said("jsonl", text, &QA);
    assert_eq!(code, "D302");
    assert_eq!(
        message,
        "row 2 (line 3) of `train.jsonl`: `answer` is a number, the program declares `text`"
    );
    for (text, column, expected) in [
        (
            "{\"n\": 1.5}",
            ("n", Elem::Int),
            "`n` is a number with a fraction, the program declares `int`",
        ),
        (
            "{\"b\": null}",
            ("b", Elem::Bool),
            "`b` is null, the program declares `bool`",
        ),
        (
            "{\"l\": [\"a\", 2]}",
            ("l", Elem::TextList),
            "item 2 of the list is a number, not text",
        ),
    ] {
        let [code, message, _] = said("jsonl", text, &[column]);
        assert_eq!(code, "D302");
        assert_eq!(message, format!("row 1 of `train.jsonl`: {expected}"));
    }
}

#[test]
fn a_conversation_that_is_none_says_which_message_lacks_what() {
    let user = json!({"role": "user", "content": "hi"});
    for (chat, expected) in [
        (
            json!([user, {"role": "assistant"}]),
            "message 2 has no `content` (it has `role`)",
        ),
        (
            json!([{"from": "human", "value": "hi"}]),
            "message 1 has no `role` (it has `from`, `value`)",
        ),
        (
            json!([user, {"role": "assistant", "content": null}]),
            "`content` of message 2 is null, not text",
        ),
        (json!(["hi"]), "message 1 is text, not an object"),
        (json!("hi"), "`c` is text, the program declares `chat`"),
    ] {
        let text = json!({ "c": chat }).to_string();
        let [code, message, help] = said("jsonl", text, &[("c", Elem::Chat)]);
        assert_eq!(code, "D302");
        assert_eq!(message, format!("row 1 of `train.jsonl`: {expected}"));
        assert!(!help.is_empty());
    }
}

#[test]
fn a_file_without_rows_is_refused() {
    let [code, message, _] = said("jsonl", "\n  \n", &QA);
    assert_eq!(code, "D314");
    assert_eq!(message, "`train.jsonl` has no rows");
    for (format, text) in [
        ("json", "[]"),
        ("json", ""),
        ("json", "\u{feff}\n"),
        ("csv", "\u{feff}"),
    ] {
        let [code, message, _] = said(format, text, &QA);
        assert_eq!(code, "D314", "{format} {text:?}");
        assert_eq!(message, format!("`train.{format}` has no rows"));
    }
}

#[test]
fn a_pipe_or_a_device_is_refused_without_reading_it() {
    for format in rows::FORMATS {
        let d = load(
            &declared(format, "/dev/zero", &QA),
            Path::new("/"),
            Path::new("."),
        )
        .unwrap_err();
        assert_eq!(d.code, "D300");
        assert_eq!(d.message, "`/dev/zero` is not a regular file");
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("rows.jsonl");
    let _open = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let d = load(
        &declared("jsonl", "rows.jsonl", &QA),
        dir.path(),
        Path::new("."),
    )
    .unwrap_err();
    assert_eq!(d.message, "`rows.jsonl` is not a regular file");
}

#[test]
fn a_row_that_does_not_end_is_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train");
    let long = "a".repeat(65 << 20);
    for (format, before, one, message) in [
        (
            "jsonl",
            "{\"t\": \"",
            "{\"t\": 1}\n",
            "line 1 of `train` is longer than 64 MB",
        ),
        (
            "json",
            "[{\"t\": \"",
            "[{\"t\": 1}, {\"t\": \"",
            "the first row of `train` is longer than 64 MB",
        ),
        (
            "csv",
            "t\n\"",
            "t\n1\n\"",
            "the first row of `train` is longer than 64 MB",
        ),
    ] {
        let data = declared(format, "train", &[("t", Elem::Text)]);
        std::fs::write(&path, format!("{before}{long}")).unwrap();
        let d = rows::read(&data, &path, Extent::Head).unwrap_err().told();
        assert_eq!((d.code.as_str(), d.message.as_str()), ("D300", message));
        std::fs::write(&path, format!("{one}{long}")).unwrap();
        match rows::read(&data, &path, Extent::Head) {
            Ok(rows) => assert_eq!((rows.rows.len(), rows.complete), (1, false), "{format}"),
            Err(u) => assert_eq!(u.told().message, "line 2 of `train` is longer than 64 MB"),
        }
    }
}

#[test]
fn a_line_far_down_is_told_and_not_drawn_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.jsonl");
    let data = declared("jsonl", "d.jsonl", &QA);
    for (text, drawn) in [
        ("{}\n".repeat(999), true),
        (format!("{{}}{}\n", " ".repeat(2 << 20)), false),
    ] {
        let number = text.lines().count() + 1;
        std::fs::write(&path, format!("{text}{{\"é\" 1}}\n")).unwrap();
        let mut sources = Sources::default();
        let d = rows::read(&data, &path, Extent::All)
            .unwrap_err()
            .drawn(&data, &mut sources);
        assert!(
            d.message
                .starts_with(&format!("line {number} of `d.jsonl`")),
            "{}",
            d.message
        );
        match drawn {
            true => {
                let span = d.span().unwrap();
                assert_eq!(sources.get(span.file).line_column(span.lo).0, number);
            }
            false => assert!(d.help.unwrap().starts_with("the line is `{\"é\" 1}`")),
        }
    }
}

#[test]
fn a_csv_quote_that_is_not_closed_and_a_row_after_a_long_cell_are_placed() {
    let [_, message, help] = said("csv", "question,answer\n\"a,b\nc,d\n", &QA);
    assert_eq!(
        message,
        "line 2 of `train.csv` has 1 cell, and the first line names 2"
    );
    assert!(help.contains("quote"), "{help}");
    let text = "\u{feff}\"question\",n\n\"a\nb \"\"c\"\"\",1\nd,many\n";
    let [_, message, _] = said("csv", text, &[("question", Elem::Text), ("n", Elem::Int)]);
    assert_eq!(
        message,
        "row 2 (line 4) of `train.csv`: `n` is text, the program declares `int`"
    );
}

#[test]
fn a_json_list_read_as_lines_is_pointed_to_its_own_source() {
    let [_, message, help] = said("jsonl", "[{\"question\": \"a\", \"answer\": \"b\"}]\n", &QA);
    assert_eq!(
        message,
        "line 1 of `train.jsonl` is a list, not a JSON object"
    );
    assert!(help.contains("`json(…)`"), "{help}");
}

#[test]
fn an_unknown_source_is_refused() {
    let [code, message, help] = said("xml", "x", &QA);
    assert_eq!(code, "D300");
    assert_eq!(message, "no data source `xml` is read");
    assert_eq!(help, "one of: jsonl, json, csv, parquet, hf");
}

#[test]
fn only_the_head_is_read_where_that_is_asked_for() {
    let row = json!({"question": "a", "answer": "b"});
    let (lines, list) = (format!("{row}\n").repeat(300), vec![row; 300]);
    let dir = tempfile::tempdir().unwrap();
    let csv = format!("question,answer\n{}", "a,b\n".repeat(300));
    // What follows the head is not even parsed.
    for (format, text, broken) in [
        ("jsonl", lines.clone(), format!("{lines}{{")),
        (
            "json",
            json!(list).to_string(),
            json!(list).to_string().replace("}]", "}"),
        ),
        ("csv", csv.clone(), format!("{csv}a,b,c\n")),
    ] {
        let path = dir.path().join("train");
        let data = declared(format, "train", &QA);
        std::fs::write(&path, text).unwrap();
        let all = rows::read(&data, &path, Extent::All).unwrap();
        assert_eq!((all.rows.len(), all.complete), (300, true));
        std::fs::write(&path, broken).unwrap();
        let head = rows::read(&data, &path, Extent::Head).unwrap();
        assert_eq!((head.rows.len(), head.complete), (rows::HEAD, false));
        assert!(rows::read(&data, &path, Extent::All).is_err());
        assert_eq!(head.rows, all.rows[..rows::HEAD]);
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ,\"\n\r\u{e9}]{0,12}", any::<String>()]
}

proptest! {
    /// The three formats hold the same rows.
    #[test]
    fn a_row_reads_the_same_from_every_format(
        cells in prop::collection::vec((text(), any::<i32>(), any::<bool>()), 1..20)
    ) {
        let columns = [("t", Elem::Text), ("i", Elem::Int), ("b", Elem::Bool)];
        let objects: Vec<Json> = cells
            .iter()
            .map(|(t, i, b)| json!({"t": t, "i": i, "b": b}))
            .collect();
        let lines: String = objects.iter().map(|o| format!("{o}\n")).collect();
        let quoted = |(t, i, b): &(String, i32, bool)| {
            format!("\"{}\",{i},{b}\n", t.replace('"', "\"\""))
        };
        let csv: String = cells.iter().map(quoted).collect();
        let from_lines = loaded("jsonl", lines, &columns).unwrap();
        let from_list = loaded("json", json!(objects).to_string(), &columns).unwrap();
        let from_csv = loaded("csv", format!("t,i,b\n{csv}"), &columns).unwrap();
        prop_assert_eq!(all(&from_lines), all(&from_list));
        prop_assert_eq!(all(&from_lines), all(&from_csv));
        prop_assert_eq!(from_lines.rows(), cells.len());
    }
}
