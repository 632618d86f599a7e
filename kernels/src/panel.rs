//! Activations of many rows, sixteen rows to a panel, features outermost within a panel.

use std::ops::Range;

/// Rows side by side in one panel.
pub const LANES: usize = 16;

/// One feature of the sixteen rows of a panel: a cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lanes(pub [f32; LANES]);

impl Lanes {
    /// All zero.
    pub const ZERO: Lanes = Lanes([0.0; LANES]);
}

/// `[rows, features]` activations in f32, stored as `[panel][feature][lane]`.
///
/// Lanes past the last row hold finite numbers that nothing reads.
#[derive(Clone, Debug)]
pub struct Panels {
    data: Vec<Lanes>,
    rows: usize,
    features: usize,
}

impl Panels {
    /// Room for no rows yet.
    pub fn new(features: usize) -> Self {
        Panels {
            data: Vec::new(),
            rows: 0,
            features,
        }
    }

    /// From row-major `[rows, features]`.
    pub fn from_rows(values: &[f32], features: usize) -> Self {
        let mut panels = Panels::new(features);
        panels.resize(values.len() / features);
        for (r, row) in values.chunks_exact(features).enumerate() {
            panels.set_row(r, row.iter().copied());
        }
        panels
    }

    /// Makes this hold `rows` rows; their values are unspecified but finite.
    pub fn resize(&mut self, rows: usize) {
        self.rows = rows;
        self.data
            .resize(rows.div_ceil(LANES) * self.features, Lanes::ZERO);
    }

    /// Makes this hold `rows` rows of zeros.
    pub fn clear(&mut self, rows: usize) {
        self.resize(rows);
        self.data.fill(Lanes::ZERO);
    }

    /// Rows held.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Features of a row.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Panels held.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// Lanes of panel `p` that hold rows.
    pub fn live(&self, p: usize) -> usize {
        (self.rows - p * LANES).min(LANES)
    }

    /// Panel `p`: one [`Lanes`] a feature.
    pub fn panel(&self, p: usize) -> &[Lanes] {
        &self.data[self.span(p)]
    }

    /// Panel `p`, for writing.
    pub fn panel_mut(&mut self, p: usize) -> &mut [Lanes] {
        let span = self.span(p);
        &mut self.data[span]
    }

    /// All panels one after another.
    pub(crate) fn data_mut(&mut self) -> &mut [Lanes] {
        &mut self.data
    }

    /// All numbers one after another: feature `f` of row `r` at [`Panels::index`].
    pub(crate) fn floats_mut(&mut self) -> &mut [f32] {
        let len = self.data.len() * LANES;
        // SAFETY: `Lanes` is `repr(C)` with sixteen f32 and no padding.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_mut_ptr().cast(), len) }
    }

    /// Where feature `f` of row `r` lies among `features` in [`Panels::floats_mut`].
    pub(crate) fn index(features: usize, r: usize, f: usize) -> usize {
        ((r / LANES) * features + f) * LANES + r % LANES
    }

    fn span(&self, p: usize) -> Range<usize> {
        p * self.features..(p + 1) * self.features
    }

    /// Writes row `r`.
    pub fn set_row(&mut self, r: usize, values: impl Iterator<Item = f32>) {
        let lane = r % LANES;
        for (to, value) in self.panel_mut(r / LANES).iter_mut().zip(values) {
            to.0[lane] = value;
        }
    }

    /// Reads row `r`.
    pub fn row(&self, r: usize) -> impl Iterator<Item = f32> + '_ {
        let lane = r % LANES;
        self.panel(r / LANES).iter().map(move |lanes| lanes.0[lane])
    }

    /// Row-major `[rows, features]`.
    pub fn to_rows(&self) -> Vec<f32> {
        (0..self.rows).flat_map(|r| self.row(r)).collect()
    }

    /// Adds the rows of another, as many and as wide.
    pub fn add(&mut self, other: &Panels) {
        assert_eq!((self.rows, self.features), (other.rows, other.features));
        for (to, x) in self.data.iter_mut().zip(&other.data) {
            to.0.iter_mut().zip(x.0).for_each(|(to, x)| *to += x);
        }
    }

    /// Adds `factor` times row `from` of `other` to row `r`.
    pub fn add_row(&mut self, r: usize, other: &Panels, from: usize, factor: f32) {
        let (to, lane) = (r % LANES, from % LANES);
        let source = other.panel(from / LANES);
        for (sum, x) in self.panel_mut(r / LANES).iter_mut().zip(source) {
            sum.0[to] += factor * x.0[lane];
        }
    }

    /// The given rows, in the given order.
    pub fn gather(&self, rows: &[usize]) -> Panels {
        let mut chosen = Panels::new(self.features);
        chosen.resize(rows.len());
        for (to, &from) in rows.iter().enumerate() {
            chosen.set_row(to, self.row(from));
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_in() {
        let values: Vec<f32> = (0..19 * 5).map(|i| i as f32).collect();
        let panels = Panels::from_rows(&values, 5);
        assert_eq!(panels.panels(), 2);
        assert_eq!(panels.live(1), 3);
        assert_eq!(panels.to_rows(), values);
        assert_eq!(
            panels.gather(&[18, 0]).to_rows(),
            [&values[90..], &values[..5]].concat()
        );
    }
}
