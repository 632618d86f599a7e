//! Random edits of programs, and what must hold of every text that comes of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rlhf_lang::compile::{Compiled, Request, compile};
use rlhf_lang::diag::Diagnostic;
use rlhf_lang::fmt::format;
use rlhf_lang::source::{FileId, Span};
use rlhf_lang::syntax::ast::{File, ItemKind};
use rlhf_lang::syntax::{forget, parse};

/// Constructs that the shipped programs do not have.
const OTHER: &str = r#"
use "mine.rlhf" { f }
param kind: "token" | "sequence" = "token"
param n: int in 1..8 = 4
data d = jsonl("x.jsonl") { q: text from "Q", a: text[] }
reward exact(a: text, b: text) -> float = python("r.py:exact", timeout: 10, otherwise: 0)
model policy = causal("m", optim: adamw(lr: cosine(1e-5, 10)), lora: { rank: 8, alpha: 16 })
model critic = scalar("m", per: token, optim: adamw(lr: 1e-5))
model anchor = frozen(policy)
state beta: float = 0.1
fn half(x: float[.., T], g: axis = T) -> float[..] {
  y = x / 2 // half
  return sum(y, g)
}
step over d[B: 8], iterations: 2 {
  roll = generate(policy, chat(q), temperature: 1, stop: ["\n"])[G: n, T: ..32]
  ref  = logp(anchor, roll)
  v    = value(critic, roll)
  r    = if kind == "token" and not contains(roll.text, "x") then -1 ^ 2 else len(roll, T)
  rows D = B where std(r, G) > 0, limit: 4
  best = pick(roll, G, argmax(r, G))
  train policy, minibatch: 4, epochs: 2 {
    lp = logp(policy, roll)
    minimize mean(mean(beta * (exp(ref - lp) - (ref - lp) - 1) - clamp(exp(lp - roll.logp), 0.8, 1.2) * r, T), [D, G])
    log kl: mean(lp - ref)
  }
  next beta = beta * 1.5
  next anchor = lerp(anchor, policy, 0.01)
  log reward: mean(r), v: mean(v.end), best: mean(len(best, T)), half: mean(half(ref, T))
}
eval every 2 over d[E: 4] {
  one = generate(policy, chat(q), temperature: 0)[S: ..32]
  log accuracy: mean(if one.finished then 1 else 0)
}
place p on cluster(gpus: 8) {
  train policy on gpus(0, 8) { dp: 4, tp: 2 }
}
"#;

const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "\n",
    ";",
    ",",
    "=",
    ":",
    "..",
    "//",
    "#",
    "#ä",
    "// é)",
    "\\",
    "é",
    "😀",
    "\u{feff}",
    "\r\n",
    "\r",
    "\t",
    "\0",
    " if ",
    " then ",
    " else ",
    "\nparam ",
    "\nstep over d {",
    "\ntrain m {",
    "\n}",
    "\n  }\n",
    " not ",
    "1e",
    "0x",
    "1.",
    "\\u{",
    "\nreturn ",
    " // c\n",
    "-",
    "policy",
    "roll",
    "T",
    "G",
    "[B, G]",
    "mean(",
    "std(",
    "exp(",
    "logp(",
    "0.5",
    "1e400",
    "==",
    "stop(",
    "pick(",
    "x",
    "_",
    "'",
    "&&",
    "**",
    "+=",
    "\nfor i in d:\n",
    "None",
    ".text",
    ".mean()",
    "value(",
    "lerp(",
    "frozen(",
    "axis",
    "iteration",
    "// allow(M109): why\n",
];

/// xorshift64*: the same seed gives the same texts.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// The texts that are mutated.
pub fn seeds() -> Vec<&'static str> {
    let mut seeds = vec![OTHER, include_str!("../sema/grpo.rlhf")];
    seeds.extend(rlhf_stdlib::algorithms().iter().map(|(_, text)| *text));
    seeds.extend(
        rlhf_stdlib::modules()
            .iter()
            .filter_map(|m| rlhf_stdlib::module(m)),
    );
    seeds
}

/// One to six edits: text put in, a stretch taken out, a stretch copied elsewhere.
pub fn mutate(seed: &str, random: &mut Random) -> String {
    let mut text = seed.to_string();
    for _ in 0..=random.below(6) {
        let at = boundary(&text, random.below(text.len() + 1));
        match random.below(4) {
            0 => {
                let end = boundary(&text, (at + 1 + random.below(12)).min(text.len()));
                text.replace_range(at.min(end)..end, "");
            }
            1 => {
                let end = boundary(&text, (at + 1 + random.below(40)).min(text.len()));
                let copy = text[at.min(end)..end].to_string();
                let to = boundary(&text, random.below(text.len() + 1));
                text.insert_str(to, &copy);
            }
            _ => text.insert_str(at, PIECES[random.below(PIECES.len())]),
        }
    }
    text
}

