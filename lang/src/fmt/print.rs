//! Items, blocks, comments and blank lines.

use crate::syntax::parse::{Node, Parsed};
use crate::syntax::tokens::Tokens;

/// The text of a program.
pub(super) fn program(parsed: &Parsed<'_>) -> String {
    let mut printer = Printer {
        tokens: &parsed.tokens,
        out: String::new(),
        comment: 0,
    };
    printer.nodes(&parsed.nodes, 0, 0, parsed.tokens.text.len());
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    printer.out
}

pub(super) struct Printer<'a, 't> {
    pub tokens: &'a Tokens<'t>,
    pub out: String,
    /// The first comment not printed yet.
    pub comment: usize,
}

impl Printer<'_, '_> {
    /// The pieces between two offsets of the source, each on a line of its own.
    fn nodes(&mut self, nodes: &[Node], indent: usize, start: usize, end: usize) {
        let mut position = start;
        let mut begun = false;
        let pads = self.alignment(nodes);
        for (node, pad) in nodes.iter().zip(pads) {
            let first = self.tokens.code[node.first()].lo;
            begun |= self.comments_before(first, &mut position, indent, begun);
            let blank = begun && self.blank(position, first);
            self.newline(indent, blank);
            begun = true;
            self.node(node, indent, pad);
            position = self.tokens.code[node.end() - 1].hi;
        }
        self.comments_before(end, &mut position, indent, begun);
    }

    fn node(&mut self, node: &Node, indent: usize, pad: usize) {
        match node {
            Node::Line { a, b, bind } => self.line(*a, *b, indent, bind.then_some(pad)),
            Node::Verbatim { a, b } => {
                let span = self.tokens.span(*a, *b);
                self.out.push_str(&self.tokens.text[span.range()]);
                self.skip_comments(span.hi as usize);
            }
            Node::Block {
                a,
                open,
                body,
                close,
            } => {
                self.line(*a, open + 1, indent, None);
                let (start, end) = (self.tokens.code[*open].hi, self.tokens.code[*close].lo);
                let length = self.out.len();
                self.nodes(body, indent + 2, start, end);
                if self.out.len() > length {
                    self.newline(indent, false);
                }
                self.out.push('}');
            }
        }
    }

    /// For each piece, how wide the name before its `=` is made: the widest of its run of bindings
    /// on adjacent lines.
    fn alignment(&self, nodes: &[Node]) -> Vec<usize> {
        let mut pads = vec![0; nodes.len()];
        let mut run = 0;
        for i in 0..nodes.len() {
            let Node::Line { a, bind: true, .. } = nodes[i] else {
                run = i + 1;
                continue;
            };
            let joined = i > run && self.adjacent(&nodes[i - 1], &nodes[i]);
            if !joined {
                run = i;
            }
            let width = self.tokens.at(a).len();
            let widest = width.max(if joined { pads[i - 1] } else { 0 });
            pads[i] = widest;
            if joined && widest > pads[i - 1] {
                pads[run..i].fill(widest);
            }
        }
        pads
    }

    /// Whether two pieces stand on lines with neither a blank line nor a comment's line between.
    fn adjacent(&self, one: &Node, two: &Node) -> bool {
        let from = self.tokens.code[one.end() - 1].hi;
        let to = self.tokens.code[two.first()].lo;
        let comments = &self.tokens.comments;
        let first = comments.partition_point(|c| (c.span.lo as usize) < from);
        let between = comments[first..]
            .iter()
            .zip(&self.tokens.comment_line_start[first..])
            .take_while(|(c, _)| (c.span.lo as usize) < to);
        let mut position = from;
        for (comment, alone) in between {
            if *alone {
                return false;
            }
            position = comment.span.hi as usize;
        }
        !self.blank(position, to)
    }

    /// Whether the source has an empty line between two offsets with no token between them.
    fn blank(&self, from: usize, to: usize) -> bool {
        let gap = self.tokens.text.get(from..to).unwrap_or("");
        gap.bytes().filter(|b| *b == b'\n').count() > 1
    }

    /// Prints the comments before `offset`; says whether there were any on lines of their own.
    fn comments_before(
        &mut self,
        offset: usize,
        position: &mut usize,
        indent: usize,
        begun: bool,
    ) -> bool {
        let mut own = false;
        while let Some(comment) = self.tokens.comments.get(self.comment) {
            if comment.span.lo as usize >= offset {
                break;
            }
            let trailing = !self.tokens.comment_line_start[self.comment];
            if trailing && !self.out.is_empty() && !own {
                self.out.push_str("  ");
            } else {
                let blank = (begun || own) && self.blank(*position, comment.span.lo as usize);
                self.newline(indent, blank);
                own = true;
            }
            self.out.push_str(&self.tokens.text[comment.span.range()]);
            *position = comment.span.hi as usize;
            self.comment += 1;
        }
        own
    }

    fn skip_comments(&mut self, offset: usize) {
        let comments = &self.tokens.comments;
        let inside = |c: &crate::syntax::ast::Comment| (c.span.lo as usize) < offset;
        while comments.get(self.comment).is_some_and(inside) {
            self.comment += 1;
        }
    }

    /// Whether a comment not printed yet stands before `offset`.
    pub fn comment_before(&self, offset: usize) -> bool {
        let next = self.tokens.comments.get(self.comment);
        next.is_some_and(|c| (c.span.lo as usize) < offset)
    }

    /// Begins a line, after an empty one where `blank`.
    pub fn newline(&mut self, indent: usize, blank: bool) {
        if !self.out.is_empty() {
            self.out.push('\n');
            if blank {
                self.out.push('\n');
            }
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// Prints the comments that stand before token `i` inside a line; says whether there were any, in
    /// which case a new line must follow.
    pub fn inner_comments(&mut self, i: usize, indent: usize) -> bool {
        let offset = self.tokens.code[i].lo;
        let mut any = false;
        while self.comment_before(offset) {
            let trailing = !self.tokens.comment_line_start[self.comment];
            if trailing && !any {
                self.out.push_str("  ");
            } else {
                self.newline(indent, false);
            }
            let span = self.tokens.comments[self.comment].span;
            self.out.push_str(&self.tokens.text[span.range()]);
            self.comment += 1;
            any = true;
        }
        any
    }
}
