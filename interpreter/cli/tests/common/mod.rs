//! A folder with a program, its data, a checkpoint's outline, and a script in the place of a rank.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A small program over `sums.jsonl` and the checkpoint `model`.
pub const PROGRAM: &str = r#"//! Sums, by policy gradient.

/// Where to start.
param base: checkpoint = "./model"
/// Prompts per iteration.
param batch: int in 1.. = 2

data sums = jsonl("sums.jsonl") { question: text, answer: text }

model policy = causal(base, optim: adamw(lr: 1e-5))

step over sums[B: batch], iterations: 3 {
  roll = generate(policy, question, temperature: 1)[G: 2, T: ..8]
  r = if roll.text == answer then 1 else 0

  train policy { // allow(M101): as small as a program can be
    lp = logp(policy, roll)
    minimize -mean(mean(r * lp, T), [B, G])
  }
  log reward: mean(r)
}
"#;

const ROWS: &str = "{\"question\": \"1 + 1 =\", \"answer\": \"2\"}\n\
                    {\"question\": \"2 + 1 =\", \"answer\": \"3\"}\n\
                    {\"question\": \"3 + 1 =\", \"answer\": \"4\"}\n";

const CONFIG: &str = r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 1000}"#;

/// A folder that goes away with the value.
pub struct Scene {
    folder: tempfile::TempDir,
}

/// What a command did.
#[allow(dead_code)] // not every test reads all of it
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Scene {
    /// The program, three rows, and the outline of a checkpoint.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let scene = Scene { folder };
        scene.write("sums.rlhf", PROGRAM);
        scene.write("sums.jsonl", ROWS);
        scene.write("model/config.json", CONFIG);
        scene.write("model/tokenizer.json", "{}");
        scene.write("model/model.safetensors", "");
        // The launcher looks for the library; the script does not need it.
        scene.write("torch/lib/libtorch_cpu.so", "");
        scene.write("torch/lib/libtorch_cpu.dylib", "");
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let parent = path.parent().expect("a path in the folder");
        std::fs::create_dir_all(parent).expect("a folder");
        std::fs::write(path, text).expect("a small file");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Puts a shell script in the place of the rank.
    pub fn rank(&self, script: &str) {
        self.write("rank.sh", &format!("#!/bin/sh\n{script}\n"));
        let path = self.path("rank.sh");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("an executable script");
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rlhf"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("RLHF_RANK", self.path("rank.sh"))
            .env("LIBTORCH", self.path("torch"))
            .env("HF_HUB_CACHE", self.path("hub"))
            .env("HF_HUB_OFFLINE", "1")
            .env_remove("RLHF_ROOT")
            .env_remove("HF_ENDPOINT");
        command
    }

    /// Runs `rlhf WORDS` in the folder.
    pub fn rlhf(&self, words: &[&str]) -> Ran {
        ran(self.command(words).output().expect("rlhf starts"))
    }

    pub fn exists(&self, name: &str) -> bool {
        Path::new(&self.path(name)).exists()
    }
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into(),
        err: String::from_utf8_lossy(&output.stderr).into(),
    }
}
