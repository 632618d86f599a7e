"""Runs one function of the user's file for the interpreter: JSON lines in, JSON lines out.

Arguments: the file, the function's name, the declared result (float, int or bool).
"""

import importlib.util
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


def number(x, kind):
    """The result as JSON can hold it, or None where it is not what was declared."""
    if not isinstance(x, (bool, int, float, str, bytes)) and hasattr(x, "item"):
        x = x.item()  # a scalar of numpy or torch
    if kind == "bool":
        return x if isinstance(x, bool) else None
    if kind == "int":
        return int(x) if isinstance(x, int) else None
    if isinstance(x, (int, float)) and math.isfinite(float(x)):
        return float(x)
    return None


def answer(function, args, kind, path):
    try:
        x = function(*args)
        value = number(x, kind)
        if value is None:
            shown = repr(x)
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            return {"error": {"line": None, "what": f"returned {shown}, not {kind}", "trace": ""}}
        return {"value": value}
    except BaseException as error:  # sys.exit() in a reward must not end the worker
        return {"error": failure(error, path)}


def main():
    path, name, kind = sys.argv[1:4]
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
    reply({"ready": True})
    for line in calls:
        reply(answer(function, json.loads(line), kind, path))


main()
