//! What may be written at the cursor, by the tokens before it.
//!
//! The text at the cursor is rarely complete, so this looks at tokens and not at the tree.

use crate::source::FileId;
use crate::syntax::tokens::{Token, TokenKind, Tokens};

/// Words that begin items.
pub(super) const ITEMS: &[&str] = &[
    "use", "param", "data", "model", "reward", "state", "fn", "step", "eval", "place",
];

/// Words that begin statements.
const STATEMENTS: &[&str] = &["train", "minimize", "log", "next", "rows", "return"];

/// What may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// Nothing that is known: a comment, a text, a new name.
    Nothing,
    /// A member of what ends at this byte.
    Member(u32),
    /// A module's path.
    Module,
    /// A function of a module or file.
    Import(String),
    /// An item.
    Item,
    /// A statement, in a body that begins with this word.
    Statement(&'static str),
    /// A type.
    Type,
    /// The axes of a type.
    TypeAxes,
    /// A data set.
    Data,
    /// A model.
    Model,
    /// A `state` or a model.
    Next,
    /// The kind of a model, or a source: what this item has after its `=`.
    Kind(&'static str),
    /// The value of a param of choices.
    Choice,
    /// One of a few words, such as `f32`.
    Words(&'static [&'static str]),
    /// Where a call runs, or its options.
    Plan,
    /// A value. In a call, `call` says in which.
    Value(Option<Call>),
}

/// The innermost call around the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// What is called, as it is written.
    pub callee: String,
    /// Where its name begins.
    pub at: u32,
    /// How many arguments stand before the cursor's.
    pub index: usize,
    /// The label before the cursor, if its argument has one.
    pub label: Option<String>,
    /// The labels given.
    pub given: Vec<String>,
    /// The first argument, from its first to its last byte.
    pub first: Option<(u32, u32)>,
    /// The cursor is in a list, which holds these words.
    pub list: Option<Vec<String>>,
    /// The cursor is at the front of an argument, where a label may stand.
    pub front: bool,
}

/// The cursor in a text.
pub(super) struct Cursor {
    /// The word that is being written: from its front to the cursor.
    pub word: (u32, u32),
    /// What may be written.
    pub context: Context,
}

impl Cursor {
    pub fn at(text: &str, offset: u32) -> Cursor {
        // No token reaches over a line, so an item can be read alone.
        let (base, end) = item_around(text, offset as usize);
        let text = &text[base..end];
        let tokens = Tokens::scan(FileId(0), text);
        let at = offset as usize - base;
        let touching = |t: &Token| t.lo < at && at <= t.hi;
        let current = tokens.code.iter().position(touching);
        let word = current.filter(|i| tokens.is_word(*i));
        let before = match word {
            Some(i) => i,
            None => tokens.code.partition_point(|t| t.hi <= at && t.lo < at),
        };
        let lo = word.map_or(at, |i| tokens.code[i].lo);
        // A comment goes on to the end of its line, white space included.
        let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
        let in_comment = tokens
            .comments
            .iter()
            .any(|c| (line..at).contains(&(c.span.lo as usize)));
        let in_text = current.is_some_and(|i| match tokens.code[i].kind {
            TokenKind::Text => at < tokens.code[i].hi,
            TokenKind::OpenText => true,
            TokenKind::Number | TokenKind::BadNumber => true,
            _ => false,
        });
        let reader = Reader {
            tokens: &tokens,
            before,
            lo,
        };
        let mut context = match (in_comment, in_text) {
            (true, _) => Context::Nothing,
            (false, true) => reader.in_text(),
            (false, false) => reader.context(),
        };
        context.shift(base as u32);
        Cursor {
            word: ((lo + base) as u32, offset),
            context,
        }
    }
}

/// The text from the front of the item around a byte to the front of the next one.
fn item_around(text: &str, at: usize) -> (usize, usize) {
    let begins = |line: &str| ITEMS.contains(&super::first_word(line));
    let mut front = 0;
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        if begins(line) {
            if from > at {
                return (front, from);
            }
            front = from;
        }
        from += line.len();
    }
    (front, text.len())
}

