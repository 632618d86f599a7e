//! A tiny Llama checkpoint with random weights and a tokenizer of bytes.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use serde_json::{Map, Value, json};

/// Ids of the two special tokens; the 256 bytes come before them.
const START: usize = 256;
const END: usize = 257;

/// Rows of the embedding: two more than the tokenizer has tokens, as real checkpoints do.
const VOCAB: usize = 260;
const HIDDEN: usize = 32;
const INTERMEDIATE: usize = 64;
const LAYERS: usize = 2;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD_DIM: usize = HIDDEN / HEADS;
const POSITIONS: usize = 128;

/// Turns between `<|im_start|>` and `<|im_end|>`.
const TEMPLATE: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + \
     message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}\
     {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// The files of a checkpoint directory, to be changed before they are written.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// `config.json`
    pub config: Value,
    /// `tokenizer_config.json`
    pub tokenizer_config: Value,
    /// Shape and numbers of every tensor of `model.safetensors`.
    pub tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Checkpoint {
    /// Two layers, hidden width 32, 4 heads over 2 key-value heads, 128 positions; the weights are a
    /// function of the seed alone.
    pub fn new(seed: u64) -> Self {
        let config = json!({
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD_DIM,
            "vocab_size": VOCAB,
            "max_position_embeddings": POSITIONS,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "tie_word_embeddings": false,
            "attention_bias": false,
            "mlp_bias": false,
            "bos_token_id": START,
            "eos_token_id": END,
            "pad_token_id": END,
            "torch_dtype": "float32",
        });
        let tokenizer_config = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<|im_start|>",
            "eos_token": "<|im_end|>",
            "pad_token": "<|im_end|>",
            "clean_up_tokenization_spaces": false,
            "model_max_length": POSITIONS,
            "chat_template": TEMPLATE,
        });
        Checkpoint {
            config,
            tokenizer_config,
            tensors: tensors(seed),
        }
    }

    /// The same body with a scalar head, as a sequence classifier of one label.
    pub fn with_scalar_head(mut self) -> Self {
        self.tensors.remove("lm_head.weight");
        let mut random = Random(HIDDEN as u64);
        let numbers = (0..HIDDEN).map(|_| 0.1 * random.next()).collect();
        self.tensors
            .insert("score.weight".into(), (vec![1, HIDDEN], numbers));
        self.config["architectures"] = json!(["LlamaForSequenceClassification"]);
        self.config["id2label"] = json!({ "0": "LABEL_0" });
        self.config["label2id"] = json!({ "LABEL_0": 0 });
        self
    }

    /// Writes the five files into `dir`, which is made.
    pub fn write(&self, dir: &Path) {
        std::fs::create_dir_all(dir).expect("a folder");
        let file = |name: &str, value: &Value| {
            std::fs::write(dir.join(name), value.to_string()).expect("a small file");
        };
        file("config.json", &self.config);
        file("tokenizer_config.json", &self.tokenizer_config);
        file("tokenizer.json", &tokenizer());
        file(
            "generation_config.json",
            &json!({ "bos_token_id": START, "eos_token_id": END, "pad_token_id": END }),
        );
        let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, (shape, numbers))| {
                let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
                (name, shape, bytes)
            })
            .collect();
        let views = bytes.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
            (*name, view.expect("shape and numbers agree"))
        });
        // Readers of checkpoints want to know who wrote the file.
        let metadata = Some([("format".to_string(), "pt".to_string())].into());
        serialize_to_file(views, metadata, &dir.join("model.safetensors")).expect("a small file");
    }
}

fn tensors(seed: u64) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let mut random = Random(seed);
    let mut all = BTreeMap::new();
    let mut add = |name: String, shape: &[usize], around: f32| {
        let count = shape.iter().product();
        // Rows of unit length in the mean.
        let width = (3.0 / HIDDEN as f32).sqrt();
        let numbers = (0..count).map(|_| around + width * random.next()).collect();
        all.insert(name, (shape.to_vec(), numbers));
    };
    add("model.embed_tokens.weight".into(), &[VOCAB, HIDDEN], 0.0);
    add("lm_head.weight".into(), &[VOCAB, HIDDEN], 0.0);
    add("model.norm.weight".into(), &[HIDDEN], 1.0);
    let (queries, keys) = (HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM);
    for layer in 0..LAYERS {
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        add(name("input_layernorm"), &[HIDDEN], 1.0);
        add(name("self_attn.q_proj"), &[queries, HIDDEN], 0.0);
        add(name("self_attn.k_proj"), &[keys, HIDDEN], 0.0);
        add(name("self_attn.v_proj"), &[keys, HIDDEN], 0.0);
        add(name("self_attn.o_proj"), &[HIDDEN, queries], 0.0);
        add(name("post_attention_layernorm"), &[HIDDEN], 1.0);
        add(name("mlp.gate_proj"), &[INTERMEDIATE, HIDDEN], 0.0);
        add(name("mlp.up_proj"), &[INTERMEDIATE, HIDDEN], 0.0);
        add(name("mlp.down_proj"), &[HIDDEN, INTERMEDIATE], 0.0);
    }
    all
}

/// SplitMix64 (Steele et al., 2014).
struct Random(u64);

impl Random {
    /// Uniform in -1..1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Every byte is a token; nothing is merged.
fn tokenizer() -> Value {
    let mut vocab = Map::new();
    for (id, symbol) in byte_symbols().into_iter().enumerate() {
        vocab.insert(symbol.to_string(), id.into());
    }
    let special = |id: usize, content: &str| {
        json!({
            "id": id, "content": content, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false,
        })
    };
    let bytes = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
    });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [special(START, "<|im_start|>"), special(END, "<|im_end|>")],
        "normalizer": null,
        "pre_tokenizer": bytes,
        "post_processor": null,
        "decoder": bytes,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": vocab, "merges": [],
        },
    })
}

/// The letter that stands for each byte in byte-level tokenizers since GPT-2: itself where it is
/// printable, else one of the letters from U+0100 on.
fn byte_symbols() -> Vec<char> {
    let mut spare = 0x100..;
    (0..=255u32)
        .map(|byte| {
            let printable = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
            let code = if printable { Some(byte) } else { spare.next() };
            code.and_then(char::from_u32).expect("a letter of Unicode")
        })
        .collect()
}
