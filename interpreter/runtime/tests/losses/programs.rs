//! The table: a number of the fixture, the program that computes it, its gradients.

/// Which batch a program reads: see `inputs.rs` for the names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum World {
    /// Four responses of up to five tokens: `lp`, `old`, `ref`, `v`, `r` over tokens; `adv`, `s`.
    Policy,
    /// Three pairs of summed log-probabilities: `win`, `lose`, `rw`, `rl`.
    Sums,
    /// Three pairs of scores: `win`, `lose`, `gap`.
    Scores,
    /// Three pairs of log-probabilities averaged over tokens: `win`, `lose`.
    Means,
    /// Three pairs given as logits: `win`, `lose`, `ref_win`, `ref_lose` over tokens.
    Tokens,
    /// The same with the rejected responses on an axis of their own.
    Unpaired,
    /// The same six responses, each good or bad: `lp`, `ref` over tokens, `good`; `other`.
    Singles,
    /// `x`, two rows.
    Whiten,
    /// `r`, two groups.
    Groups,
}

/// A number and the program for it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Where the fixture has it.
    pub path: &'static str,
    /// The modules whose functions it calls.
    pub uses: &'static [&'static str],
    /// The program.
    pub program: &'static str,
    /// The inputs it is differentiated by.
    pub by: &'static [&'static str],
    /// Where the fixture has the gradients; empty where it has their norm.
    pub gradients: &'static [&'static str],
    /// Its inputs.
    pub world: World,
}

