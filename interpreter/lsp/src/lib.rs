//! The editor server. Nothing is served yet: diagnostics, hover and formatting are `lang`'s, and this
//! crate will speak JSON-RPC over them.
