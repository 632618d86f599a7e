//! Parquet files: only the declared columns are decoded, a page of each at a time.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::{Type, TypePtr};
use rlhf_lang::graph::Data;
use serde_json::{Map, Number, Value as Json};

use super::unreadable::Unreadable;
use super::{Row, Sink, jsonl};

const WAY_OUT: &str = "`pyarrow.parquet.read_table(path)` tells whether the file is whole";

/// The thread in which files are decoded: what the decoder does not expect of a damaged file is a panic
/// there, and a diagnostic here.
pub const DECODER: &str = "parquet";

/// Gives the rows to `sink` until it is full; true where the file has no others.
pub(super) fn read(
    data: &Data,
    path: &Path,
    sink: &mut (dyn Sink + Send),
) -> Result<bool, Box<Unreadable>> {
    let decode = || catch_unwind(AssertUnwindSafe(|| decode(data, path, sink)));
    let decoded = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(DECODER.into());
        // Its panics are caught within it.
        let running = thread.spawn_scoped(scope, decode);
        running.map(|thread| thread.join().unwrap_or_else(Err))
    });
    match decoded {
        Ok(Ok(read)) => read,
        Ok(Err(_)) => {
            let message = format!("`{}` is damaged and cannot be decoded", data.path);
            Err(Unreadable::new(data, message, WAY_OUT))
        }
        Err(error) => Err(jsonl::not_opened(data, &error)),
    }
}

fn decode(data: &Data, path: &Path, sink: &mut dyn Sink) -> Result<bool, Box<Unreadable>> {
    let file = File::open(path).map_err(|e| jsonl::not_opened(data, &e))?;
    let reader = SerializedFileReader::new(file).map_err(|e| failed(data, &e))?;
    let schema = reader.metadata().file_metadata().schema();
    let fields = schema.get_fields();
    let declared = |field: &&TypePtr| data.columns.iter().any(|c| c.source == field.name());
    let wanted: Vec<TypePtr> = fields.iter().filter(declared).cloned().collect();
    let found = |name: &str| fields.iter().any(|f| f.name() == name);
    let lacking = data.columns.iter().any(|c| !found(&c.source));
    // The names of the file, for the message about one that it does not have.
    let names = fields.iter().map(|f| (f.name().to_string(), Json::Null));
    let names: Map<String, Json> = match lacking {
        true => names.collect(),
        false => Map::new(),
    };
    let mut count = 0;
    let mut take = |cells: Map<String, Json>| {
        count += 1;
        let mut object = names.clone();
        object.extend(cells);
        let row = Row {
            number: count,
            line: None,
            file: None,
            object,
        };
        sink.take(row, None);
        sink.full()
    };
    if wanted.is_empty() {
        let rows = reader.metadata().file_metadata().num_rows();
        for _ in 0..rows {
            if take(Map::new()) {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let projection = Type::group_type_builder(schema.name()).with_fields(wanted);
    let projection = projection.build().map_err(|e| failed(data, &e))?;
    let mut rows = RowIter::from_file(Some(projection), &reader).map_err(|e| failed(data, &e))?;
    loop {
        match rows.next() {
            None => return Ok(true),
            Some(Err(error)) => return Err(failed(data, &error)),
            Some(Ok(row)) => {
                let cells = row.into_columns().into_iter();
                if take(cells.map(|(name, cell)| (name, json(&cell))).collect()) {
                    return Ok(rows.next().is_none());
                }
            }
        }
    }
}

fn failed(data: &Data, error: &ParquetError) -> Box<Unreadable> {
    let said = error.to_string();
    let said = said.rsplit("Parquet error: ").next().unwrap_or(&said);
    let said = said.lines().next().unwrap_or_default();
    let message = format!(
        "`{}` is not a parquet file that can be read: {said}",
        data.path
    );
    Unreadable::new(data, message, WAY_OUT)
}

/// A cell as the other formats would hold it. Numbers that are not finite are none; bytes are text where
/// they are UTF-8; dates and times are written out.
fn json(field: &Field) -> Json {
    match field {
        Field::Null => Json::Null,
        Field::Bool(b) => Json::Bool(*b),
        Field::Byte(n) => Json::from(*n),
        Field::Short(n) => Json::from(*n),
        Field::Int(n) => Json::from(*n),
        Field::Long(n) => Json::from(*n),
        Field::UByte(n) => Json::from(*n),
        Field::UShort(n) => Json::from(*n),
        Field::UInt(n) => Json::from(*n),
        Field::ULong(n) => Json::from(*n),
        Field::Float16(n) => real(f64::from(*n)),
        Field::Float(n) => real(f64::from(*n)),
        Field::Double(n) => real(*n),
        Field::Decimal(_) => match field.to_string().parse() {
            Ok(x) => real(x),
            Err(_) => Json::String(field.to_string()),
        },
        Field::Str(s) => Json::String(s.clone()),
        Field::Bytes(bytes) => match std::str::from_utf8(bytes.data()) {
            Ok(text) => Json::String(text.into()),
            Err(_) => Json::Array(bytes.data().iter().map(|b| Json::from(*b)).collect()),
        },
        Field::Date(_)
        | Field::TimeMillis(_)
        | Field::TimeMicros(_)
        | Field::TimestampMillis(_)
        | Field::TimestampMicros(_) => Json::String(field.to_string()),
        Field::Group(row) => {
            let cells = row.get_column_iter();
            Json::Object(
                cells
                    .map(|(name, cell)| (name.clone(), json(cell)))
                    .collect(),
            )
        }
        Field::ListInternal(list) => list.elements().iter().map(json).collect(),
        Field::MapInternal(map) => {
            let entries = map.entries().iter();
            let entries = entries.map(|(key, value)| {
                let key = json(key);
                let name = key.as_str().map_or_else(|| key.to_string(), str::to_string);
                (name, json(value))
            });
            Json::Object(entries.collect())
        }
    }
}

fn real(x: f64) -> Json {
    Number::from_f64(x).map_or(Json::Null, Json::Number)
}
