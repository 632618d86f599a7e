//! The one layout.

mod syntax_dump;

use rlhf_lang::fmt::format;
use syntax_dump::*;

/// Formats; checks that a second time changes nothing and that the tree is the same.
fn laid_out(text: &str) -> String {
    let once = format(text);
    assert_eq!(once.diagnostics, vec![], "{text}");
    let twice = format(&once.text);
    assert_eq!(twice.text, once.text);
    assert_eq!(items(&once.text), items(text));
    once.text
}

#[test]
fn the_sample_program_is_a_fixed_point() {
    assert_eq!(format(GRPO).text, GRPO);
}

#[test]
fn spaces_and_lines_come_back() {
    let squeezed: String = GRPO
        .lines()
        .map(|line| {
            if line.contains("//") {
                format!("{line}\n")
            } else {
                let mut line = line.trim().to_string();
                for mark in ["=", ",", ":", "(", ")", "[", "]", "{", "}", "*"] {
                    line = line
                        .replace(&format!(" {mark}"), mark)
                        .replace(&format!("{mark} "), mark);
                }
                line + "\n"
            }
        })
        .collect();
    assert_ne!(squeezed, GRPO);
    assert_eq!(laid_out(&squeezed), GRPO);
    let stretched: String = GRPO
        .lines()
        .map(|line| {
            if line.contains("//") {
                format!("{line}\n")
            } else {
                line.replace('(', " (\n   ")
                    .replace(',', "\n  , ")
                    .replace('=', "\t\t=  ")
                    .replace("=  \t\t=", "==")
                    + "\n"
            }
        })
        .collect();
    assert_eq!(laid_out(&stretched), GRPO);
}

#[test]
fn comments_and_blank_lines_stay() {
    let text = "
// first


//! module
param a: int=1 // trailing


/// doc
// plain
param b : int = 2


step over d {   // opener

  // leading
  x=1 // one

  // between
  longer = 2


  // last

}
// end";
    insta::assert_snapshot!(laid_out(text));
}

#[test]
fn long_calls_are_broken_one_argument_a_line() {
    let text = r#"
model policy = causal(base, optim: adamw(lr: warmup(lr, 5), betas: [0.9, 0.999], weight_decay: 0.01, eps: 1e-8), lora: {rank: 8, alpha: 16})
data d = parquet("data/a-rather-long-name.parquet") { question: text from "The question", answer: text from "The answer" }
fn gae(rewards: float[.., T], values: float[.., T], gamma: float = 0.99, lambda: float = 0.95, end: float[..] = 0) -> float[.., T] = suffix_sum(rewards, T, decay: gamma)
step over d[B: 8] {
  a = f(x)
  advantage = gae(at_last(s, T) - beta * k1(roll.logp, ref), v, gamma, lambda, end: if roll.finished then 0 else v.end)
  log a: one(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbb), b: two(ccccccccccccccccccc, dddddddddddd)
  sum = (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb) * (ccccccccccccccccccccccc + dddddddddddddddd)
}
"#;
    insta::assert_snapshot!(laid_out(text));
}

#[test]
fn comments_inside_a_call_break_it() {
    let text = "step over d {
  x = f(a, // first
    // above b
    b,
    c // last
  )
  y = a + // why
    b
  z = g(
    // alone
  )
  w = h(x // inner
    , y)
}
";
    insta::assert_snapshot!(laid_out(text));
}

#[test]
fn bindings_on_adjacent_lines_are_aligned_and_nothing_else() {
    let text = "
param a: int = 1
param longer: int = 2
fn f(x: float) -> float { a = x; longer = a; return -longer }
step over d {
  a = 1
  longer = 2
  next s = 3
  b = 1; longest_ = 2 // one

  c = 1
  // apart
  dd = 2
  ee = 3
  train m { lp = 1
  loss = 2
  minimize loss }
}
place p on cluster(gpus: 2) {
roll on gpus(0,1) {dp:1}
train policy on gpus(0,1) {micro:8}
}
";
    insta::assert_snapshot!(laid_out(text));
}

#[test]
fn spaces_around_every_mark() {
    let text = r#"
use "mine.rlhf"{f,g,}
param a:int in-1..=-2
param b:"x"|"y"="x"
param c:float in..5
fn f(x:float[..,T],g:axis,n:text[]="a")->float[..]=-x^-2+(x)%3
step over d[B:8,],epochs:2{
rows D=B where(std(r,G)>0)and not(x<=1),limit:64
x=if(a)then(b)else(c)
y=a.b.c-(-d)*[ -1,2 ]
z=generate(m,p , temperature:1,)[ G , T:..8 ]
minimize(a-b)
minimize-a
next s={ }
next s={a:1}
}
eval every-2 over d{}
"#;
    insta::assert_snapshot!(laid_out(text));
}

#[test]
fn what_does_not_parse_is_unchanged() {
    let text = "param   a:int=1\nparam   b   int=2 // c\nstep over d {\nx=1\n  y  =  (  2\nz=3\n   foo   bar\n}\n";
    let once = format(text);
    assert_eq!(once.diagnostics.len(), 3);
    assert_eq!(format(&once.text).text, once.text);
    insta::assert_snapshot!(once.text);
}

#[test]
fn a_block_without_its_end_is_unchanged() {
    let text = GRPO.replacen(
        "    log kl: mean(k3(lp, ref))\n  }\n",
        "    log   kl: 1\n",
        1,
    );
    let once = format(&text);
    assert_eq!(once.diagnostics.len(), 1);
    assert_eq!(once.text, text);
}

#[test]
fn empty_texts_stay_empty() {
    for text in ["", "\n", "  \n\n\t"] {
        assert_eq!(format(text).text, "");
    }
    assert_eq!(format("// only").text, "// only\n");
}
