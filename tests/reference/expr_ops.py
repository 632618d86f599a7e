"""Values and gradients of the language's operations, computed row by row with PyTorch.

Writes interpreter/runtime/tests/fixtures/expr_ops.json. Each case has ragged inputs x, d (nested lists
over B, G, T) and dense r (over B, G), a result y, and the gradients of sum(w * y) where w counts up from
0.3 in steps of 0.17 over the elements of y in row order.
"""

import json
import pathlib
import random

import torch

torch.set_default_dtype(torch.float64)
OUT = pathlib.Path(__file__).parents[2] / "interpreter/runtime/tests/fixtures/expr_ops.json"
SHORT = [[3, 1, 4], [2, 0, 5]]
LONG = [[3, 2, 4], [2, 4, 5]]


class World:
    def __init__(self, lengths, seed):
        rng = random.Random(seed)
        draw = lambda: rng.uniform(-1.5, 1.5)
        self.x = [[[draw() for _ in range(n)] for n in row] for row in lengths]
        self.d = [[[draw() for _ in range(n)] for n in row] for row in lengths]
        self.r = [[draw() for _ in row] for row in lengths]

    def leaves(self):
        tensor = lambda rows: [[torch.tensor(v, requires_grad=True) for v in row] for row in rows]
        return tensor(self.x), tensor(self.d), tensor(self.r)


def rows(f, x, *more):
    """f on every row, as a [B][G] list."""
    return [[f(*cells) for cells in zip(*group)] for group in zip(x, *more)]


def flat(y):
    if isinstance(y, torch.Tensor):
        return [y.reshape(-1)]
    return [t for part in y for t in flat(part)]


def nested(y):
    return y.tolist() if isinstance(y, torch.Tensor) else [nested(part) for part in y]


def mean(t):
    return t.mean() if t.numel() else t.sum()


def peak(t, sign):
    return sign * (sign * t).amax() if t.numel() else t.sum()


def suffix(x, d):
    out, carry = [], torch.zeros(())
    for t in reversed(range(x.numel())):
        carry = x[t] + d[t] * carry
        out.append(carry)
    return torch.stack(out[::-1]) if out else x * 1


def prefix(x, d):
    out, carry = [], torch.zeros(())
    for t in range(x.numel()):
        carry = x[t] + d[t] * carry
        out.append(carry)
    return torch.stack(out) if out else x * 1


def shift(x, by, fill):
    n = x.numel()
    get = lambda t: x[t - by] if 0 <= t - by < n else fill
    return torch.stack([get(t) for t in range(n)]) if n else x * 1


def everything(x):
    return torch.cat([t for group in x for t in group])


def flat_groups(r):
    return torch.stack([torch.stack(group) for group in r])


def whiten(x, d, r):
    a = everything(x)
    return rows(lambda t: (t - a.mean()) / (a.std() + 1e-5), x)


