//! Every construct of the language, as a tree.

mod syntax_dump;

use syntax_dump::*;

#[test]
fn the_sample_program_parses() {
    insta::assert_snapshot!(items(GRPO));
}
