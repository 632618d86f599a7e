//! A slice of the fuzzing that `cargo run --release -p rlhf-lang --example fuzz` does at length.

mod mutate;

#[test]
fn mutated_programs_are_read_mended_and_laid_out() {
    let seen = mutate::run(7, 6000, (4, 12));
    assert!(seen.wrong.is_empty(), "{}", seen.wrong.join("\n====\n"));
    assert!(
        seen.compiled >= 500 && seen.fixes > 50 && seen.formatted > 50,
        "{seen:?}"
    );
    let survived = seen.survived as f64 / seen.items as f64;
    assert!(survived >= 0.75, "only {survived:.3} of the items survive");
}
