//! Packing rows without padding: each prompt once, then its responses, one token a line of every matrix.
//!
//! A group is a tree: the prompt is the trunk and each response a branch. A branch sees the trunk and
//! itself. The last token of a response predicts nothing that is asked for, so it is a target and no
//! input, unless the state after it is wanted.

use tch::Tensor;

use crate::batch::Rows;

/// Rows laid out for the decoder.
#[derive(Debug)]
pub struct Packed {
    /// Input tokens, `[packed]`.
    pub ids: Tensor,
    /// Position of each input token in its sequence.
    pub positions: Vec<i64>,
    /// For each response token, the packed line whose hidden state predicts it, `[tokens]`.
    pub predicting: Tensor,
    /// The response tokens, `[tokens]`.
    pub targets: Tensor,
    /// For each response, the packed line of its last token, `[responses]`: of the prompt's where it has
    /// none. Only in [`Packed::whole`], else empty.
    pub last: Tensor,
    /// Who attends to whom.
    pub trees: Vec<Tree>,
}

/// A prompt and its responses in the packed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The prompt.
    pub trunk: Span,
    /// Inputs of the responses; those of fewer than two tokens have none.
    pub branches: Vec<Span>,
}

/// Neighbouring packed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub start: i64,
    /// How many.
    pub len: i64,
}

impl Packed {
    /// Packs prompts with their responses. A prompt none of whose responses has a token is left out.
    pub fn rows(rows: &Rows) -> Packed {
        let mut packing = Packing::default();
        for (prompt, responses) in rows.prompts.iter().zip(rows.responses.chunks(rows.group)) {
            if responses.iter().any(|r| !r.is_empty()) {
                packing.tree(prompt, responses);
            }
        }
        packing.finish()
    }

    /// Packs prompts with their responses, every token an input, so that each response has a last state.
    pub fn whole(rows: &Rows) -> Packed {
        let mut packing = Packing::default();
        for (prompt, responses) in rows.prompts.iter().zip(rows.responses.chunks(rows.group)) {
            packing.whole_tree(prompt, responses);
        }
        packing.finish()
    }

    /// Packs one sequence, of which every token is an input and none a target.
    pub fn sequence(ids: &[u32]) -> Packed {
        let mut packing = Packing::default();
        packing.tree(ids, &[]);
        packing.finish()
    }

    /// Packed lines.
    pub fn len(&self) -> i64 {
        self.positions.len() as i64
    }

    /// Whether no token is to be predicted.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
}

#[derive(Default)]
struct Packing {
    ids: Vec<i64>,
    positions: Vec<i64>,
    predicting: Vec<i64>,
    targets: Vec<i64>,
    last: Vec<i64>,
    trees: Vec<Tree>,
}

impl Packing {
    fn tree(&mut self, prompt: &[u32], responses: &[Vec<u32>]) {
        let trunk = self.span(prompt, 0);
        let mut branches = Vec::new();
        for response in responses {
            let Some((_, inputs)) = response.split_last() else {
                continue;
            };
            let branch = self.span(inputs, trunk.len);
            self.predicting.push(trunk.start + trunk.len - 1);
            self.predicting
                .extend(branch.start..branch.start + branch.len);
            self.targets.extend(response.iter().map(|&t| i64::from(t)));
            if branch.len > 0 {
                branches.push(branch);
            }
        }
        self.trees.push(Tree { trunk, branches });
    }

    fn whole_tree(&mut self, prompt: &[u32], responses: &[Vec<u32>]) {
        let trunk = self.span(prompt, 0);
        let mut branches = Vec::new();
        for response in responses {
            let branch = self.span(response, trunk.len);
            let before = trunk.start + trunk.len - 1;
            if branch.len == 0 {
                self.last.push(before);
                continue;
            }
            let end = branch.start + branch.len - 1;
            self.predicting.push(before);
            self.predicting.extend(branch.start..end);
            self.targets.extend(response.iter().map(|&t| i64::from(t)));
            self.last.push(end);
            branches.push(branch);
        }
        self.trees.push(Tree { trunk, branches });
    }

    fn span(&mut self, ids: &[u32], position: i64) -> Span {
        let start = self.ids.len() as i64;
        let len = ids.len() as i64;
        self.ids.extend(ids.iter().map(|&t| i64::from(t)));
        self.positions.extend(position..position + len);
        Span { start, len }
    }

    fn finish(self) -> Packed {
        Packed {
            ids: Tensor::from_slice(&self.ids),
            positions: self.positions,
            predicting: Tensor::from_slice(&self.predicting),
            targets: Tensor::from_slice(&self.targets),
            last: Tensor::from_slice(&self.last),
            trees: self.trees,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_packed_once_and_predicts_every_first_token() -> Result<(), tch::TchError> {
        let rows = Rows {
            prompts: vec![vec![5, 6].into(), vec![7].into()],
            group: 2,
            responses: vec![vec![1, 2, 3], vec![4], vec![], vec![8, 9]],
        };
        let packed = Packed::rows(&rows);
        assert_eq!(Vec::<i64>::try_from(&packed.ids)?, [5, 6, 1, 2, 7, 8]);
        assert_eq!(packed.positions, [0, 1, 2, 3, 0, 1]);
        assert_eq!(
            Vec::<i64>::try_from(&packed.predicting)?,
            [1, 2, 3, 1, 4, 5]
        );
        assert_eq!(Vec::<i64>::try_from(&packed.targets)?, [1, 2, 3, 4, 8, 9]);
        assert_eq!(packed.trees[0].branches, [Span { start: 2, len: 2 }]);
        Ok(())
    }

    #[test]
    fn whole_rows_have_every_token_and_a_last_line_each() -> Result<(), tch::TchError> {
        let rows = Rows {
            prompts: vec![vec![5, 6].into(), vec![7].into()],
            group: 2,
            responses: vec![vec![1, 2], vec![], vec![], vec![8]],
        };
        let packed = Packed::whole(&rows);
        assert_eq!(Vec::<i64>::try_from(&packed.ids)?, [5, 6, 1, 2, 7, 8]);
        assert_eq!(packed.positions, [0, 1, 2, 3, 0, 1]);
        assert_eq!(Vec::<i64>::try_from(&packed.predicting)?, [1, 2, 4]);
        assert_eq!(Vec::<i64>::try_from(&packed.last)?, [3, 1, 4, 5]);
        Ok(())
    }

    #[test]
    fn a_prompt_without_response_tokens_is_left_out() {
        let rows = Rows {
            prompts: vec![vec![5, 6].into(), vec![7].into()],
            group: 1,
            responses: vec![vec![], vec![]],
        };
        assert!(Packed::rows(&rows).is_empty());
    }
}
