//! Downloads from the hub into the cache.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use hf_hub::api::Progress;
use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::cache;
use super::directory::Parts;

const CONNECT: Duration = Duration::from_secs(3);
/// For name resolution and connection together, and for the list of files.
const ANSWER: Duration = Duration::from_secs(10);

/// What a name stands for on the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A checkpoint.
    Model,
    /// Rows.
    Dataset,
}

/// `organisation/name`, or one bare word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    id: String,
    kind: Kind,
}

impl Name {
    /// Refuses what no hub id looks like.
    pub fn parse(text: &str, kind: Kind) -> Option<Name> {
        let part = |p: &str| {
            !p.is_empty()
                && p != ".."
                && p.chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        let parts: Vec<&str> = text.split('/').collect();
        let id = text.to_string();
        (parts.len() <= 2 && parts.iter().all(|p| part(p))).then_some(Name { id, kind })
    }

    /// The folder in the cache.
    pub fn folder(&self) -> String {
        let kind = match self.kind {
            Kind::Model => "models",
            Kind::Dataset => "datasets",
        };
        format!("{kind}--{}", self.id.replace('/', "--"))
    }

    fn repo(&self) -> Repo {
        let kind = match self.kind {
            Kind::Model => RepoType::Model,
            Kind::Dataset => RepoType::Dataset,
        };
        Repo::new(self.id.clone(), kind)
    }

    fn noun(&self) -> &'static str {
        match self.kind {
            Kind::Model => "model",
            Kind::Dataset => "data set",
        }
    }
}

/// A repository on the hub whose files are known.
pub struct Remote<'n> {
    name: &'n Name,
    endpoint: String,
    repo: ApiRepo,
    /// The paths of its files.
    pub files: Vec<String>,
}

impl Remote<'_> {
    /// Asks the hub what files there are. The error says what was tried.
    pub fn open<'n>(root: Option<&Path>, name: &'n Name) -> Result<Remote<'n>, String> {
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        if set("HF_HUB_OFFLINE").is_some_and(|v| v != "0") {
            return Err("HF_HUB_OFFLINE forbids it".into());
        }
        let root = root.ok_or("neither HF_HOME nor HOME is set")?;
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into());
        let endpoint = endpoint.trim_end_matches('/').to_string();
        let proxy = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
            .into_iter()
            .find_map(set);
        reach(proxy.as_deref().unwrap_or(&endpoint))?;
        let api = ApiBuilder::from_cache(Cache::new(root.into()))
            .with_endpoint(endpoint.clone())
            .with_token(set("HF_TOKEN").or_else(token))
            .with_retries(3)
            .with_progress(false)
            .build()
            .map_err(|e| reason(&endpoint, name, &e))?;
        let repo = api.repo(name.repo());
        let info = {
            // A hub that accepts the connection and then is silent must not hold the run up.
            let (send, receive) = mpsc::channel();
            let repo = api.repo(name.repo());
            std::thread::spawn(move || send.send(repo.info()));
            match receive.recv_timeout(ANSWER) {
                Ok(info) => info.map_err(|e| reason(&endpoint, name, &e))?,
                Err(_) => return Err(format!("{endpoint} did not answer")),
            }
        };
        let files = info.siblings.into_iter().map(|s| s.rfilename).collect();
        Ok(Remote {
            name,
            endpoint,
            repo,
            files,
        })
    }

    /// Downloads files into the cache.
    pub fn download(&self, files: &[&str], say: &dyn Fn(&str)) -> Result<(), String> {
        let (id, count, endpoint) = (&self.name.id, files.len(), &self.endpoint);
        say(&format!("downloading {id} ({count} files) from {endpoint}"));
        for file in files {
            self.repo
                .download_with_progress(file, Bar(ProgressBar::hidden()))
                .map_err(|e| format!("{file}: {}", reason(endpoint, self.name, &e)))?;
        }
        Ok(())
    }
}

/// Downloads what a run reads of a checkpoint. The error says what was tried.
pub fn fetch(
    root: Option<&Path>,
    name: &Name,
    parts: Parts,
    say: &dyn Fn(&str),
) -> Result<PathBuf, String> {
    let remote = Remote::open(root, name)?;
    remote.download(&wanted(&remote.files, parts), say)?;
    root.and_then(|root| cache::find(root, name, parts))
        .ok_or_else(|| {
            format!(
                "{} has no config.json, model.safetensors and tokenizer.json for it (it has {})",
                remote.endpoint,
                remote.files.join(", ")
            )
        })
}

