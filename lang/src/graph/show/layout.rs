//! A layered drawing: nodes on layers by longest path, edge labels on layers of their own between.
//!
//! Every edge becomes a chain of cells, one a layer, of which one carries its label; every cell has
//! its own width on its layer. So boxes and labels cannot overlap and no edge runs through a box.

/// What is to be laid out.
pub(super) struct Plan {
    /// Width and height of every node.
    pub nodes: Vec<(f64, f64)>,
    /// From, to, width and height of the label. `from` precedes `to` in some topological order.
    pub edges: Vec<(usize, usize, f64, f64)>,
}

/// Where things are; all positions are centres.
pub(super) struct Layout {
    pub width: f64,
    pub height: f64,
    pub nodes: Vec<(f64, f64)>,
    /// For each edge the vertical stretches between its ends, as x, top and bottom. The first one
    /// carries the label.
    pub edges: Vec<Vec<(f64, f64, f64)>>,
}

const GAP: f64 = 24.0;
/// Between two layers; all bends lie here.
const RISE: f64 = 22.0;
const MARGIN: f64 = 24.0;
/// The width that a bare line takes.
const LINE: f64 = 10.0;
/// Rounds of ordering and of placing; the drawing is small, so these are plenty.
const ROUNDS: usize = 24;

struct Cell {
    layer: usize,
    width: f64,
    height: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

pub(super) fn layout(plan: &Plan) -> Layout {
    let ranks = ranks(plan);
    let mut cells: Vec<Cell> = plan
        .nodes
        .iter()
        .zip(&ranks)
        .map(|((w, h), rank)| cell(2 * rank, *w, *h))
        .collect();
    let mut chains: Vec<Vec<usize>> = vec![];
    for (from, to, w, h) in &plan.edges {
        let (top, bottom) = (2 * ranks[*from], 2 * ranks[*to]);
        let mut chain = vec![];
        let mut above = *from;
        // The label sits on the layer below its source.
        for layer in top + 1..bottom {
            let (w, h) = if layer == top + 1 {
                (*w, *h)
            } else {
                (LINE, 0.0)
            };
            let at = cells.len();
            cells.push(cell(layer, w, h));
            link(&mut cells, above, at);
            chain.push(at);
            above = at;
        }
        link(&mut cells, above, *to);
        chains.push(chain);
    }
    let mut layers = by_layer(&cells);
    order(&mut layers, &mut cells);
    place(&layers, &mut cells);
    let left = cells
        .iter()
        .map(|c| c.x - c.width / 2.0)
        .fold(f64::INFINITY, f64::min);
    let left = if left.is_finite() { left } else { 0.0 };
    cells.iter_mut().for_each(|c| c.x += MARGIN - left);
    let (stripes, height) = stripes(&layers, &cells);
    let centre = |i: usize| {
        let (top, bottom) = stripes[cells[i].layer];
        (cells[i].x, (top + bottom) / 2.0)
    };
    let stretch = |i: usize| {
        let (top, bottom) = stripes[cells[i].layer];
        (cells[i].x, top, bottom)
    };
    Layout {
        width: cells
            .iter()
            .map(|c| c.x + c.width / 2.0)
            .fold(0.0, f64::max)
            + MARGIN,
        height,
        nodes: (0..plan.nodes.len()).map(centre).collect(),
        edges: chains
            .iter()
            .map(|chain| chain.iter().map(|i| stretch(*i)).collect())
            .collect(),
    }
}

fn cell(layer: usize, width: f64, height: f64) -> Cell {
    Cell {
        layer,
        width,
        height,
        x: 0.0,
        above: vec![],
        below: vec![],
    }
}

fn link(cells: &mut [Cell], above: usize, below: usize) {
    cells[above].below.push(below);
    cells[below].above.push(above);
}

/// The longest path from a source. Edges point forwards in the order of the list's targets, so as
/// many rounds as nodes suffice.
fn ranks(plan: &Plan) -> Vec<usize> {
    let mut ranks = vec![0; plan.nodes.len()];
    for _ in 0..plan.nodes.len() {
        let before = ranks.clone();
        for (from, to, ..) in &plan.edges {
            ranks[*to] = ranks[*to].max(ranks[*from] + 1);
        }
        if ranks == before {
            break;
        }
    }
    ranks
}

fn by_layer(cells: &[Cell]) -> Vec<Vec<usize>> {
    let count = cells.iter().map(|c| c.layer + 1).max().unwrap_or(0);
    let mut layers = vec![vec![]; count];
    for (i, c) in cells.iter().enumerate() {
        layers[c.layer].push(i);
    }
    layers
}

/// Fewer crossings: each layer sorted by the mean position of its neighbours, downwards and upwards.
fn order(layers: &mut [Vec<usize>], cells: &mut [Cell]) {
    let count = layers.len();
    for round in 0..ROUNDS {
        for (i, cell) in layers.iter().flat_map(|l| l.iter().enumerate()) {
            cells[*cell].x = i as f64;
        }
        let down = round % 2 == 0;
        for step in 0..count {
            let layer = if down { step } else { count - 1 - step };
            let mean = |i: usize| {
                let near = if down {
                    &cells[i].above
                } else {
                    &cells[i].below
                };
                match near.len() {
                    0 => cells[i].x,
                    n => near.iter().map(|j| cells[*j].x).sum::<f64>() / n as f64,
                }
            };
            let mut keyed: Vec<(f64, usize)> =
                layers[layer].iter().map(|i| (mean(*i), *i)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            layers[layer] = keyed.into_iter().map(|(_, i)| i).collect();
            for (x, i) in layers[layer].iter().enumerate() {
                cells[*i].x = x as f64;
            }
        }
    }
}

/// Positions: every cell near the mean of its neighbours, in order and apart.
fn place(layers: &[Vec<usize>], cells: &mut [Cell]) {
    for layer in layers {
        let mut x = 0.0;
        for i in layer {
            cells[*i].x = x + cells[*i].width / 2.0;
            x += cells[*i].width + GAP;
        }
    }
    for round in 0..ROUNDS {
        let mut order: Vec<usize> = (0..layers.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for layer in order {
            settle(&layers[layer], cells, round % 2 == 0);
        }
    }
}

fn settle(layer: &[usize], cells: &mut [Cell], down: bool) {
    let wish: Vec<f64> = layer
        .iter()
        .map(|i| {
            let c = &cells[*i];
            let near = match (down, c.above.is_empty(), c.below.is_empty()) {
                (_, true, true) => return c.x,
                (true, false, _) | (false, _, true) => &c.above,
                _ => &c.below,
            };
            near.iter().map(|j| cells[*j].x).sum::<f64>() / near.len() as f64
        })
        .collect();
    // Pushed apart from the left and from the right; the mean of the two keeps the distances.
    let apart = |a: usize, b: usize| (cells[a].width + cells[b].width) / 2.0 + GAP;
    let mut right = wish.clone();
    for k in 1..layer.len() {
        right[k] = right[k].max(right[k - 1] + apart(layer[k - 1], layer[k]));
    }
    let mut left = wish;
    for k in (1..layer.len()).rev() {
        left[k - 1] = left[k - 1].min(left[k] - apart(layer[k - 1], layer[k]));
    }
    for (k, i) in layer.iter().enumerate() {
        cells[*i].x = (left[k] + right[k]) / 2.0;
    }
}

/// Top and bottom of every layer, and the height of the whole.
fn stripes(layers: &[Vec<usize>], cells: &[Cell]) -> (Vec<(f64, f64)>, f64) {
    let mut y = MARGIN;
    let mut stripes = vec![];
    for layer in layers {
        let tallest = layer.iter().map(|i| cells[*i].height).fold(0.0, f64::max);
        stripes.push((y, y + tallest));
        y += tallest + RISE;
    }
    (stripes, y - RISE + MARGIN)
}
