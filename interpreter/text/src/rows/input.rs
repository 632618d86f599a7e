//! The bytes of a file, unpacked where they are compressed.

use std::fs::File;
use std::io::{Read, Result, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// How a gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file that is open.
pub(super) struct Input {
    /// Its text.
    pub bytes: Box<dyn Read>,
    /// The bytes are those of the file, so that a part of it can be read again.
    pub plain: bool,
}

/// Opens a file.
pub(super) fn open(path: &Path) -> Result<Input> {
    let mut file = File::open(path)?;
    let mut start = vec![];
    file.by_ref()
        .take(GZIP.len() as u64)
        .read_to_end(&mut start)?;
    file.rewind()?;
    let plain = start != GZIP;
    Ok(Input {
        bytes: match plain {
            true => Box::new(file),
            false => Box::new(MultiGzDecoder::new(file)),
        },
        plain,
    })
}