def ppo(x, d, r):
    def loss(lp, old, adv):
        ratio = (lp - old.detach()).exp()
        return -torch.minimum(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    return torch.stack([mean(t) for t in flat_rows(rows(loss, x, d, r))]).mean()


def flat_rows(y):
    return [t for group in y for t in group]


def group_relative(x, d, r):
    g = flat_groups(r)
    return (g - g.mean(1, keepdim=True)) / (g.std(1, keepdim=True) + 1e-4)


def guarded(x, d, r):
    def one(t, s):
        return (1000 * t).exp() * 0 + t.exp() if s.item() > 0 else t * 2
    return rows(lambda t, s: one(t.clamp(-0.5, 0.5), s) if s.item() > 0 else t * 2, x, r)


CASES = {
    "mean_t": (SHORT, lambda x, d, r: rows(mean, x)),
    "sum_t": (SHORT, lambda x, d, r: rows(torch.sum, x)),
    "max_t": (SHORT, lambda x, d, r: rows(lambda t: peak(t, 1), x)),
    "min_t": (SHORT, lambda x, d, r: rows(lambda t: peak(t, -1), x)),
    "std_t": (LONG, lambda x, d, r: rows(torch.std, x)),
    "var_t_biased": (LONG, lambda x, d, r: rows(lambda t: t.var(correction=0), x)),
    "mean_gt": (SHORT, lambda x, d, r: [torch.cat(g).mean() for g in x]),
    "std_gt": (SHORT, lambda x, d, r: [torch.cat(g).std() for g in x]),
    "max_gt": (SHORT, lambda x, d, r: [torch.cat(g).amax() for g in x]),
    "mean_bgt": (SHORT, lambda x, d, r: everything(x).mean()),
    "mean_of_mean": (SHORT, lambda x, d, r: torch.stack([mean(t) for t in flat_rows(x)]).mean()),
    "sum_bt": (SHORT, lambda x, d, r: [sum(x[b][g].sum() for b in range(2)) for g in range(3)]),
    "std_g": (SHORT, lambda x, d, r: flat_groups(r).std(1)),
    "max_b": (SHORT, lambda x, d, r: flat_groups(r).amax(0)),
    "suffix_sum": (SHORT, lambda x, d, r: rows(suffix, x, d)),
    "prefix_sum": (SHORT, lambda x, d, r: rows(prefix, x, d)),
    "suffix_row_decay": (
        SHORT, lambda x, d, r: rows(lambda t, s: suffix(t, s.expand(t.shape)), x, r)),
    "shift_later": (SHORT, lambda x, d, r: rows(lambda t, s: shift(t, 1, s), x, r)),
    "shift_earlier": (SHORT, lambda x, d, r: rows(lambda t, s: shift(t, -2, s), x, r)),
    "first": (SHORT, lambda x, d, r: rows(lambda t: t[0] if t.numel() else t.sum(), x)),
    "last": (SHORT, lambda x, d, r: rows(lambda t: t[-1] if t.numel() else t.sum(), x)),
    "at_last": (
        SHORT,
        lambda x, d, r: rows(
            lambda t, s: torch.cat([t[1:] * 0, s.reshape(1)]) if t.numel() else t * 1, x, r),
    ),
    "product": (SHORT, lambda x, d, r: rows(lambda t, u, s: t * u + s, x, d, r)),
    "quotient": (SHORT, lambda x, d, r: rows(lambda t, u, s: t / (u * u + 1), x, d, r)),
    "clamp": (SHORT, lambda x, d, r: rows(lambda t: t.clamp(-0.5, 0.75), x)),
    "min": (SHORT, lambda x, d, r: rows(torch.minimum, x, d)),
    "max": (SHORT, lambda x, d, r: rows(lambda t, s: torch.maximum(t, s), x, r)),
    "min_equal": (SHORT, lambda x, d, r: rows(lambda t: torch.minimum(t, t * 1), x)),
    "pow": (SHORT, lambda x, d, r: rows(lambda t, u: t.exp() ** u, x, d)),
    "remainder": (SHORT, lambda x, d, r: rows(lambda t: torch.remainder(t, 0.7), x)),
    "exp": (SHORT, lambda x, d, r: rows(torch.exp, x)),
    "log": (SHORT, lambda x, d, r: rows(lambda t: torch.log(t * t + 0.1), x)),
    "log1p": (SHORT, lambda x, d, r: rows(lambda t: torch.log1p(t * t), x)),
    "expm1": (SHORT, lambda x, d, r: rows(torch.expm1, x)),
    "abs": (SHORT, lambda x, d, r: rows(torch.abs, x)),
    "sqrt": (SHORT, lambda x, d, r: rows(lambda t: torch.sqrt(t * t + 0.1), x)),
    "sigmoid": (SHORT, lambda x, d, r: rows(torch.sigmoid, x)),
    "log_sigmoid": (SHORT, lambda x, d, r: rows(torch.nn.functional.logsigmoid, x)),
    "softplus": (SHORT, lambda x, d, r: rows(torch.nn.functional.softplus, x)),
    "relu": (SHORT, lambda x, d, r: rows(torch.relu, x)),
    "tanh": (SHORT, lambda x, d, r: rows(torch.tanh, x)),
    "sign": (SHORT, lambda x, d, r: rows(lambda t: torch.sign(t) * t, x)),
    "round": (SHORT, lambda x, d, r: rows(lambda t: torch.round(t) * t, x)),
    "whiten": (SHORT, whiten),
    "group_relative": (SHORT, group_relative),
    "ppo": (SHORT, ppo),
    "if_overflow": (SHORT, guarded),
}


def main():
    cases = []
    for seed, (name, (lengths, f)) in enumerate(CASES.items()):
        world = World(lengths, seed)
        x, d, r = world.leaves()
        y = f(x, d, r)
        parts = torch.cat(flat(y))
        w = 0.3 + 0.17 * torch.arange(parts.numel())
        leaves = [t for group in (x, d, r) for row in group for t in row]
        grads = torch.autograd.grad((w * parts).sum(), leaves, allow_unused=True) \
            if parts.requires_grad else [None] * len(leaves)
        grads = [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, grads)]
        it = iter(grads)
        shape = lambda rows_: [[next(it).tolist() for _ in row] for row in rows_]
        cases.append({
            "name": name, "x": world.x, "d": world.d, "r": world.r, "y": nested(y),
            "gx": shape(x), "gd": shape(d), "gr": shape(r),
        })
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with OUT.open("w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
