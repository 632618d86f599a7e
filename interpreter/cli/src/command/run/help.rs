//! `rlhf run FILE --help`: a program's own params are its flags.

use clap::CommandFactory;
use rlhf_lang::graph::{Const, Param};

use crate::args::Cli;
use crate::command;
use crate::outcome::Outcome;
use crate::output;
use crate::program;

/// Prints the params of the program, if one is named, and the flags of every run.
pub fn print(words: &[String]) -> Outcome<u8> {
    let mut cli = Cli::command();
    cli.build();
    let Some(run) = cli.find_subcommand_mut("run") else {
        return Ok(2);
    };
    if words.is_empty() {
        output::out(&format!("{}\n", run.render_help()));
        return Ok(0);
    }
    let (program, overrides) = program::one(words)?;
    let compiled = command::compile(&program, &overrides);
    let mut text = String::new();
    if !compiled.file.doc.trim().is_empty() {
        text += &format!("{}\n\n", compiled.file.doc.trim());
    }
    text += &format!(
        "Usage: rlhf run {} [name=value]... [flags]\n",
        words[0].as_str()
    );
    text += &params(&compiled.params);
    let flags = run.clone().help_template("{options}").render_help();
    text += &format!("\nFlags:\n{}\n", flags.to_string().trim_end());
    output::out(&text);
    Ok(u8::from(!compiled.diagnostics.is_empty()))
}

fn params(params: &[Param]) -> String {
    if params.is_empty() {
        return String::new();
    }
    let heads: Vec<(&str, String)> = params
        .iter()
        .map(|p| {
            let range = p.range.as_ref().map(|r| format!(" in {r}"));
            let default = match &p.default {
                Some(default) => format!(" = {default}"),
                None => "  (to be given)".into(),
            };
            let given = match p.overridden {
                true => format!("  (given: {}={})", p.name, shell(&p.value)),
                false => String::new(),
            };
            let head = format!("{}{}{default}{given}", p.ty, range.unwrap_or_default());
            (p.name.as_str(), head)
        })
        .collect();
    let width = heads.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = "\nParams:\n".to_string();
    for ((name, head), param) in heads.iter().zip(params) {
        text += &format!("  {name:width$}  {head}\n");
        for line in param.doc.trim().lines() {
            text += &format!("  {:width$}    {}\n", "", line.trim());
        }
    }
    text
}

/// A value as a shell passes it on whole; text has no quotes of its own there.
fn shell(value: &Const) -> String {
    let text = match value {
        Const::Bool(b) => return b.to_string(),
        Const::Int(i) => return i.to_string(),
        Const::Float(f) => return f.to_string(),
        Const::Text(text) => text,
    };
    let plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.clone(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlhf_lang::source::Span;

    #[test]
    fn a_param_shows_its_type_range_default_and_doc() {
        let mut param = Param {
            name: "clip".into(),
            ty: "float".into(),
            range: Some("0..1".into()),
            doc: "Half-width of the trust region.".into(),
            default: Some("0.2".into()),
            value: Const::Float(0.2),
            overridden: false,
            span: Span::default(),
        };
        assert_eq!(
            params(std::slice::from_ref(&param)),
            "\nParams:\n  clip  float in 0..1 = 0.2\n          Half-width of the trust region.\n"
        );
        param.overridden = true;
        param.value = Const::Float(0.3);
        assert!(params(&[param]).contains("float in 0..1 = 0.2  (given: clip=0.3)"));
    }

    #[test]
    fn a_given_text_is_shown_as_a_shell_takes_it() {
        let shown = |text: &str| shell(&Const::Text(text.into()));
        assert_eq!(shown("token"), "token");
        assert_eq!(shown("per token"), "'per token'");
        assert_eq!(shown("it's"), r"'it'\''s'");
        assert_eq!(shown(""), "''");
    }
}