impl Context {
    /// Places in a part of a text as places in the whole.
    fn shift(&mut self, base: u32) {
        match self {
            Context::Member(at) => *at += base,
            Context::Value(Some(call)) => {
                call.at += base;
                if let Some((lo, hi)) = &mut call.first {
                    (*lo, *hi) = (*lo + base, *hi + base);
                }
            }
            _ => {}
        }
    }
}

/// An open bracket before the cursor.
#[derive(Clone, Copy)]
struct Frame {
    open: usize,
    mark: u8,
}

struct Reader<'a, 't> {
    tokens: &'a Tokens<'t>,
    /// The first token that is not before the cursor's word.
    before: usize,
    /// The front of the cursor's word.
    lo: usize,
}

impl<'t> Reader<'_, 't> {
    fn back(&self, n: usize) -> &'t str {
        match self.before.checked_sub(n) {
            Some(i) => self.tokens.at(i),
            None => "",
        }
    }

    /// In an unfinished text: a param's default may be one of its choices.
    fn in_text(&self) -> Context {
        match self.item() {
            Some(head) if self.tokens.at(head) == "param" && self.after_equals(head) => {
                Context::Choice
            }
            _ => Context::Nothing,
        }
    }

    /// The first token of the item that the cursor is in.
    fn item(&self) -> Option<usize> {
        let begins = |i: &usize| {
            let t = self.tokens.code[*i];
            t.line_start && t.indent == 0 && ITEMS.contains(&self.tokens.at(*i))
        };
        (0..self.before).rev().find(begins)
    }

    /// Whether a single `=` stands between an item's front and the cursor, outside of brackets.
    fn after_equals(&self, head: usize) -> bool {
        let mut depth = 0i32;
        for i in head..self.before {
            match self.tokens.at(i) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "=" if depth == 0 => return true,
                _ => {}
            }
        }
        false
    }

    /// Nothing stands before the word on its line.
    fn fresh_line(&self) -> bool {
        let Some(last) = self.before.checked_sub(1) else {
            return true;
        };
        let from = self.tokens.code[last].hi.min(self.lo);
        self.tokens.text[from..self.lo].contains('\n')
    }

    fn frames(&self, head: usize) -> Vec<Frame> {
        let mut frames: Vec<Frame> = vec![];
        for i in head..self.before {
            // A bracket that was never closed does not reach over the statements below it.
            if self.tokens.code[i].line_start && self.begins_statement(i) {
                let brace = frames.iter().rposition(|f| f.mark == b'{');
                frames.truncate(brace.map_or(0, |b| b + 1));
            }
            let mark = self.tokens.at(i);
            match mark {
                "(" | "[" | "{" => frames.push(Frame {
                    open: i,
                    mark: mark.as_bytes()[0],
                }),
                ")" | "]" | "}" => {
                    let opener = match mark {
                        ")" => b'(',
                        "]" => b'[',
                        _ => b'{',
                    };
                    if let Some(at) = frames.iter().rposition(|f| f.mark == opener) {
                        frames.truncate(at);
                    }
                }
                _ => {}
            }
        }
        frames
    }

    fn begins_statement(&self, i: usize) -> bool {
        let word = self.tokens.at(i);
        let bind = self.tokens.is_name(i) && self.tokens.at(i + 1) == "=";
        let keyword = STATEMENTS.contains(&word) && self.tokens.is_word(i + 1);
        bind || keyword
    }

    fn context(&self) -> Context {
        if self.back(1) == "." && self.back(2) != "." {
            return self.member();
        }
        let Some(head) = self.item() else {
            return match self.fresh_line() {
                true => Context::Item,
                false => Context::Nothing,
            };
        };
        let frames = self.frames(head);
        let item = self.tokens.at(head);
        match frames.last() {
            None if self.fresh_line() && self.complete(head) => Context::Item,
            None => self.in_head(item, head),
            Some(f) if f.mark == b'{' => self.in_braces(item, head, &frames),
            Some(_) => self.in_brackets(item, head, &frames),
        }
    }

    /// Whether what stands before the cursor's line can be a whole item.
    fn complete(&self, head: usize) -> bool {
        self.before > head + 1
            && !matches!(
                self.back(1),
                "=" | ","
                    | ":"
                    | "->"
                    | "+"
                    | "-"
                    | "*"
                    | "/"
                    | "^"
                    | "then"
                    | "else"
                    | "if"
                    | "in"
            )
    }

    fn member(&self) -> Context {
        let Some(dot) = self.before.checked_sub(1) else {
            return Context::Nothing;
        };
        if let Some(head) = self.item()
            && self.tokens.at(head) == "use"
            && self.frames(head).is_empty()
        {
            return Context::Module;
        }
        Context::Member(self.tokens.code[dot].lo as u32)
    }

    /// Outside of all brackets.
    fn in_head(&self, item: &str, head: usize) -> Context {
        let last = self.back(1);
        match item {
            "use" => Context::Module,
            "param" | "state" if last == ":" => Context::Type,
            "param" if last == "=" => Context::Choice,
            "data" | "model" | "reward" if last == "=" => Context::Kind(match item {
                "data" => "data",
                "model" => "model",
                _ => "reward",
            }),
            "fn" | "reward" if last == "->" => Context::Type,
            "step" | "eval" if last == "over" => Context::Data,
            "step" if last == "," => Context::Words(&["iterations", "epochs", "shuffle"]),
            "step" if self.before == head + 1 => Context::Words(&["over"]),
            "eval" if self.before == head + 1 => Context::Words(&["every"]),
            "eval" if last != "every" && self.before > head + 2 => Context::Words(&["over"]),
            "place" => Context::Plan,
            "param" | "data" | "model" | "fn" | "reward" | "state" if !self.after_equals(head) => {
                Context::Nothing
            }
            _ => Context::Value(None),
        }
    }

    fn in_braces(&self, item: &str, head: usize, frames: &[Frame]) -> Context {
        let last = self.back(1);
        let braces = frames.iter().filter(|f| f.mark == b'{').count();
        let open = frames.last().map_or(head, |f| f.open);
        match item {
            "use" => Context::Import(self.path(head, open)),
            "data" if last == ":" => Context::Type,
            "data" => Context::Nothing,
            "place" => Context::Plan,
            "step" | "eval" | "fn" => {
                // A record as an argument, as in `lora: { rank: 8 }`.
                if self.tokens.at(open.saturating_sub(1)) == ":" {
                    return Context::Nothing;
                }
                let body = match (item, braces) {
                    ("step", 1) => "step",
                    ("step", _) => "train",
                    ("eval", _) => "eval",
                    _ => "fn",
                };
                self.in_body(body)
            }
            _ => Context::Value(None),
        }
    }

    fn in_body(&self, body: &'static str) -> Context {
        let last = self.back(1);
        if (self.fresh_line() && !self.goes_on()) || matches!(last, "{" | ";") {
            return Context::Statement(body);
        }
        // The words of the statement before the cursor.
        let begins = |i: &usize| self.tokens.code[*i].line_start && self.begins_or_opens(*i);
        let from = (0..self.before).rev().find(begins).unwrap_or(self.before);
        let words: Vec<&str> = (from..self.before).map(|i| self.tokens.at(i)).collect();
        match words.as_slice() {
            ["train"] => Context::Model,
            ["train", _, .., ","] => Context::Words(&["minibatch", "epochs", "shuffle"]),
            ["train", .., "shuffle", ":"] => Context::Words(&["true", "false"]),
            ["next"] => Context::Next,
            ["log"] | ["log", .., ","] => Context::Nothing,
            ["rows"] => Context::Nothing,
            ["rows", _, "=", _] => Context::Words(&["where"]),
            [_] if !matches!(last, "minimize" | "return") => Context::Nothing,
            _ => Context::Value(None),
        }
    }

    fn begins_or_opens(&self, i: usize) -> bool {
        self.begins_statement(i) || STATEMENTS.contains(&self.tokens.at(i))
    }

    /// The line before ends where an expression cannot.
    fn goes_on(&self) -> bool {
        matches!(
            self.back(1),
            "=" | "+"
                | "-"
                | "*"
                | "/"
                | "^"
                | "%"
                | "=="
                | "!="
                | "<"
                | ">"
                | "<="
                | ">="
                | "and"
                | "or"
                | "not"
                | "if"
                | "then"
                | "else"
                | ","
                | ":"
                | "minimize"
                | "return"
        )
    }

    fn path(&self, head: usize, open: usize) -> String {
        let mut path = String::new();
        for i in head + 1..open {
            path.push_str(self.tokens.at(i));
        }
        path.trim_matches('"').to_string()
    }

    fn in_brackets(&self, item: &str, head: usize, frames: &[Frame]) -> Context {
        let last = self.back(1);
        let Some(frame) = frames.last() else {
            return Context::Value(None);
        };
        let outer = frames.len() < 2;
        let signature = matches!(item, "fn" | "reward") && !self.after_equals(head);
        if signature && frames.first().is_some_and(|f| f.mark == b'(') {
            return match (frame.mark, last) {
                (b'[', _) => Context::TypeAxes,
                (_, ":") => Context::Type,
                (_, "=") => Context::Value(None),
                _ => Context::Nothing,
            };
        }
        if signature && frame.mark == b'[' {
            return Context::TypeAxes;
        }
        // The axes that a step or a verb introduces.
        let binds = frame.mark == b'['
            && (self.tokens.at(frame.open.saturating_sub(1)) == ")"
                || (outer && matches!(item, "step" | "eval")));
        if binds {
            return match last {
                "[" | "," => Context::TypeAxes,
                _ => Context::Value(None),
            };
        }
        let call = self.call(frames);
        match call.as_ref().and_then(|c| c.label.as_deref()) {
            Some("dtype") => Context::Words(&["f32", "bf16"]),
            Some("per") => Context::Words(&["token", "response"]),
            Some("biased" | "shuffle") => Context::Words(&["true", "false"]),
            Some("optim") => Context::Words(&["adamw"]),
            _ => Context::Value(call),
        }
    }

    fn call(&self, frames: &[Frame]) -> Option<Call> {
        let at = frames.iter().rposition(|f| f.mark == b'(')?;
        // Only lists may stand between the call and the cursor.
        let list = match frames.len() - at {
            1 => None,
            2 if frames[at + 1].mark == b'[' => Some(frames[at + 1].open),
            _ => return None,
        };
        let open = frames[at].open;
        let callee = open.checked_sub(1).filter(|i| self.tokens.is_name(*i))?;
        let mut call = Call {
            callee: self.tokens.at(callee).to_string(),
            at: self.tokens.code[callee].lo as u32,
            index: 0,
            label: None,
            given: vec![],
            first: None,
            list: None,
            front: matches!(self.back(1), "(" | ","),
        };
        let end = list.unwrap_or(self.before);
        let mut depth = 0usize;
        let mut front = open + 1;
        for i in open + 1..end {
            match self.tokens.at(i) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                "," if depth == 0 => {
                    if call.index == 0 && front < i {
                        let span = self.tokens.span(front, i);
                        call.first = Some((span.lo, span.hi));
                    }
                    call.index += 1;
                    call.label = None;
                    front = i + 1;
                }
                ":" if depth == 0 && i == front + 1 => {
                    let label = self.tokens.at(front).to_string();
                    call.given.push(label.clone());
                    call.label = Some(label);
                }
                _ => {}
            }
        }
        // Labels behind the cursor are given too.
        call.given.extend(self.labels_after());
        if let Some(open) = list {
            let words = (open + 1..self.before).filter(|i| self.tokens.is_word(*i));
            call.list = Some(words.map(|i| self.tokens.at(i).to_string()).collect());
            call.front = false;
        }
        Some(call)
    }

    fn labels_after(&self) -> Vec<String> {
        let mut labels = vec![];
        let mut depth = 0usize;
        for i in self.before..self.tokens.code.len() {
            match self.tokens.at(i) {
                "(" | "[" => depth += 1,
                ")" | "]" if depth == 0 => break,
                ")" | "]" => depth -= 1,
                "{" | "}" | "=" => break,
                ":" if depth == 0 && i > self.before => {
                    labels.push(self.tokens.at(i - 1).to_string());
                }
                _ => {}
            }
        }
        labels
    }
}
