"""Runs one function of the user's file for the interpreter: JSON lines in, JSON lines out.

Arguments: the file, the function's name, the declared result (float, int or bool), and the names of the
declared arguments.

Three kinds of functions are told apart by their signatures:

* `fn(prompts, completions, **kwargs)`, as TRL calls them: once for a batch, with a list for every argument;
* `compute_score(data_source, solution_str, ground_truth, extra_info=None)`, as verl calls them: once a
  response, with arguments by their names;
* any other: once a response, with the arguments in the order of the declaration.
"""

import importlib.util
import inspect
import json
import math
import os
import sys
import threading
import time
import traceback


def watch(parent):
    """Ends this process when the interpreter is gone, even while the user's code runs."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def failure(error, path):
    tb = error.__traceback__
    # The first frames are this driver's and the import system's.
    while tb is not None and tb.tb_frame.f_code.co_filename != path:
        tb = tb.tb_next
    line = None
    for frame in traceback.extract_tb(tb):
        if frame.filename == path:
            line = frame.lineno
    if isinstance(error, SyntaxError) and error.filename == path:
        line = error.lineno
    said = str(error.msg if isinstance(error, SyntaxError) else error)
    name = type(error).__name__
    return {
        "line": line,
        "what": f"{name}: {said}" if said else name,
        "trace": "".join(traceback.format_exception(type(error), error, tb)),
    }


# What a declared argument may be called beside the name that the function gives it.
ALIASES = {
    "completions": ("completion", "response", "responses"),
    "prompts": ("prompt", "question"),
    "solution_str": ("solution", "response", "completion"),
    "ground_truth": ("answer", "gold", "target", "label"),
}


def signature(function):
    """The names of a function's arguments, those without a default, and whether it takes any others."""
    try:
        params = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [], [], False
    named = [p for p in params if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = [p.name for p in named if p.default is p.empty]
    return [p.name for p in named], needed, any(p.kind == p.VAR_KEYWORD for p in params)


def convention(function, declared):
    """How a function is called: its style, and the name that each declared argument goes by, if any.

    Raises LookupError with what the function takes where the declaration lacks it.
    """
    names, needed, open_ended = signature(function)
    if "completions" in names:
        style = "batch"
    elif "solution_str" in names and "ground_truth" in names:
        style = "each"
    else:
        return "each", None
    keywords = list(declared)
    for name in names:
        if name not in keywords:
            alias = next((a for a in ALIASES.get(name, ()) if a in keywords), None)
            if alias is not None:
                keywords[keywords.index(alias)] = name
    lacking = [name for name in needed if name not in keywords]
    if lacking:
        raise LookupError(f"`{lacking[0]}`, which the reward does not declare")
    if not open_ended:
        keywords = [name if name in names else None for name in keywords]
    return style, keywords


def number(x, kind):
    """The result as JSON can hold it, or None where it is not what was declared."""
    if isinstance(x, dict) and "score" in x:
        x = x["score"]
    if not isinstance(x, (bool, int, float, str, bytes)) and hasattr(x, "item"):
        x = x.item()  # a scalar of numpy or torch
    if kind == "bool":
        return x if isinstance(x, bool) else None
    if kind == "int":
        return int(x) if isinstance(x, int) else None
    if isinstance(x, (int, float)) and math.isfinite(float(x)):
        return float(x)
    return None


def answer(function, args, kind, path, keywords):
    try:
        if keywords is None:
            x = function(*args)
        else:
            x = function(**{name: arg for name, arg in zip(keywords, args) if name is not None})
        value = number(x, kind)
        if value is None:
            return {"error": {"line": None, "what": odd(x, kind), "trace": ""}}
        return {"value": value}
    except BaseException as error:  # sys.exit() in a reward must not end the worker
        return {"error": failure(error, path)}


def answers(function, calls, kind, path, keywords):
    try:
        columns = [list(column) for column in zip(*calls)]
        found = function(**{n: c for n, c in zip(keywords, columns) if n is not None})
        if not isinstance(found, (list, tuple)) and hasattr(found, "tolist"):
            found = found.tolist()  # an array of numpy or torch
        if not isinstance(found, (list, tuple)):
            return {"error": {"line": None, "what": odd(found, "a list"), "trace": ""}}
        return {"values": [number(x, kind) for x in found]}
    except BaseException as error:
        return {"error": failure(error, path)}


def odd(x, kind):
    shown = repr(x)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return f"returned {shown}, not {kind}"


def main():
    path, name, kind = sys.argv[1:4]
    declared = sys.argv[4:]
    # What the user's code prints goes to the log, and it reads nothing of ours.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    calls = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = sys.stderr
    sys.argv = [path]
    sys.path[0] = os.path.dirname(path)

    def reply(message):
        replies.write(json.dumps(message, allow_nan=False) + "\n")
        replies.flush()

    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    module_name = os.path.splitext(os.path.basename(path))[0]
    try:
        spec = importlib.util.spec_from_file_location(module_name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    except BaseException as error:
        reply({"error": failure(error, path)})
        return
    function = getattr(module, name, None)
    if not callable(function):
        names = [n for n, f in vars(module).items() if callable(f) and not n.startswith("_")]
        reply({"missing": names})
        return
    try:
        style, keywords = convention(function, declared)
    except LookupError as error:
        reply({"wants": error.args[0]})
        return
    reply({"ready": style})
    for line in calls:
        run = answers if style == "batch" else answer
        reply(run(function, json.loads(line), kind, path, keywords))


main()
