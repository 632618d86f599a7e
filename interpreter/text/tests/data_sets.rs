//! Parquet files and Hugging Face directories; which rows are held, and what is said of a wrong one.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Column, Data, Elem};
use rlhf_lang::source::Span;
use rlhf_text::rows::{self, Column as Cells, Extent, load};

const ALL: [(&str, Elem); 6] = [
    ("t", Elem::Text),
    ("i", Elem::Int),
    ("f", Elem::Float),
    ("b", Elem::Bool),
    ("l", Elem::TextList),
    ("c", Elem::Chat),
];

fn declared(format: &str, path: &str, columns: &[(&str, Elem)]) -> Data {
    let column = |(name, elem): &(&str, Elem)| Column {
        name: (*name).into(),
        source: (*name).into(),
        elem: *elem,
        span: Span::default(),
    };
    Data {
        name: "train".into(),
        format: format.into(),
        path: path.into(),
        split: None,
        config: None,
        columns: columns.iter().map(column).collect(),
        span: Span::default(),
        path_span: Span::default(),
    }
}

fn split(path: &str, split: &str) -> Data {
    Data {
        split: Some(split.into()),
        ..declared("hf", path, &ALL[..1])
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn scratch() -> PathBuf {
    std::env::temp_dir()
}

fn texts(data: &Data, folder: &Path) -> Vec<String> {
    let table = load(data, folder, &scratch()).unwrap();
    let rows: Vec<usize> = (0..table.rows()).collect();
    let Cells::Text(texts) = table.take(&[0], &rows).unwrap().remove(0) else {
        panic!("a column of texts");
    };
    let texts = texts.into_iter();
    texts
        .map(|t| t.map_or("none".into(), |t| t.to_string()))
        .collect()
}

fn refused(data: &Data, folder: &Path) -> Diagnostic {
    let d = *load(data, folder, &scratch()).unwrap_err();
    assert!(d.help.is_some() && d.labels.len() == 1, "{d:?}");
    d
}

/// A directory with these files, each with one row that holds its name.
fn directory(files: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join("set").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{{\"t\": \"{file}\"}}\n")).unwrap();
    }
    dir
}

#[test]
fn every_type_of_every_codec_is_read_in_any_order() {
    for codec in ["none", "snappy", "zstd", "gzip"] {
        let data = declared("parquet", &format!("{codec}.parquet"), &ALL);
        let table = load(&data, &fixtures(), &scratch()).unwrap();
        assert_eq!(table.rows(), 10, "{codec}");
        // Of other row groups, and one twice.
        let cells = table.take(&[0, 1, 2, 3, 4, 5], &[9, 0, 3, 0, 2]).unwrap();
        let [
            Cells::Text(t),
            Cells::Int(i),
            Cells::Float(f),
            b,
            l,
            Cells::Chat(c),
        ] = &cells[..]
        else {
            panic!("six columns of the declared types");
        };
        let some = |text: &str| Some(text.into());
        assert_eq!(*t, [None, some("é0"), some("é3"), some("é0"), some("é2")]);
        assert_eq!((i[0], i[1]), (9.0, 0.0));
        assert!(i[2].is_nan() && f[4].is_nan());
        assert_eq!((f[0], f[2]), (2.25, 0.75));
        assert_eq!(*b, Cells::Bool(vec![false, true, false, true, true]));
        let Cells::TextList(l) = l else {
            panic!("lists of texts");
        };
        assert_eq!((l[0].len(), l[4].len(), l[4][1].as_ref()), (0, 2, "w1"));
        assert_eq!(
            (c[0][1].role.as_str(), c[0][1].content.as_str()),
            ("assistant", "a9")
        );
    }
}

#[test]
fn a_parquet_column_of_another_type_or_name_is_told_with_its_row() {
    let d = refused(
        &declared("parquet", "none.parquet", &[("i", Elem::Text)]),
        &fixtures(),
    );
    assert_eq!(d.code, "D302");
    assert_eq!(
        d.message,
        "row 1 of `none.parquet`: `i` is a number, the program declares `text`"
    );
    let columns = [("t", Elem::Text), ("extr", Elem::Text)];
    let d = refused(&declared("parquet", "none.parquet", &columns), &fixtures());
    assert_eq!(d.code, "D301");
    assert_eq!(
        d.message,
        "`none.parquet` has no column `extr` (row 1 has `t`, `i`, `f`, `b`, `l`, `c`, `extra`)"
    );
    assert!(d.help.unwrap().contains("`extra`"));
}

#[test]
fn only_the_head_of_a_parquet_file_is_decoded_for_a_check() {
    let path = fixtures().join("none.parquet");
    let data = declared("parquet", "none.parquet", &ALL);
    let read = rows::read(&data, &path, Extent::Head).unwrap();
    assert_eq!((read.rows.len(), read.complete), (10, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Some bytes of a file are others, or it ends early: there are rows or a diagnostic.
    #[test]
    fn a_damaged_parquet_file_is_a_diagnostic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = std::fs::read(fixtures().join("snappy.parquet")).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        std::fs::write(dir.path().join("d.parquet"), bytes).unwrap();
        if let Err(d) = load(&declared("parquet", "d.parquet", &ALL), dir.path(), dir.path()) {
            prop_assert!(d.code.starts_with("D3") && d.help.is_some(), "{d:?}");
        }
    }
}

proptest! {
    /// Whatever the bytes are, there is a table or a diagnostic with a way out.
    #[test]
    fn no_file_brings_the_reader_down(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let dir = tempfile::tempdir().unwrap();
        for format in rows::FORMATS {
            std::fs::write(dir.path().join("train"), &bytes).unwrap();
            if let Err(d) = load(&declared(format, "train", &ALL), dir.path(), dir.path()) {
                prop_assert!(d.code.starts_with("D3") && d.help.is_some(), "{d:?}");
            }
        }
    }
}

#[test]
fn a_split_is_its_shards_in_order() {
    assert_eq!(
        texts(&split("hub", "train"), &fixtures()),
        [
            "é0", "é1", "é2", "é3", "none", "é5", "é6", "é7", "é8", "none"
        ]
    );
    assert_eq!(texts(&split("hub", "test"), &fixtures()), ["x", "y"]);
}

#[test]
fn the_usual_layouts_are_read() {
    for (files, asked, expected) in [
        (
            &["train.jsonl", "test.jsonl"][..],
            "train",
            &["train.jsonl"][..],
        ),
        (
            &["data/train.json", "data/dev.json"],
            "validation",
            &["data/dev.json"],
        ),
        (
            &["train/b.jsonl", "train/a.jsonl"],
            "train",
            &["train/a.jsonl", "train/b.jsonl"],
        ),
        (
            &["rows.jsonl", "dataset_infos.json"],
            "train",
            &["rows.jsonl"],
        ),
        (
            &[
                "train_sft-00000-of-00001.jsonl",
                "test_sft-00000-of-00001.jsonl",
            ],
            "train_sft",
            &["train_sft-00000-of-00001.jsonl"],
        ),
        (
            &["my-training.jsonl", "my-test.jsonl"],
            "train",
            &["my-training.jsonl"],
        ),
        (
            &["train.jsonl", ".cache/train.jsonl"],
            "train",
            &["train.jsonl"],
        ),
    ] {
        let dir = directory(files);
        assert_eq!(
            texts(&split("set", asked), dir.path()),
            expected,
            "{files:?}"
        );
    }
    let dir = directory(&["main/train.jsonl", "socratic/train.jsonl"]);
    let data = Data {
        config: Some("socratic".into()),
        ..split("set", "train")
    };
    assert_eq!(texts(&data, dir.path()), ["socratic/train.jsonl"]);
}

#[test]
fn a_choice_or_a_gap_is_told_with_the_names_there_are() {
    let said = |files: &[&str], data: Data| {
        let dir = directory(files);
        let d = refused(&data, dir.path());
        assert_eq!(d.code, "D300");
        format!("{}; {}", d.message, d.help.unwrap())
    };
    assert_eq!(
        said(&["train.jsonl", "test.jsonl"], split("set", "trian")),
        "`set` has no split `trian`; a similar one: `train`"
    );
    assert_eq!(
        said(&["dev.jsonl", "test.jsonl"], declared("hf", "set", &ALL)),
        "`set` has the splits `test`, `validation`, and none is named; as in `hf(\"set\", split: \"test\")`"
    );
    assert_eq!(
        said(
            &["main/train.jsonl", "socratic/train.jsonl"],
            split("set", "train")
        ),
        "`set` has the split `train` in `main`, `socratic`; one is named by \
         `hf(\"set\", split: \"train\", config: \"main\")`"
    );
    assert_eq!(
        said(&["README.md"], split("set", "train")),
        "`set` has no file with rows; files that are read end in .jsonl, .json, .csv, .parquet"
    );
    assert!(
        said(
            &["data-00000-of-00001.arrow", "state.json"],
            split("set", "train")
        )
        .starts_with("`set` holds Arrow files of `save_to_disk`, which are not read")
    );
    assert!(
        said(&["train.jsonl"], split("sets", "train"))
            .starts_with("there is no directory `sets`; a similar name is there: ")
    );
}

#[test]
fn a_row_of_several_files_is_named_with_its_own() {
    let dir = directory(&["train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl"]);
    let path = dir.path().join("set/train-00001-of-00002.jsonl");
    std::fs::write(path, "{\"t\": \"a\"}\n{\"t\": 1}\n").unwrap();
    let d = refused(&split("set", "train"), dir.path());
    assert_eq!(
        d.message,
        "row 2 of `set/train-00001-of-00002.jsonl`: `t` is a number, the program declares `text`"
    );
}

#[test]
fn a_compressed_file_reads_as_the_file_itself() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("t.jsonl")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    gzip.write_all(b"{\"t\": \"a\"}\n\n{\"t\": \"b\"}\n")
        .unwrap();
    gzip.finish().unwrap();
    assert_eq!(
        texts(&declared("jsonl", "t.jsonl", &ALL[..1]), dir.path()),
        ["a", "b"]
    );
}

#[test]
fn a_file_that_changes_under_a_run_is_noticed_and_one_that_grows_is_not_disturbed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    std::fs::write(&path, "{\"t\": \"a\"}\n{\"t\": \"b\"}\n").unwrap();
    let table = load(
        &declared("jsonl", "t.jsonl", &ALL[..1]),
        dir.path(),
        dir.path(),
    )
    .unwrap();
    std::fs::write(&path, "{\"t\": \"a\"}\n{\"t\": \"c\"}\n{\"t\": \"d\"}\n").unwrap();
    assert_eq!(
        table.take(&[0], &[0]).unwrap(),
        [Cells::Text(vec![Some("a".into())])]
    );
    let d = table.take(&[0], &[1]).unwrap_err();
    assert_eq!(
        d.message,
        "`t.jsonl` changed while it is read: row 2 is another one"
    );
}
