//! An editor without a window.

use std::path::Path;

use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use rlhf_lsp::{Extra, Options, run};
use serde_json::{Value, json};

/// A program without problems.
pub const PROGRAM: &str = r#"//! A program.
use std.kl { k3 }

/// Where it starts.
param base: checkpoint = "model"

data sums = jsonl("sums.jsonl") { question: text, answer: text }

model policy = causal(base, optim: adamw(lr: warmup(1e-5, 5)))
model anchor = frozen(policy)

step over sums[B: 4], iterations: 60 {
  roll = generate(policy, chat(question), temperature: 1)[G: 8, T: ..16]
  r    = if roll.text == answer then 1 else 0
  ref  = logp(anchor, roll)

  train policy {
    lp = logp(policy, roll)
    minimize mean(mean(k3(lp, ref) - lp * (r - mean(r, G)), T), [B, G])
  }
  log reward: mean(r)
}
"#;

/// The other end of the server's connection, with a folder for its files.
pub struct Editor {
    connection: Connection,
    folder: tempfile::TempDir,
    next: i32,
    version: i32,
    /// What the server said it can.
    pub capabilities: Value,
}

/// Runs the server and an editor against each other, from hello to goodbye.
pub fn session(capabilities: Value, script: impl FnOnce(&mut Editor) + Send) {
    session_with(capabilities, None, script);
}

/// The same with something that finds more. The server runs on this thread.
pub fn session_with(
    capabilities: Value,
    extra: Option<&Extra<'_>>,
    script: impl FnOnce(&mut Editor) + Send,
) {
    let (server, client) = Connection::memory();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        library: folder.path().join("cache/std"),
        extra,
    };
    std::thread::scope(|scope| {
        let editor = scope.spawn(move || {
            let mut editor = Editor {
                connection: client,
                folder,
                next: 0,
                version: 1,
                capabilities: Value::Null,
            };
            let hello = editor.ask("initialize", json!({ "capabilities": capabilities }));
            editor.capabilities = hello["capabilities"].clone();
            editor.tell("initialized", json!({}));
            script(&mut editor);
            assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
            editor.tell("exit", Value::Null);
        });
        run(&server, &options).expect("the session ends in order");
        drop(server);
        if let Err(panic) = editor.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

impl Editor {
    /// The answer to a request, passing over what the server says meanwhile.
    fn response(&mut self, method: &str, params: Value) -> Response {
        self.next += 1;
        let id = RequestId::from(self.next);
        let request = Request {
            id: id.clone(),
            method: method.into(),
            params,
        };
        self.send(Message::Request(request));
        loop {
            match self.receive() {
                Message::Response(r) if r.id == id => return r,
                _ => {}
            }
        }
    }

    fn send(&self, message: Message) {
        self.connection
            .sender
            .send(message)
            .expect("the server listens");
    }

    fn receive(&self) -> Message {
        self.connection.receiver.recv().expect("the server answers")
    }

    /// The result of a request that is answered.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let response = self.response(method, params);
        match response.response_result {
            Ok(value) => value,
            Err(e) => panic!("{method}: {}", e.message),
        }
    }

    /// The message of a request that is refused.
    pub fn fail(&mut self, method: &str, params: Value) -> String {
        let response = self.response(method, params);
        match response.response_result {
            Ok(value) => panic!("{method}: {value}"),
            Err(e) => e.message,
        }
    }

    pub fn tell(&mut self, method: &str, params: Value) {
        self.send(Message::Notification(Notification {
            method: method.into(),
            params,
        }));
    }

    /// The next request of the server.
    pub fn next_request(&mut self) -> (String, Value) {
        loop {
            if let Message::Request(r) = self.receive() {
                return (r.method, r.params);
            }
        }
    }

    /// Writes a file; its address.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a small file");
        address(&path)
    }

    /// Opens a text as the file of that name, which need not exist.
    pub fn open(&mut self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        self.open_at(&path, text)
    }

    pub fn open_at(&mut self, path: &Path, text: &str) -> String {
        let uri = address(path);
        self.tell(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri, "languageId": "rlhf", "version": 1, "text": text } }),
        );
        uri
    }

    pub fn change(&mut self, uri: &str, changes: Value) {
        self.version += 1;
        self.tell(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": self.version },
                    "contentChanges": changes }),
        );
    }

    pub fn replace(&mut self, uri: &str, text: &str) {
        self.change(uri, json!([{ "text": text }]));
    }

    pub fn close(&mut self, uri: &str) {
        self.tell(
            "textDocument/didClose",
            json!({ "textDocument": { "uri": uri } }),
        );
    }

    /// The next diagnostics of a text.
    pub fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        self.diagnostics_of(&[uri]).remove(0)
    }

    /// The next diagnostics of several texts, in whichever order they come.
    pub fn diagnostics_of(&mut self, uris: &[&str]) -> Vec<Vec<Value>> {
        let mut found: Vec<Option<Vec<Value>>> = vec![None; uris.len()];
        while found.iter().any(Option::is_none) {
            let Message::Notification(n) = self.receive() else {
                continue;
            };
            if n.method != "textDocument/publishDiagnostics" {
                continue;
            }
            let of = uris.iter().position(|u| n.params["uri"] == *u);
            if let Some(i) = of {
                found[i] = n.params["diagnostics"].as_array().cloned();
            }
        }
        found.into_iter().flatten().collect()
    }
}

fn address(path: &Path) -> String {
    let url = url::Url::from_file_path(path).expect("an absolute path");
    url.to_string()
}

/// The place of the first occurrence of a text, counted in UTF-16.
pub fn at(uri: &str, text: &str, what: &str) -> Value {
    let at = text.find(what).expect("it is there");
    let before = &text[..at];
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    json!({ "textDocument": { "uri": uri },
            "position": { "line": line, "character": text[start..at].encode_utf16().count() } })
}
