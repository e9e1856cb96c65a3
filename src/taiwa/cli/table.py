"""Every command: where it is written and what it does, in one line. Help is printed from here without importing any."""

from dataclasses import dataclass

__all__ = ["COMMANDS", "SECTIONS", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One command."""

    module: str
    help: str
    attribute: str


def _rows(module: str, **helps: str) -> dict[str, Row]:
    return {name.rstrip("_"): Row(module, text, name) for name, text in helps.items()}


COMMANDS: dict[str, Row] = {
    **_rows("chat", chat="talk with an app, line by line"),
    **_rows("say", say="say one thing and print the answer"),
    **_rows("batch", batch="say every line of a file, in one conversation or each on its own"),
    **_rows(
        "again",
        retry="ask the last thing again",
        edit="go back to a turn and say something else",
        resume="finish a turn that was cut off, without paying again",
        replay="do a conversation again from its recorded calls and check every hash",
        rerun="do a conversation again with another model or app, on a new branch",
    ),
    **_rows(
        "log", log="list conversations, or the turns of one", show="show a turn whole", search="find words in all turns"
    ),
    **_rows(
        "moves",
        undo="go back: message, state and window together",
        redo="go forward again",
        fork="give a place in a conversation a second name",
        switch="make a conversation the current one",
    ),
    **_rows(
        "look",
        diff="compare two places: state and text",
        why="say which turn and call set a value",
        state="show, set and trace the state",
    ),
    **_rows(
        "exchange", export="write a conversation as JSONL, Markdown or HTML", import_="read an exported conversation"
    ),
    **_rows("cost", cost="what was spent, by app, model, day or session"),
    **_rows(
        "upkeep",
        fsck="check every hash in the store",
        gc="remove what no conversation reaches",
        forget="delete a conversation for good",
    ),
    **_rows("apps", apps="list, make, check and render apps"),
    **_rows("models", models="the models and servers that are known", probe="find out what a server really enforces"),
    **_rows("extract", extract="a value of a type from a text, or from every line of a file"),
    **_rows("read", read="the text of an answer as a type, mended; no model is asked"),
    **_rows("render", render="a type as a model sees it, and how many tokens it is"),
    **_rows("explain", explain="what a constraint lets through, token by token"),
    **_rows("generate", generate="an answer of a model, held to a type, a pattern, a grammar or words"),
    **_rows("solve", solve="a question reasoned out step by step, with tools for what can be worked out"),
    **_rows("tools", tools="list and show the built-in tools, and call one by hand"),
    **_rows("mcp", mcp="serve the tools to programs that speak MCP"),
    **_rows("index", index="read a folder of documents, so that they can be found"),
    **_rows("indexfind", find="the passages of documents that fit a question best"),
    **_rows("ask", ask="a question to documents, answered with sources or asked back"),
    **_rows("person", person="who asks: facts, thresholds, and what their feedback has taught"),
    **_rows(
        "eval",
        eval_="measure tools, models and retrieval on questions with known answers",
        laws="check the laws of conversations and reducers",
    ),
    **_rows("config", config="show and change settings", keys="keep the keys of providers"),
    **_rows("demo", demo="watch the small model that comes along solve, take orders, look up, and be held"),
}

SECTIONS: dict[str, tuple[str, ...]] = {
    "Conversations": ("chat", "say", "batch", "resume"),
    "Going back and forth": ("undo", "redo", "retry", "edit", "fork", "switch", "rerun", "replay"),
    "Looking": ("log", "show", "diff", "why", "state", "search", "cost"),
    "The store": ("export", "import", "fsck", "gc", "forget", "laws"),
    "Types": ("extract", "read", "render"),
    "Constraints": ("explain", "generate"),
    "Tools": ("solve", "tools", "mcp", "eval"),
    "Documents": ("ask", "index", "find", "person"),
    "Set-up": ("apps", "models", "probe", "keys", "config", "demo"),
}