const fn policy(path: &'static str, uses: &'static [&'static str], program: &'static str) -> Case {
    Case {
        path,
        uses,
        program,
        by: &["lp"],
        gradients: &["grad_log_prob"],
        world: World::Policy,
    }
}

const fn value(path: &'static str, uses: &'static [&'static str], program: &'static str) -> Case {
    Case {
        by: &[],
        gradients: &[],
        ..policy(path, uses, program)
    }
}

const fn sums(path: &'static str, program: &'static str) -> Case {
    Case {
        by: &["win", "lose"],
        gradients: &["grad_chosen", "grad_rejected"],
        world: World::Sums,
        ..policy(path, &["std.dpo"], program)
    }
}

const fn scores(path: &'static str, program: &'static str) -> Case {
    Case {
        by: &["win", "lose"],
        gradients: &["grad[..3]", "grad[3..]"],
        world: World::Scores,
        ..policy(path, &["std.reward"], program)
    }
}

const fn means(path: &'static str, program: &'static str) -> Case {
    Case {
        world: World::Means,
        ..sums(path, program)
    }
}

const fn tokens(path: &'static str, program: &'static str) -> Case {
    Case {
        gradients: &[],
        world: World::Tokens,
        ..sums(path, program)
    }
}

const fn singles(path: &'static str, program: &'static str) -> Case {
    Case {
        gradients: &[],
        world: World::Singles,
        ..policy(path, &["std.kto"], program)
    }
}

const PPO: &[&str] = &["std.ppo"];
const PPO_KL: &[&str] = &["std.ppo", "std.kl"];
const KL: &[&str] = &["std.kl"];
const ADVANTAGE: &[&str] = &["std.advantage"];

/// Every number of the fixture that is not in [`LEFT_OUT`].
#[rustfmt::skip]
pub const CASES: &[Case] = &[
    policy("openrlhf/policy/ppo", PPO, "mean(-clipped(exp(lp - old), adv), [B, T])"),
    policy("openrlhf/policy/ppo_seq", PPO, "mean(mean(-clipped(exp(lp - old), adv), T), B)"),
    policy("openrlhf/policy/ppo_dual1.5", PPO, "mean(-dual_clipped(exp(lp - old), adv, c: 1.5), [B, T])"),
    policy("openrlhf/policy/ppo_cliphigher", PPO, "mean(-clipped(exp(lp - old), adv, hi: 0.28), [B, T])"),
    policy("openrlhf/policy/gspo", PPO, "mean(-clipped(sequence_ratio(lp, old, T), adv, 3e-4, 4e-4), B)"),
    value("openrlhf/approx_kl_k1", KL, "k1(lp, ref)"),
    value("openrlhf/approx_kl_k2", KL, "k2(lp, ref)"),
    value("openrlhf/approx_kl_k3", KL, "k3(lp, ref)"),
    value("openrlhf/compute_reward_klcoef0.05", &["std.kl", "std.advantage"],
        "token_rewards(s, k1(old, ref), T, beta: 0.05)"),
    value("openrlhf/gae_lam0.95/advantages_raw", ADVANTAGE, "gae(r, v, 1, 0.95)"),
    value("openrlhf/gae_lam0.95/returns", ADVANTAGE, "gae(r, v, 1, 0.95) + v"),
    value("openrlhf/gae_lam0.95/advantages_normalised", ADVANTAGE,
        "whiten_variance(gae(r, v, 1, 0.95), [B, T], biased: true)"),
    value("openrlhf/cumulative_returns_g1", ADVANTAGE, "returns(r, 1)"),
    sums("openrlhf/dpo_beta0.1", "mean(dpo(margin(win, lose, rw, rl), 0.1))"),
    sums("openrlhf/cdpo_beta0.1_ls0.1", "mean(dpo(margin(win, lose, rw, rl), 0.1, smooth: 0.1))"),
    sums("openrlhf/ipo_beta0.1_sum", "mean(ipo(margin(win, lose, rw, rl), 0.1))"),
    Case { by: &[], gradients: &[], ..scores("openrlhf/rm/pairwise", "mean(preference(win, lose))") },
    Case { by: &[], gradients: &[], ..scores("openrlhf/rm/pairwise_margin", "mean(preference(win, lose, gap))") },
    Case { by: &[], gradients: &[], ..scores("openrlhf/rm/logexp", "mean(log(1 + exp(lose - win)))") },

    policy("trl/grpo_loss/grpo", PPO, "mean(mean(-clipped(exp(lp - old), adv), T), B)"),
    policy("trl/grpo_loss/bnpo", PPO, "mean(-clipped(exp(lp - old), adv), [B, T])"),
    policy("trl/grpo_loss/dr_grpo", PPO, "mean(sum(-clipped(exp(lp - old), adv), T) / 8, B)"),
    policy("trl/grpo_loss/dapo", PPO, "mean(-clipped(exp(lp - old), adv), [B, T])"),
    policy("trl/grpo_loss/cispo", PPO, "mean(-cispo(exp(lp - old), adv, lp, hi: 4), [B, T])"),
    policy("trl/grpo_loss/sapo", PPO, "mean(mean(-sapo(exp(lp - old), adv), T), B)"),
    policy("trl/grpo_loss/vespo", PPO, "mean(-vespo(lp, old, adv, T), [B, T])"),
    policy("trl/grpo_loss/luspo_seq", PPO, "mean(-len(lp, T) * clipped(sequence_ratio(lp, old, T), adv), B)"),
    policy("trl/grpo_loss/gspo(grpo loss, sequence level, eps 3e-4~4e-4)", PPO,
        "mean(-clipped(sequence_ratio(lp, old, T), adv, 3e-4, 4e-4), B)"),
    policy("trl/grpo_loss/dapo_beta0.04", PPO_KL,
        "mean(0.04 * k3(lp, ref) - clipped(exp(lp - old), adv), [B, T])"),
    policy("trl/grpo_loss/grpo_beta0.04", PPO_KL,
        "mean(mean(0.04 * k3(lp, ref) - clipped(exp(lp - old), adv), T), B)"),
    policy("trl/grpo_loss/dapo_cliphigher0.28", PPO, "mean(-clipped(exp(lp - old), adv, hi: 0.28), [B, T])"),
    policy("trl/grpo_loss/dapo_delta1.5", PPO, "mean(-dual_clipped(exp(lp - old), adv, c: 1.5), [B, T])"),
    policy("trl/rloo_loss", PPO, "mean(-clipped(exp(sum(lp - old, T)), adv), B)"),

    tokens("trl/dpo_loss/sigmoid", "mean(dpo(margin(sum(win, W), sum(lose, L), sum(ref_win, W), sum(ref_lose, L))))"),
    tokens("trl/dpo_loss/hinge", "mean(hinge(sum(win - ref_win, W) - sum(lose - ref_lose, L)))"),
    tokens("trl/dpo_loss/ipo", "mean(ipo(margin(sum(win, W), sum(lose, L), sum(ref_win, W), sum(ref_lose, L), len(win, W), len(lose, L))))"),
    tokens("trl/dpo_loss/nca_pair", "mean(nca(sum(win - ref_win, W), sum(lose - ref_lose, L)))"),
    tokens("trl/dpo_loss/bco_pair", "mean(bco(sum(win - ref_win, W), sum(lose - ref_lose, L)))"),
    tokens("trl/dpo_loss/sppo_hard", "mean(sppo(sum(win - ref_win, W), sum(lose - ref_lose, L)))"),
    tokens("trl/dpo_loss/apo_zero", "mean(apo_zero(sum(win - ref_win, W), sum(lose - ref_lose, L)))"),
    tokens("trl/dpo_loss/apo_down", "mean(apo_down(sum(win - ref_win, W), sum(lose - ref_lose, L)))"),
    tokens("trl/dpo_loss/discopop", "mean(discopop(sum(win - ref_win, W) - sum(lose - ref_lose, L)))"),
    Case { uses: &["std.sft"], by: &["win"], ..tokens("trl/dpo_loss/sft", "mean(nll(win))") },
    tokens("trl/dpo_loss/sigmoid_norm",
        "mean(dpo(margin(sum(win, W), sum(lose, L), sum(ref_win, W), sum(ref_lose, L), len(win, W), len(lose, L))))"),
    tokens("trl/dpo_loss/robust_ls0.1", "mean(robust(sum(win - ref_win, W) - sum(lose - ref_lose, L), smooth: 0.1))"),
    tokens("trl/dpo_loss/exo_pair_ls1e-3", "mean(exo(sum(win - ref_win, W) - sum(lose - ref_lose, L), eps: 1e-3))"),
    tokens("trl/dpo_loss/sigmoid_forward_kl",
        "mean(dpo(forward_kl(sum(win - ref_win, W)) - forward_kl(sum(lose - ref_lose, L))))"),
    tokens("trl/dpo_loss/sigmoid_js",
        "mean(dpo(jensen_shannon(sum(win - ref_win, W)) - jensen_shannon(sum(lose - ref_lose, L))))"),
    tokens("trl/dpo_loss/sigmoid_ld0.5",
        "mean(dpo(length_desensitised(win - ref_win, min(len(win, W), len(lose, L)), W) - length_desensitised(lose - ref_lose, min(len(win, W), len(lose, L)), L)))"),
    tokens("trl/dpo_loss/sigmoid_wpo",
        "mean(wpo_weight(win, W, same_win) * wpo_weight(lose, L, same_lose) * dpo(sum(win - ref_win, W) - sum(lose - ref_lose, L)))"),
    tokens("trl/dpo_loss/mpo_sigmoid0.8_bco0.2_sft1",
        "mean(0.8 * dpo(sum(win - ref_win, W) - sum(lose - ref_lose, L)) + 0.2 * bco(sum(win - ref_win, W), sum(lose - ref_lose, L))) - mean(win)"),
    // Optimal transport pairs rows by rank. The language has no sort: here each row is held against all.
    tokens("trl/dpo_loss/aot",
        "sum(if sum(if p_again < sum(win, W) - sum(lose, L) - 1e-9 then 1 else 0, C) == sum(if q_again < q - 1e-9 then 1 else 0, D) then dpo(sum(win, W) - sum(lose, L) - q) else 0) / 3"),
    Case { world: World::Unpaired, ..tokens("trl/dpo_loss/aot_unpaired",
        "sum(if sum(if w_again < sum(win - ref_win, W) - 1e-9 then 1 else 0, C) == sum(if l_again < sum(lose - ref_lose, L) - 1e-9 then 1 else 0, D) then dpo(sum(win - ref_win, W) - sum(lose - ref_lose, L)) else 0) / 3") },

    Case { uses: &["std.preference"], by: &[], gradients: &[], ..means("trl/orpo/or_term_losses",
        "-orpo(win, lose, 0.1, nll: 0)") },
    Case { uses: &["std.preference"], by: &[], gradients: &[], ..means("trl/orpo/log_odds_chosen_mean",
        "mean(log_odds(win) - log_odds(lose))") },
    Case { uses: &["std.preference"], by: &[], gradients: &[], ..means("trl/orpo/log_odds_ratio_mean",
        "mean(log_sigmoid(log_odds(win) - log_odds(lose)))") },
    Case { uses: &["std.preference"], ..means("trl/cpo_simpo/sigmoid", "mean(cpo(win, lose, nll: 0))") },
    means("trl/cpo_simpo/hinge", "mean(hinge(win - lose))"),
    means("trl/cpo_simpo/ipo", "mean(ipo(win - lose))"),
    Case { uses: &["std.preference"], ..means("trl/cpo_simpo/simpo_b2_g0.5", "mean(simpo(win, lose, 2, 0.5))") },
    Case { uses: &["std.preference"], ..means("trl/cpo_simpo/simpo_b0.1_g0.5", "mean(simpo(win, lose, 0.1, 0.5))") },
    Case { uses: &["std.preference"], ..means("trl/cpo_simpo/alphapo_a0.25",
        "mean(simpo(alpha_reward(win), alpha_reward(lose), 2, 0.5))") },
    scores("trl/reward/plain", "mean(preference(win, lose))"),
    scores("trl/reward/margin", "mean(preference(win, lose, gap))"),
    scores("trl/reward/center", "mean(preference(win, lose) + 0.01 * centering(win, lose))"),
    singles("trl/kto/kto", "mean(kto(sum(lp - ref, T), good > 0, reference_point(other, C)))"),
    singles("trl/kto/kto_negative_kl_clamped", "mean(kto(sum(lp - ref, T), good > 0, reference_point(other, C)))"),
    singles("trl/kto/kto_weights_1_1.33",
        "mean(kto(sum(lp - ref, T), good > 0, reference_point(other, C), undesirable: 1.33))"),
    singles("trl/kto/apo_zero_unpaired", "mean(kto(sum(lp - ref, T), good > 0))"),
    Case { world: World::Whiten, ..value("trl/masked_whiten/out", ADVANTAGE, "whiten_variance(x, [B, T])") },
    Case { world: World::Groups, ..value("trl/nanstd/std", &[], "std(r, G)") },
    Case { world: World::Groups, ..value("trl/nanstd/mean", &[], "mean(r, G)") },
];

/// Numbers that no program is held against, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    (
        "openrlhf/value_loss_clip0.2",
        "the fixture does not say over which values",
    ),
    (
        "openrlhf/value_loss_noclip",
        "the fixture does not say over which values",
    ),
];