/// The progress of one file, on standard error.
struct Bar(ProgressBar);

impl Progress for Bar {
    fn init(&mut self, size: usize, file: &str) {
        let terminal = ProgressDrawTarget::stderr();
        self.0 = ProgressBar::with_draw_target(Some(size as u64), terminal);
        // The default bar serves where the template does not parse.
        if let Ok(style) = ProgressStyle::with_template(
            "{msg} [{bar:32}] {bytes}/{total_bytes} · {bytes_per_sec} · {eta} left",
        ) {
            self.0.set_style(style.progress_chars("━╸ "));
        }
        self.0.set_message(file.to_string());
    }

    fn update(&mut self, size: usize) {
        self.0.inc(size as u64);
    }

    fn finish(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The files that a run reads. One whole file of weights is preferred to shards only when both exist.
fn wanted(names: &[String], parts: Parts) -> Vec<&str> {
    const SMALL: [&str; 8] = [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "chat_template.json",
        "special_tokens_map.json",
        "model.safetensors.index.json",
    ];
    let whole = names.iter().any(|n| n == "model.safetensors");
    let weights = |n: &str| match whole {
        _ if parts == Parts::Shape => false,
        true => n == "model.safetensors",
        false => n.ends_with(".safetensors") && !n.contains('/'),
    };
    let names = names.iter().map(String::as_str);
    names
        .filter(|n| weights(n) || (SMALL.contains(n) && !(whole && n.ends_with(".index.json"))))
        .collect()
}

/// Connects once with a short limit, so that no network is known in seconds.
fn reach(url: &str) -> Result<(), String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let target = match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_string(),
        _ if url.starts_with("http://") => format!("{authority}:80"),
        _ => format!("{authority}:443"),
    };
    let (send, receive) = mpsc::channel();
    let name = authority.to_string();
    std::thread::spawn(move || {
        let connected = target
            .to_socket_addrs()
            .map_err(|e| e.to_string())
            .and_then(|addresses| {
                let mut last = "the name has no address".to_string();
                for address in addresses.take(2) {
                    match TcpStream::connect_timeout(&address, CONNECT) {
                        Ok(_) => return Ok(()),
                        Err(e) => last = e.to_string(),
                    }
                }
                Err(last)
            });
        send.send(connected)
    });
    match receive.recv_timeout(ANSWER) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => Err(format!("{name} cannot be reached ({reason})")),
        Err(_) => Err(format!("{name} cannot be reached (no answer)")),
    }
}

fn reason(endpoint: &str, name: &Name, error: &ApiError) -> String {
    let text = error.to_string();
    if text.contains("status code 404") || text.contains("status code 401") {
        let noun = name.noun();
        return format!(
            "{endpoint} knows no such public {noun} (HF_TOKEN gives access to private ones)"
        );
    }
    format!("{endpoint}: {text}")
}

fn token() -> Option<String> {
    Cache::from_env().token()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_run_reads_is_downloaded() {
        let names: Vec<String> = [
            "README.md",
            "chat_template.json",
            "config.json",
            "model.safetensors",
            "onnx/model.onnx",
            "pytorch_model.bin",
            "runs/x.safetensors",
            "tokenizer.json",
        ]
        .map(String::from)
        .into();
        assert_eq!(
            wanted(&names, Parts::Shape),
            ["chat_template.json", "config.json", "tokenizer.json"]
        );
        assert_eq!(
            wanted(&names, Parts::All),
            [
                "chat_template.json",
                "config.json",
                "model.safetensors",
                "tokenizer.json"
            ]
        );
    }

    #[test]
    fn nothing_that_leaves_the_cache_is_a_name() {
        for text in ["../x", "a/b/c", "a b", "", "a/"] {
            // `..` alone is made of dots, so it must be refused by name.
            assert_eq!(Name::parse(text, Kind::Model), None, "{text}");
        }
    }

    #[test]
    fn a_closed_port_is_known_at_once() {
        let error = reach("http://127.0.0.1:9").expect_err("nothing listens there");
        assert!(error.contains("cannot be reached"), "{error}");
    }
}
