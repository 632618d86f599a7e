//! Keys and values of past positions, laid out so that attention is two uses of the linear layers' inner loop.

use crate::panel::{LANES, Lanes};

/// Keys and values of many sequences ("slots"), all layers and key-value heads.
///
/// A slot holds, for each layer and head, keys as panels of sixteen positions, `[capacity/16][dim]` lanes, and values
/// as panels of sixteen elements, `[dim/16][capacity]` lanes. Memory is touched only as positions are written.
#[derive(Debug)]
pub struct Cache {
    pub(super) shape: Shape,
    /// Where each slot starts among the keys and among the values, and its capacity.
    pub(super) slots: Vec<Slot>,
    pub(super) keys: Vec<Lanes>,
    pub(super) values: Vec<Lanes>,
}

/// Sizes of attention that all slots share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Decoder layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; `heads` is a multiple.
    pub kv_heads: usize,
    /// Elements of a head.
    pub dim: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    keys: usize,
    values: usize,
    /// Positions, a multiple of sixteen.
    pub(super) capacity: usize,
}

impl Shape {
    /// Query heads to a key-value head.
    pub fn shared(&self) -> usize {
        self.heads / self.kv_heads
    }

    fn value_panels(&self) -> usize {
        self.dim.div_ceil(LANES)
    }

    /// Bytes of a slot for `positions` positions.
    pub fn bytes(&self, positions: usize) -> usize {
        let capacity = positions.next_multiple_of(LANES);
        let keys = capacity / LANES * self.dim;
        let values = capacity * self.value_panels();
        self.layers * self.kv_heads * (keys + values) * size_of::<Lanes>()
    }
}

impl Cache {
    /// One slot for each of `capacities` positions.
    pub fn new(shape: Shape, capacities: impl IntoIterator<Item = usize>) -> Self {
        let (mut keys, mut values) = (0, 0);
        let each = shape.layers * shape.kv_heads;
        let slots = capacities
            .into_iter()
            .map(|positions| {
                let capacity = positions.next_multiple_of(LANES);
                let slot = Slot {
                    keys,
                    values,
                    capacity,
                };
                keys += each * (capacity / LANES) * shape.dim;
                values += each * capacity * shape.value_panels();
                slot
            })
            .collect();
        Cache {
            shape,
            slots,
            keys: zeroed(keys),
            values: zeroed(values),
        }
    }

    /// The sizes that all slots share.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where the keys of a head start, and how many lanes they take.
    pub(super) fn key_span(&self, slot: usize, layer: usize, head: usize) -> (usize, usize) {
        let Slot { keys, capacity, .. } = self.slots[slot];
        let len = capacity / LANES * self.shape.dim;
        (keys + (layer * self.shape.kv_heads + head) * len, len)
    }

    /// Where the values of a head start, and how many lanes they take.
    pub(super) fn value_span(&self, slot: usize, layer: usize, head: usize) -> (usize, usize) {
        let Slot {
            values, capacity, ..
        } = self.slots[slot];
        let len = capacity * self.shape.value_panels();
        (values + (layer * self.shape.kv_heads + head) * len, len)
    }
}

/// Zero lanes whose pages the system provides when they are first written.
fn zeroed(len: usize) -> Vec<Lanes> {
    if len == 0 {
        return Vec::new();
    }
    let layout = match std::alloc::Layout::array::<Lanes>(len) {
        Ok(layout) => layout,
        Err(_) => return vec![Lanes::ZERO; len],
    };
    // SAFETY: the layout is that of `len > 0` lanes, zero bytes are zero f32, and the vector takes ownership of an
    // allocation made with its own layout; a failed allocation ends in the standard handler.
    unsafe {
        let start = std::alloc::alloc_zeroed(layout);
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Vec::from_raw_parts(start.cast(), len, len)
    }
}
