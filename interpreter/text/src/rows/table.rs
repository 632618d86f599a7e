//! A data set of which only the places of its rows are in memory.

use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::Data;
use serde_json::{Map, Value as Json};

use super::cell;
use super::{Row, Sink};
use crate::{Message, Result};

/// Cells of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// NaN is none.
    Float(Vec<f64>),
    /// Whole numbers; NaN is none.
    Int(Vec<f64>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Texts; `None` is none.
    Text(Vec<Option<Arc<str>>>),
    /// Conversations.
    Chat(Vec<Arc<[Message]>>),
    /// Lists of texts.
    TextList(Vec<Arc<[Arc<str>]>>),
}

/// A data set. Rows stay on the disk, as one JSON object each: in a jsonl file where they are, of other
/// formats in a scratch file that has no name and goes with the process. 16 bytes a row are in memory.
#[derive(Debug)]
pub struct Table {
    data: Data,
    parts: Vec<Part>,
}

/// The rows of one file.
#[derive(Debug)]
pub(super) struct Part {
    /// As the program declares it, under this file's own name.
    data: Data,
    file: File,
    places: Vec<Place>,
}

/// Where a row is.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    length: u32,
    /// Of its bytes, so that a file that changes while a run reads it is noticed.
    hash: u32,
}

impl Table {
    /// Rows of the parts one after the other; `data` is the declaration.
    pub(super) fn new(data: &Data, parts: Vec<Part>) -> Table {
        Table {
            data: data.clone(),
            parts,
        }
    }

    /// The number of rows; at least 1.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.places.len()).sum()
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.data.columns.len()
    }

    /// Bytes of memory that stay in use whatever is read.
    pub fn held(&self) -> usize {
        let places = self.parts.iter().map(|part| part.places.capacity());
        places.sum::<usize>() * size_of::<Place>()
    }

    /// The cells of some columns, by their index in the declaration, at some rows, each below
    /// [`Table::rows`], in the order asked for.
    ///
    /// D300 where a file is no longer what it was when it was opened.
    pub fn take(&self, columns: &[usize], rows: &[usize]) -> Result<Vec<Column>> {
        let declared: Vec<_> = columns
            .iter()
            .filter_map(|c| self.data.columns.get(*c))
            .collect();
        let mut cells: Vec<Column> = declared.iter().map(|c| cell::empty(c.elem)).collect();
        for row in rows {
            let (part, number) = self.part(*row)?;
            let row = part.row(number)?;
            for (column, cells) in declared.iter().zip(&mut cells) {
                cell::put(&part.data, column, &row, cells)?;
            }
        }
        Ok(cells)
    }

    /// The part a row is in, and its index there.
    fn part(&self, row: usize) -> Result<(&Part, usize)> {
        let mut index = row;
        for part in &self.parts {
            match part.places.len() {
                n if index < n => return Ok((part, index)),
                n => index -= n,
            }
        }
        let message = format!("row {} of {} does not exist", row + 1, self.rows());
        Err(Box::new(Diagnostic::error(
            "",
            self.data.path_span,
            message,
        )))
    }
}

impl Part {
    fn row(&self, index: usize) -> Result<Row> {
        let place = self.places[index];
        let mut bytes = vec![0; place.length as usize];
        let read = self.file.read_exact_at(&mut bytes, place.at);
        let same = read.is_ok() && hash(&bytes) == place.hash;
        let object = serde_json::from_slice(&bytes).ok().filter(|_| same);
        let object = object.ok_or_else(|| {
            let number = index + 1;
            let path = &self.data.path;
            let message = format!("`{path}` changed while it is read: row {number} is another one");
            Diagnostic::error("D300", self.data.path_span, message)
                .help("a run reads its rows where they are; copy a file that others still write to")
        })?;
        Ok(Row {
            number: index + 1,
            line: None,
            file: None,
            object,
        })
    }
}

/// Takes the rows of one file: checks their cells and notes where they are.
pub(super) struct Opening<'a> {
    data: &'a Data,
    source: File,
    places: Vec<Place>,
    scratch: Option<Scratch>,
    folder: &'a Path,
    fault: Option<Box<Diagnostic>>,
}

struct Scratch {
    file: BufWriter<File>,
    at: u64,
}

impl<'a> Opening<'a> {
    /// `source` is the file itself; a scratch file is made in `folder` if one is needed.
    pub(super) fn new(data: &'a Data, source: File, folder: &'a Path) -> Opening<'a> {
        Opening {
            data,
            source,
            places: vec![],
            scratch: None,
            folder,
            fault: None,
        }
    }

    /// The rows, all of which fit the declaration.
    pub(super) fn finish(mut self) -> Result<Part> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.places.shrink_to_fit();
        let file = match self.scratch {
            None => self.source,
            Some(scratch) => match scratch.file.into_inner() {
                Ok(file) => file,
                Err(e) => return Err(unwritten(self.data, self.folder, e.error())),
            },
        };
        Ok(Part {
            data: self.data.clone(),
            file,
            places: self.places,
        })
    }

    fn keep(&mut self, object: &Map<String, Json>) -> Result<()> {
        let cells = self.data.columns.iter();
        let cells = cells.filter_map(|c| object.get_key_value(&c.source));
        let cells: Map<String, Json> = cells.map(|(k, v)| (k.clone(), v.clone())).collect();
        let failed = |e: std::io::Error| unwritten(self.data, self.folder, &e);
        let bytes = serde_json::to_vec(&cells).map_err(|e| failed(e.into()))?;
        if self.scratch.is_none() {
            let file = tempfile::tempfile_in(self.folder).map_err(failed)?;
            let file = BufWriter::new(file);
            self.scratch = Some(Scratch { file, at: 0 });
        }
        if let Some(scratch) = &mut self.scratch {
            scratch.file.write_all(&bytes).map_err(failed)?;
            self.places.push(Place::of(scratch.at, &bytes));
            scratch.at += bytes.len() as u64;
        }
        Ok(())
    }
}

impl Sink for Opening<'_> {
    fn full(&self) -> bool {
        self.fault.is_some()
    }

    fn take(&mut self, row: Row, line: Option<(u64, &str)>) {
        let columns = self.data.columns.iter();
        let mut problems = columns.filter_map(|c| cell::problem(self.data, c, &row));
        if let Some(problem) = problems.next() {
            self.fault = Some(Box::new(problem));
            return;
        }
        let kept = match line {
            Some((at, line)) => {
                self.places.push(Place::of(at, line.as_bytes()));
                Ok(())
            }
            None => self.keep(&row.object),
        };
        self.fault = kept.err();
    }
}

impl Place {
    /// No row is longer than what 32 bits count: `LONGEST`.
    fn of(at: u64, bytes: &[u8]) -> Place {
        Place {
            at,
            length: bytes.len() as u32,
            hash: hash(bytes),
        }
    }
}

fn hash(bytes: &[u8]) -> u32 {
    // The lower half of 64 bits that are equally good.
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes) as u32
}

fn unwritten(data: &Data, folder: &Path, error: &std::io::Error) -> Box<Diagnostic> {
    let message = format!(
        "the rows of `{}` cannot be written to a scratch file in `{}`: {error}",
        data.path,
        folder.display()
    );
    let help = format!(
        "a `{}` file is unpacked into one; a jsonl file needs none",
        data.format
    );
    Box::new(Diagnostic::error("D300", data.path_span, message).help(help))
}