fn boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0)
}

/// Whether pieces that were parsed before may be taken again. Timing one parse in 64 from nothing
/// finds the slow ones.
#[derive(PartialEq)]
enum Memory {
    Kept,
    Forgotten,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub texts: usize,
    pub compiled: usize,
    pub formatted: usize,
    pub fixes: usize,
    /// Items of the seeds, and those that mutants still have.
    pub items: usize,
    pub survived: usize,
    /// Nanoseconds a byte of the slowest parse, the best of ten where it matters.
    pub slowest: f64,
    /// What did not hold, with the text.
    pub wrong: Vec<String>,
}

impl Seen {
    pub fn add(&mut self, other: Seen) {
        self.texts += other.texts;
        self.compiled += other.compiled;
        self.formatted += other.formatted;
        self.fixes += other.fixes;
        self.items += other.items;
        self.survived += other.survived;
        self.slowest = self.slowest.max(other.slowest);
        self.wrong.extend(other.wrong);
    }
}

/// Parses `count` mutants; lays out one in `every.0` and compiles one in `every.1`.
pub fn run(seed: u64, count: usize, every: (usize, usize)) -> Seen {
    let mut random = Random::new(seed);
    let texts = seeds();
    let trees: Vec<Vec<String>> = texts
        .iter()
        .map(|t| names(&parse(FileId(0), t).0))
        .collect();
    let mut seen = Seen::default();
    for i in 0..count {
        let which = random.below(texts.len());
        let text = mutate(texts[which], &mut random);
        let before = seen.wrong.len();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut seen = Seen::default();
            let memory = match i % 64 {
                0 => Memory::Forgotten,
                _ => Memory::Kept,
            };
            parsed(&text, &trees[which], &memory, &mut seen);
            if i % every.0 == 0 {
                laid_out(&text, &mut seen);
            }
            if i % every.1 == 0 {
                compiled(&text, &mut seen);
            }
            seen
        }));
        match outcome {
            Ok(one) => seen.add(one),
            Err(_) => seen.wrong.push("a panic".into()),
        }
        for wrong in &mut seen.wrong[before..] {
            *wrong = format!("{wrong}\n{text}\n");
        }
        if seen.wrong.len() > 20 {
            break;
        }
    }
    seen
}

/// Kind and name of every item that parses.
fn names(file: &File) -> Vec<String> {
    let name = |kind: &ItemKind| match kind {
        ItemKind::Use(u) => Some(format!("use {:?}", u.names.first().map(|n| &n.text))),
        ItemKind::Param(p) => Some(format!("param {}", p.name.text)),
        ItemKind::Data(d) => Some(format!("data {}", d.name.text)),
        ItemKind::Model(m) => Some(format!("model {}", m.name.text)),
        ItemKind::Reward(r) => Some(format!("reward {}", r.name.text)),
        ItemKind::State(s) => Some(format!("state {}", s.name.text)),
        ItemKind::Fn(f) => Some(format!("fn {}", f.name.text)),
        ItemKind::Step(_) => Some("step".into()),
        ItemKind::Eval(_) => Some("eval".into()),
        ItemKind::Place(_) => Some("place".into()),
        ItemKind::Bad(_) => None,
    };
    file.items.iter().filter_map(|i| name(&i.kind)).collect()
}

fn parsed(text: &str, items: &[String], memory: &Memory, seen: &mut Seen) {
    let time = |best: Duration| {
        if *memory == Memory::Forgotten {
            forget();
        }
        let start = Instant::now();
        let parsed = parse(FileId(0), text);
        (parsed, best.min(start.elapsed()))
    };
    let ((file, diagnostics), mut best) = time(Duration::MAX);
    let a_byte = |d: Duration| d.as_nanos() as f64 / text.len().max(64) as f64;
    // A slow parse is taken again: most are another process's.
    for _ in 0..9 {
        if a_byte(best) > seen.slowest.max(500.0) {
            best = time(best).1;
        }
    }
    seen.texts += 1;
    seen.slowest = seen.slowest.max(a_byte(best));
    point_into(text, &diagnostics, seen);
    let mut left = names(&file);
    seen.items += items.len();
    for item in items {
        if let Some(at) = left.iter().position(|n| n == item) {
            left.swap_remove(at);
            seen.survived += 1;
        }
    }
    if file
        .items
        .iter()
        .any(|i| matches!(i.kind, ItemKind::Bad(_)))
        && diagnostics.is_empty()
    {
        seen.wrong.push("an item was lost without a message".into());
    }
}

