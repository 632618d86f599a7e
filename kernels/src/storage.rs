//! Weights as slices: views of tensor storage that kernels read without copying.

use half::bf16;
use tch::{Device, Kind, Tensor};

/// Elements of a weight, in the precision they are stored in.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'a> {
    /// IEEE single precision.
    F32(&'a [f32]),
    /// The upper half of single precision.
    Bf16(&'a [bf16]),
}

/// A row-major weight matrix `[rows, columns]`; for a linear layer, `[out, in]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// `rows × columns` elements.
    pub elements: Elements<'a>,
    /// Output features.
    pub rows: usize,
    /// Input features.
    pub columns: usize,
}

impl<'a> Elements<'a> {
    /// Elements held.
    pub fn len(&self) -> usize {
        match self {
            Elements::F32(x) => x.len(),
            Elements::Bf16(x) => x.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy in f32.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            Elements::F32(x) => x.to_vec(),
            Elements::Bf16(x) => x.iter().map(|x| x.to_f32()).collect(),
        }
    }

    /// The elements of a contiguous CPU tensor in f32 or bf16, or what is wrong with it.
    ///
    /// Nothing may write to the tensor's storage while the slice lives: libtorch does not know of the borrow, and
    /// a shallow clone elsewhere could. Models are written only by the optimizer, which takes them mutably.
    pub fn of(tensor: &'a Tensor) -> Result<Self, String> {
        if tensor.device() != Device::Cpu {
            return Err(format!(
                "expected a tensor on the CPU, found one on {:?}",
                tensor.device()
            ));
        }
        if !tensor.is_contiguous() {
            return Err("expected a contiguous tensor".into());
        }
        let len = tensor.numel();
        let data = tensor.data_ptr();
        if len == 0 {
            return Err("expected a tensor with elements".into());
        }
        match tensor.kind() {
            // SAFETY: a contiguous CPU f32 tensor owns `len` aligned elements at `data`, alive as long as it.
            Kind::Float => Ok(Elements::F32(unsafe {
                std::slice::from_raw_parts(data as *const f32, len)
            })),
            // SAFETY: as above; `bf16` is a transparent `u16` in libtorch's layout.
            Kind::BFloat16 => Ok(Elements::Bf16(unsafe {
                std::slice::from_raw_parts(data as *const bf16, len)
            })),
            other => Err(format!("expected f32 or bf16, found {other:?}")),
        }
    }
}

impl<'a> Matrix<'a> {
    /// The elements of a two-dimensional tensor.
    pub fn of(tensor: &'a Tensor) -> Result<Self, String> {
        let &[rows, columns] = tensor.size().as_slice() else {
            return Err(format!("expected a matrix, found {:?}", tensor.size()));
        };
        Ok(Matrix {
            elements: Elements::of(tensor)?,
            rows: rows as usize,
            columns: columns as usize,
        })
    }

    /// `count` rows from row `first` on.
    pub fn part(&self, first: usize, count: usize) -> Matrix<'a> {
        let span = first * self.columns..(first + count) * self.columns;
        Matrix {
            elements: match self.elements {
                Elements::F32(x) => Elements::F32(&x[span]),
                Elements::Bf16(x) => Elements::Bf16(&x[span]),
            },
            rows: count,
            columns: self.columns,
        }
    }

    /// Row `r` in f32.
    pub fn row(&self, r: usize) -> impl Iterator<Item = f32> + 'a {
        let span = r * self.columns..(r + 1) * self.columns;
        let (single, half) = match self.elements {
            Elements::F32(x) => (&x[span], &[][..]),
            Elements::Bf16(x) => (&[][..], &x[span]),
        };
        single
            .iter()
            .copied()
            .chain(half.iter().map(|x: &bf16| x.to_f32()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_reads_the_tensor_in_place() -> Result<(), String> {
        let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape([2, 3]);
        assert_eq!(
            Matrix::of(&tensor)?.row(1).collect::<Vec<_>>(),
            [4.0, 5.0, 6.0]
        );
        let half = tensor.to_kind(Kind::BFloat16);
        assert_eq!(
            Matrix::of(&half)?.row(0).collect::<Vec<_>>(),
            [1.0, 2.0, 3.0]
        );
        Ok(())
    }

    #[test]
    fn what_cannot_be_read_in_place_is_refused() {
        let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0]).reshape([2, 2]);
        assert!(Elements::of(&tensor.tr()).is_err());
        assert!(Elements::of(&tensor.to_kind(Kind::Double)).is_err());
        assert!(Matrix::of(&tensor.get(0)).is_err());
    }
}
