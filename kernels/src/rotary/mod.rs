//! Rotary position embedding (Su et al., 2021) on heads split in halves: element `i` of a head's first `dim` turns with
//! element `i + dim/2`, as Hugging Face checkpoints store them. What comes after stays.

/// Cosines and sines of the first positions of a model.
#[derive(Clone, Debug)]
pub struct Rotary {
    /// `[positions, dim/2]` pairs of cosine and sine halves: a position's cosines, then its sines.
    table: Vec<f32>,
    half: usize,
}

impl Rotary {
    /// Angles `position · frequencies[i]`, in f32, for positions below `positions`.
    pub fn new(frequencies: &[f32], positions: usize) -> Self {
        Rotary::scaled(frequencies, 1.0, positions)
    }

    /// The same, with turned elements multiplied by `scale` beside.
    pub fn scaled(frequencies: &[f32], scale: f32, positions: usize) -> Self {
        let mut table = Vec::with_capacity(positions * 2 * frequencies.len());
        for position in 0..positions {
            let angles = || frequencies.iter().map(|f| position as f32 * f);
            table.extend(angles().map(|angle| angle.cos() * scale));
            table.extend(angles().map(|angle| angle.sin() * scale));
        }
        Rotary {
            table,
            half: frequencies.len(),
        }
    }

    /// Elements of a head that turn.
    pub fn dim(&self) -> usize {
        2 * self.half
    }

    /// Turns each head of `heads`, `width` elements apiece, by `position`; `width` is at least [`Rotary::dim`].
    pub fn rotate(&self, position: usize, width: usize, heads: &mut [f32]) {
        let half = self.half;
        let at = position * 2 * half;
        let (cos, sin) = self.table[at..at + 2 * half].split_at(half);
        for head in heads.chunks_exact_mut(width) {
            let (first, second) = head[..2 * half].split_at_mut(half);
            for (((a, b), c), s) in first.iter_mut().zip(second).zip(cos).zip(sin) {
                (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_rotation_of_each_pair() {
        let rotary = Rotary::new(&[1.0, 0.25], 9);
        let mut heads = vec![1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 0.0, 0.0];
        rotary.rotate(8, 4, &mut heads);
        let (s, c) = 8f32.sin_cos();
        let (s2, c2) = 2f32.sin_cos();
        let expected = [
            c - 3.0 * s,
            2.0 * c2 - 4.0 * s2,
            3.0 * c + s,
            4.0 * c2 + 2.0 * s2,
            0.0,
            c2,
            0.0,
            s2,
        ];
        for (a, b) in heads.iter().zip(expected) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
    }

    #[test]
    fn position_zero_changes_nothing() {
        let mut head = vec![1.0, 2.0, 3.0, 4.0];
        Rotary::new(&[1.0, 0.5], 1).rotate(0, 4, &mut head);
        assert_eq!(head, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn what_comes_after_the_turned_part_stays() {
        let mut heads = vec![1.0, 0.0, 5.0, 6.0, 0.0, 1.0, 7.0, 8.0];
        Rotary::scaled(&[1.0], 2.0, 2).rotate(1, 4, &mut heads);
        let (s, c) = 1f32.sin_cos();
        let (s, c) = (2.0 * s, 2.0 * c);
        assert_eq!(heads, [c, s, 5.0, 6.0, -s, c, 7.0, 8.0]);
    }
}