fn point_into(text: &str, diagnostics: &[Diagnostic], seen: &mut Seen) {
    for d in diagnostics {
        let fixes = d.fix.iter().flat_map(|f| f.edits.iter().map(|(s, _)| *s));
        let mut spans = d.labels.iter().map(|l| l.span).chain(fixes);
        if spans.any(|s| s.file == FileId(0) && text.get(s.range()).is_none()) {
            seen.wrong
                .push(format!("a message points outside of the text: {d:?}"));
        }
    }
}

/// Laying out twice is laying out once, and what parses means the same.
fn laid_out(text: &str, seen: &mut Seen) {
    let once = format(text);
    if format(&once.text).text != once.text {
        seen.wrong.push("the layout of the layout differs".into());
    }
    if once.diagnostics.is_empty() {
        seen.formatted += 1;
        let shape = |t: &str| shape_of(&parse(FileId(0), t).0);
        if shape(text) != shape(&once.text) {
            seen.wrong.push("the layout means something else".into());
        }
    }
}

/// The tree without places and numbers of expressions.
fn shape_of(file: &File) -> String {
    let mut out = String::new();
    let text = format!("{:?}", file.items);
    let mut rest = text.as_str();
    while let Some(at) = rest.find("Span {") {
        out += &rest[..at];
        rest = match rest[at..].find('}') {
            Some(end) => &rest[at + end + 1..],
            None => "",
        };
    }
    out + rest
}

fn compiled(text: &str, seen: &mut Seen) {
    seen.compiled += 1;
    let compiled = program(text);
    point_into(text, &compiled.diagnostics, seen);
    for d in &compiled.diagnostics {
        fixed(text, &compiled, d, seen);
    }
}

/// A fix leaves a text that parses no worse and no longer has the diagnostic.
fn fixed(text: &str, compiled: &Compiled, d: &Diagnostic, seen: &mut Seen) {
    let (mut text, mut at) = (text.to_string(), d.clone());
    let broken = |c: &Compiled| c.diagnostics.iter().filter(|d| d.code == "E001").count();
    let mut before = broken(compiled);
    // `)))` is mended a bracket at a time.
    for _ in 0..30 {
        let Some(edits) = own_edits(&at) else {
            return;
        };
        for (span, with) in &edits {
            text.replace_range(span.range(), with);
        }
        seen.fixes += 1;
        let after = program(&text);
        if broken(&after) > before && touches(&after, &edits) {
            seen.wrong
                .push(format!("a fix broke the text: {d:?}\n{text}\n----"));
        }
        before = broken(&after);
        let place = moved(&at, &edits);
        let same = |o: &&Diagnostic| {
            let lo = o.span().map(|s| i64::from(s.lo));
            o.code == at.code && o.message == at.message && lo == place
        };
        match after.diagnostics.iter().find(same) {
            Some(again) => at = again.clone(),
            None => return,
        }
    }
    seen.wrong
        .push(format!("a fix kept its diagnostic: {d:?}\n{text}\n----"));
}

/// Whether a syntax error stands where an edit was made; elsewhere it was hidden before.
fn touches(after: &Compiled, edits: &[(Span, String)]) -> bool {
    let errors = after.diagnostics.iter().filter(|d| d.code == "E001");
    errors.filter_map(Diagnostic::span).any(|at| {
        let near = |(s, with): &(Span, String)| s.lo <= at.hi && at.lo <= s.lo + with.len() as u32;
        edits.iter().any(near)
    })
}

/// The edits of a fix of the program itself, last first.
fn own_edits(d: &Diagnostic) -> Option<Vec<(Span, String)>> {
    let mut edits = d.fix.as_ref()?.edits.clone();
    edits.sort_by_key(|(s, _)| std::cmp::Reverse(s.lo));
    edits
        .iter()
        .all(|(s, _)| s.file == FileId(0))
        .then_some(edits)
}

/// Where a diagnostic would stand after edits.
fn moved(d: &Diagnostic, edits: &[(Span, String)]) -> Option<i64> {
    let at = d.span()?;
    let before = edits.iter().filter(|(s, _)| s.hi <= at.lo);
    let shift: i64 = before
        .map(|(s, with)| with.len() as i64 - i64::from(s.hi - s.lo))
        .sum();
    Some(i64::from(at.lo) + shift)
}

fn program(text: &str) -> Compiled {
    compile(&Request {
        name: "test.rlhf",
        text,
        overrides: &[],
        load: &|_| None,
    })
}
