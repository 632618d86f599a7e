"""Losses, advantages and learning rates that `losses.json` lacks, with their gradients.

Writes interpreter/runtime/tests/fixtures/library.json. Each case is a program of the language, its inputs,
its value and the gradients by some inputs; the numbers come from PyTorch in f64 by the papers' formulas
written out row by row, and for learning rates from transformers' own schedulers.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
import transformers
from transformers import get_scheduler

torch.set_default_dtype(torch.float64)
OUT = pathlib.Path(__file__).parents[2] / "interpreter/runtime/tests/fixtures/library.json"

LP = [[-0.7, -0.95, -0.15, -1.4], [-0.7, -1.98, -0.5], [-0.45, -0.6, -1.48, -0.45, -1.7], [-1.25, -0.7, -0.7]]
OLD = [[-1.0, -0.7, -0.2, -1.5], [-0.3, -2.0, -0.8], [-0.6, -0.5, -1.7, -0.1, -2.2], [-1.2, -0.9, -0.4]]
REF = [[-0.9, -0.5, -0.3, -1.5], [-0.3, -2.2, -0.7], [-0.9, -0.4, -1.5, -0.2, -2.15], [-1.0, -1.3, -0.1]]
V = [[0.2, 0.1, 0.4, 0.3], [0.5, 0.2, 0.1], [0.3, 0.3, 0.2, 0.6, 0.4], [0.1, 0.0, 0.2]]
ADV = [0.9, -1.1, 0.4, -0.6]
GROUPS = [[1.0, 0.25, 0.5], [0.0, 2.0, 2.0]]
LENGTHS = [[4, 8, 2], [3, 5, 7]]
WIN, LOSE = [-20.0, -31.5, -12.25], [-22.5, -30.0, -15.0]
REF_WIN, REF_LOSE = [-21.0, -31.0, -13.0], [-22.0, -30.5, -14.0]

cases = []


def leaf(data):
    if isinstance(data[0], list):
        return [torch.tensor(row, requires_grad=True) for row in data]
    return torch.tensor(data, requires_grad=True)


def numbers(x):
    if isinstance(x, list):
        return [numbers(row) for row in x]
    return x.tolist() if isinstance(x, torch.Tensor) else x


def grad_of(x):
    zero = lambda t: torch.zeros_like(t) if t.grad is None else t.grad
    return [zero(t).tolist() for t in x] if isinstance(x, list) else zero(x).tolist()


def case(program, uses, inputs, f, by=()):
    """`inputs`: name -> (axes, data); f takes the leaves and gives one number, or lists."""
    leaves = {name: leaf(data) for name, (_, data) in inputs.items()}
    value = f(**leaves)
    if by:
        value.backward()
    cases.append(
        {
            "program": program,
            "uses": uses,
            "inputs": {name: {"axes": axes, "data": data} for name, (axes, data) in inputs.items()},
            "value": numbers(value),
            "gradients": {name: grad_of(leaves[name]) for name in by},
        }
    )


def tokens(**data):
    return {name: (["B", "T"], rows) for name, rows in data.items()}


def every(rows):
    return torch.cat(rows).mean()


def policy():
    world = tokens(lp=LP, old=OLD) | {"adv": (["B"], ADV)}

    def gmpo(lp, old, adv, lo, hi):
        loss = 0
        for l, o, a in zip(lp, old, adv):
            sign = torch.sign(a).detach()
            d = l - o
            clipped = sign * torch.minimum(sign * d, sign * d.clamp(-lo, hi))
            loss = loss - torch.exp(clipped.mean()) * a / len(lp)
        return loss

    case("mean(-gmpo(lp, old, adv, T), B)", ["std.ppo"], world, lambda **w: gmpo(**w, lo=0.4, hi=0.4), by=["lp"])
    case(
        "mean(-gmpo(lp, old, adv, T, lo: 0.1, hi: 0.3), B)",
        ["std.ppo"],
        world,
        lambda **w: gmpo(**w, lo=0.1, hi=0.3),
        by=["lp"],
    )
    case(
        "mean(-gpg(lp, adv), [B, T])",
        ["std.ppo"],
        world,
        lambda lp, old, adv: every([-l * a for l, a in zip(lp, adv)]),
        by=["lp"],
    )
    case(
        "mean(-dro(lp, old, adv, beta: 0.3), [B, T])",
        ["std.ppo"],
        world,
        lambda lp, old, adv: every([-(l * a - 0.15 * (l - o) ** 2) for l, o, a in zip(lp, old, adv)]),
        by=["lp"],
    )

    def gspo_token(lp, old, adv):
        rows = []
        for l, o, a in zip(lp, old, adv):
            s = torch.exp((l - o).mean()).detach() * torch.exp(l - l.detach())
            rows.append(-torch.minimum(s * a, s.clamp(1 - 3e-4, 1 + 4e-4) * a).mean())
        return torch.stack(rows).mean()

    case(
        "mean(mean(-clipped(sequence_ratio_by_token(lp, old, T), adv, 3e-4, 4e-4), T), B)",
        ["std.ppo"],
        world,
        gspo_token,
        by=["lp"],
    )

    def corrected(lp, old, adv, ref, masked):
        rows = []
        for l, o, a, s in zip(lp, old, adv, ref):
            w = torch.exp(o - s).detach()
            w = torch.where((w < 0.9) | (w > 1.2), 0.0, w) if masked else w.clamp(max=1.05)
            ratio = torch.exp(l - o)
            rows.append(-w * torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a))
        return every(rows)

    both = world | tokens(ref=REF)
    case(
        "mean(-truncated_weight(old, ref, limit: 1.05) * clipped(exp(lp - old), adv), [B, T])",
        ["std.ppo"],
        both,
        lambda **w: corrected(**w, masked=False),
        by=["lp"],
    )
    case(
        "mean(-masked_weight(old, ref, lo: 0.9, hi: 1.2) * clipped(exp(lp - old), adv), [B, T])",
        ["std.ppo"],
        both,
        lambda **w: corrected(**w, masked=True),
        by=["lp"],
    )
    case(
        "mean(-clipped(importance(lp, old, limit: 0.3), adv), [B, T])",
        ["std.ppo"],
        world,
        lambda lp, old, adv: every(
            [
                -torch.minimum((l - o).clamp(-0.3, 0.3).exp() * a, (l - o).clamp(-0.3, 0.3).exp().clamp(0.8, 1.2) * a)
                for l, o, a in zip(lp, old, adv)
            ]
        ),
        by=["lp"],
    )
    case(
        "mean(k3(lp, ref, limit: 0.35, cap: 0.06), [B, T])",
        ["std.kl"],
        tokens(lp=LP, ref=REF),
        lambda lp, ref: every(
            [
                ((-(x := (l - r).clamp(-0.35, 0.35))).exp() + x - 1).clamp(-0.06, 0.06)
                for l, r in zip(lp, ref)
            ]
        ),
        by=["lp"],
    )
    for name, f in [("k1", lambda x: x), ("absolute", torch.abs), ("k2", lambda x: x**2 / 2)]:
        case(
            f"mean({name}(lp, ref), [B, T])",
            ["std.kl"],
            tokens(lp=LP, ref=REF),
            lambda lp, ref, f=f: every([f(l - r) for l, r in zip(lp, ref)]),
            by=["lp"],
        )


def critic():
    new = [[v + 0.4 * (-1) ** (i + t) * (t + 1) / 2 for t, v in enumerate(row)] for i, row in enumerate(V)]
    ret = [[v + 0.1 * t - 0.2 * i for t, v in enumerate(row)] for i, row in enumerate(V)]
    world = tokens(v=new, old=V, ret=ret)

    def loss(v, old, ret, clip, scale):
        rows = []
        for x, o, r in zip(v, old, ret):
            near = torch.clamp(x, o - clip, o + clip)
            rows.append(scale * torch.maximum((x - r) ** 2, (near - r) ** 2))
        return every(rows)

    for text, clip, scale in [("", 0.2, 0.5), (", clip: 1e30", 1e30, 0.5), (", clip: 0.5, scale: 1", 0.5, 1)]:
        case(
            f"mean(value_loss(v, old, ret{text}), [B, T])",
            ["std.value"],
            world,
            lambda v, old, ret, c=clip, s=scale: loss(v, old, ret, c, s),
            by=["v"],
        )
    seen = torch.tensor([0.5, 2.0, -1.0, 3.0, 0.25])
    first, rest = seen[:2], seen[2:]
    stats = {
        "mu": float(first.mean()),
        "var": float(first.var(correction=0)),
        "m": float(rest.mean()),
        "v": float(rest.var(correction=0)),
    }
    cases.append(
        {
            "program": f"running_mean({stats['mu']!r}, 2, {stats['m']!r}, 3)",
            "uses": ["std.value"],
            "inputs": {},
            "value": float(seen.mean()),
            "gradients": {},
        }
    )
    cases.append(
        {
            "program": f"running_var({stats['var']!r}, {stats['mu']!r}, 2, {stats['v']!r}, {stats['m']!r}, 3)",
            "uses": ["std.value"],
            "inputs": {},
            "value": float(seen.var(correction=0)),
            "gradients": {},
        }
    )


def advantages():
    r = {"r": (["B", "G"], GROUPS)}
    group = lambda f: lambda r: [f(row).detach() for row in r]
    library = ["std.grpo"]
    for correction, text in [(1, ""), (0, ", biased: true")]:
        for eps in [1e-4, 1e-5, 1e-6, 1e-9]:
            case(
                f"group_relative(r, G, {eps}{text})",
                library,
                r,
                group(lambda x, e=eps, c=correction: (x - x.mean()) / (x.std(correction=c) + e)),
            )
    case("group_relative(r, G, before: 0.6)", library, r, group(
        lambda x: ((y := x.clamp(-0.6, 0.6)) - y.mean()) / (y.std() + 1e-4)))
    case("group_relative(r, G, after: 0.6)", library, r, group(
        lambda x: ((x - x.mean()) / (x.std() + 1e-4)).clamp(-0.6, 0.6)))
    case("dr_grpo(r, G)", library, r, group(lambda x: x - x.mean()))
    case("dr_grpo(r, G, before: 0.6)", library, r, group(lambda x: (y := x.clamp(-0.6, 0.6)) - y.mean()))
    case("rloo(r, G)", library, r, group(lambda x: x - (x.sum() - x) / (len(x) - 1)))
    case("rloo(r, G, after: 0.5)", library, r, group(lambda x: (x - (x.sum() - x) / (len(x) - 1)).clamp(-0.5, 0.5)))
    case("max_rl(r, G)", library, r, group(lambda x: (x - x.mean()) / (x.mean() + 1e-6)))

    def pass_at_k(x, scale):
        top = x.topk(2)
        out = torch.zeros_like(x)
        gain = top.values[0] - top.values[1]
        out[top.indices[0]] = gain / (x.std() + 1e-6) if scale else gain
        return out

    case("pass_at_k(r, G)", library, r, group(lambda x: pass_at_k(x, True)))
    case("pass_at_k(r, G, scale: 0)", library, r, group(lambda x: pass_at_k(x, False)))
    case(
        "opo(r, n, G)",
        library,
        r | {"n": (["B", "G"], [[float(n) for n in row] for row in LENGTHS])},
        lambda r, n: [(x - (x * m).sum() / m.sum()).detach() for x, m in zip(r, n)],
    )

    def baseline(r, correction):
        centred = torch.stack([x - x.mean() for x in r]).detach()
        return list((centred - centred.mean()) / (centred.std(correction=correction) + 1e-8))

    case("reinforce_pp_baseline(r, G, [B, G])", library, r, lambda r: baseline(r, 1))
    case("reinforce_pp_baseline(r, G, [B, G], biased: true)", library, r, lambda r: baseline(r, 0))

    world = {"s": (["B"], [1.0, -0.5, 4.0, 0.25])} | tokens(old=OLD, ref=REF)

    def rewards(s, old, ref, limit=1e30, from_end=0):
        rows = []
        for i, (x, o, f) in enumerate(zip(s, old, ref)):
            row = -0.1 * (o - f).detach()
            row[max(len(row) - 1 - from_end, 0)] += x.detach().clamp(-limit, limit)
            rows.append(row)
        return rows

    uses = ["std.advantage", "std.kl"]
    token_rewards = "token_rewards(s, k1(old, ref), T, beta: 0.1"
    case(f"{token_rewards})", uses, world, rewards)
    case(f"{token_rewards}, limit: 2)", uses, world, lambda **w: rewards(**w, limit=2))
    case(f"{token_rewards}, from_end: 1)", uses, world, lambda **w: rewards(**w, from_end=1))

    def to_go(rows, gamma):
        out = []
        for row in rows:
            total, back = torch.zeros(()), []
            for x in reversed(row):
                total = x + gamma * total
                back.append(total)
            out.append(torch.stack(back[::-1]))
        return out

    def reinforce_pp(s, old, ref, correction=1):
        rows = to_go(rewards(s, old, ref), 0.9)
        flat = torch.cat(rows)
        return [(x - flat.mean()) / (flat.std(correction=correction) + 1e-8) for x in rows]

    case(f"reinforce_pp({token_rewards}), [B, T], 0.9)", uses, world, reinforce_pp)
    case(
        f"reinforce_pp({token_rewards}), [B, T], 0.9, biased: true)",
        uses,
        world,
        lambda **w: reinforce_pp(**w, correction=0),
    )

    def gae(s, old, ref, v, end):
        out = []
        for row, values, last in zip(rewards(s, old, ref), v, end):
            following, total, back = last, torch.zeros(()), []
            for x, value in zip(reversed(row), reversed(values)):
                total = x + 0.9 * following - value + 0.9 * 0.8 * total
                back.append(total.detach())
                following = value
            out.append(torch.stack(back[::-1]))
        return out

    critic = world | tokens(v=V) | {"end": (["B"], [0.0, 0.7, 0.0, -0.3])}
    case(f"gae({token_rewards}), v, 0.9, 0.8, end)", uses, critic, gae)
    done = {"s": (["B"], [1.0, 0.5, 2.0]), "done": (["B"], [1.0, 0.0, 1.0])}
    for text, f in [
        ("cut_off(s, done > 0)", lambda s, done: s.detach()),
        ("cut_off(s, done > 0, keep: 0, penalty: -1)", lambda s, done: torch.where(done > 0, s, -1.0).detach()),
        ("cut_off(s, done > 0, penalty: -1)", lambda s, done: torch.where(done > 0, s, s - 1).detach()),
        ("mean(finished_only(done > 0, B) * s)", lambda s, done: s[done > 0].mean().detach()),
    ]:
        case(text, ["std.advantage"], done, f)


def pairs():
    world = {
        "win": (["B"], WIN),
        "lose": (["B"], LOSE),
        "rw": (["B"], REF_WIN),
        "rl": (["B"], REF_LOSE),
    }
    by = ["win", "lose"]
    ratios = "win - rw, lose - rl"

    def on_ratios(f):
        return lambda win, lose, rw, rl: f(win - rw, lose - rl).mean()

    log_sigmoid = F.logsigmoid
    sigma = torch.sigmoid
    b = 0.3
    listed = {
        f"exo(win - rw - (lose - rl), {b}, 0.01)": lambda w, l: exo(b * (w - l), 0.01),
        f"nca({ratios}, {b})": lambda w, l: -log_sigmoid(b * w)
        - (log_sigmoid(-b * w) + log_sigmoid(-b * l)) / 2,
        f"sppo({ratios}, {b})": lambda w, l: (w - 0.5 / b) ** 2 + (l + 0.5 / b) ** 2,
        f"apo_zero({ratios}, {b})": lambda w, l: 1 - sigma(b * w) + sigma(b * l),
        f"apo_down({ratios}, {b})": lambda w, l: sigma(b * w) + 1 - sigma(b * (w - l)),
        f"robust(win - rw - (lose - rl), {b}, 0.2)": lambda w, l: (
            -0.8 * log_sigmoid(b * (w - l)) + 0.2 * log_sigmoid(-b * (w - l))
        )
        / 0.6,
        f"discopop(win - rw - (lose - rl), {b}, 0.5)": lambda w, l: discopop(b * (w - l), 0.5),
        f"dpo(alpha_divergence(win - rw) - alpha_divergence(lose - rl), {b})": lambda w, l: -log_sigmoid(
            b * ((torch.exp(-0.5 * w) - 1) / -0.5 - (torch.exp(-0.5 * l) - 1) / -0.5)
        ),
        f"bco({ratios}, {b}, bco_shift({ratios}, B, {b}))": lambda w, l: bco(b * w, b * l),
    }

    def exo(x, eps):
        policy = torch.stack([sigma(x), sigma(-x)])
        labels = torch.tensor([1 - eps, eps])[:, None]
        return (policy * (policy.log() - labels.log())).sum(0)

    def discopop(x, tau):
        blend = sigma(x / tau)
        return torch.log(1 + torch.exp(-x)) * (1 - blend) + torch.exp(-x) * blend

    def bco(w, l):
        shift = ((w.mean() + l.mean()) / 2).detach()
        return -log_sigmoid(w - shift) - log_sigmoid(-(l - shift))

    for program, f in listed.items():
        case(f"mean({program})", ["std.dpo"], world, on_ratios(f), by=by)

    def odds(x):
        return torch.log(x.exp() / (1 - x.exp()))

    means = {"win": (["B"], [-0.8, -1.4, -0.35]), "lose": (["B"], [-1.1, -1.2, -0.9])}
    with_prompt = means | {"all": (["B"], [2.1, 1.7, 0.9])}
    orpo = lambda w, l, nll: (nll - 0.2 * log_sigmoid(odds(w) - odds(l))).mean()
    case("mean(orpo(win, lose, 0.2))", ["std.preference"], means, lambda win, lose: orpo(win, lose, -win), by=by)
    case(
        "mean(orpo(win, lose, 0.2, nll: all))",
        ["std.preference"],
        with_prompt,
        lambda win, lose, all: orpo(win, lose, all),
        by=[*by, "all"],
    )
    simpo = lambda w, l: -log_sigmoid(2.5 * (w - l) - 0.4)
    case("mean(simpo(win, lose, 2.5, 0.4))", ["std.preference"], means, lambda win, lose: simpo(win, lose).mean(), by=by)
    case(
        "mean(simpo(win, lose, 2.5, 0.4, weight: 0.7))",
        ["std.preference"],
        means,
        lambda win, lose: (simpo(win, lose) - 0.7 * win).mean(),
        by=by,
    )
    case(
        "mean(cpo(win, lose, -win, 0.3, 0.5, smooth: 0.1))",
        ["std.preference"],
        means,
        lambda win, lose: (
            -0.9 * log_sigmoid(0.3 * (win - lose)) - 0.1 * log_sigmoid(-0.3 * (win - lose)) - 0.5 * win
        ).mean(),
        by=by,
    )
    case(
        "mean(dft(lp))",
        ["std.sft"],
        tokens(lp=LP),
        lambda lp: every([-l.exp().detach() * l for l in lp]),
        by=["lp"],
    )


def rates():
    """transformers' factors for a whole run, an iteration each."""
    listed = [
        ("constant_with_warmup(1, 3)", "constant_with_warmup", 3, {}),
        ("constant_with_warmup(1)", "constant_with_warmup", 0, {}),
        ("linear_with_warmup(1, 3)", "linear", 3, {}),
        ("linear_with_warmup(1)", "linear", 0, {}),
        ("cosine_with_warmup(1, 3)", "cosine", 3, {}),
        ("cosine_with_warmup(1)", "cosine", 0, {}),
        ("cosine_with_warmup(1, 2, floor: 0.1)", "cosine_with_min_lr", 2, {"min_lr_rate": 0.1}),
        ("inverse_sqrt(1, 4)", "inverse_sqrt", 4, {}),
        ("inverse_sqrt(1)", "inverse_sqrt", 0, {}),
        (
            "warmup_stable_decay(1, 3, 4, floor: 0.2)",
            "warmup_stable_decay",
            3,
            {"num_decay_steps": 4, "min_lr_ratio": 0.2},
        ),
        # Without a warm-up the two ways of counting agree.
        ("linear(1)", "linear", 0, {}),
        ("cosine(1)", "cosine", 0, {}),
    ]
    out = []
    for program, name, warmup, extra in listed:
        steps = 11
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([parameter], lr=1.0)
        scheduler = get_scheduler(name, optimizer, warmup, steps, scheduler_specific_kwargs=extra)
        values = []
        for _ in range(steps):
            values.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        out.append({"program": program, "values": values})
    return out


def main():
    policy()
    critic()
    advantages()
    pairs()
    provenance = f"PyTorch {torch.__version__} in f64 by the papers' formulas; transformers {transformers.__version__}."
    lines = ",\n".join(json.dumps(c) for c in cases)
    rate_lines = ",\n".join(json.dumps(r) for r in rates())
    OUT.write_text(
        f'{{"_provenance": {json.dumps(provenance)},\n"cases": [\n{lines}\n],\n"rates": [\n{rate_lines}\n]}}\n'
    )
    print(f"{len(cases)} cases in {OUT}")


if __name__ == "__main__":
    main()
