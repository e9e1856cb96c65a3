"""LangGraph with SqliteSaver: turns from standard input, a graph with one node, every checkpoint kept.

Prints MB on disk, and milliseconds per turn for the first and the last twenty turns.
"""

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph


def joined(held: list[BaseMessage], writes: Sequence[list[BaseMessage]]) -> list[BaseMessage]:
    """A reducer whose result does not depend on how its writes are batched."""
    return [*held, *(message for write in writes for message in write)]


class DeltaState(TypedDict):
    """Messages of which a checkpoint stores only the new ones."""

    messages: Annotated[list[BaseMessage], DeltaChannel(joined)]


def talk(kind: str, turns: list[tuple[str, str]], sql: sqlite3.Connection) -> list[float]:
    """Run the turns and return the seconds of each."""
    answers = iter(answer for _, answer in turns)

    def answer(_: Any) -> dict[str, list[BaseMessage]]:
        return {"messages": [AIMessage(next(answers))]}

    graph: Any = StateGraph(DeltaState if kind == "delta" else MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    made = graph.compile(checkpointer=SqliteSaver(sql))
    more = {"durability": "exit"} if kind == "exit" else {}
    times: list[float] = []
    for user, _ in turns:
        started = time.perf_counter()
        made.invoke({"messages": [HumanMessage(user)]}, {"configurable": {"thread_id": "1"}}, **more)
        times.append(time.perf_counter() - started)
    return times


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoints.db"
        sql = sqlite3.connect(path, check_same_thread=False)
        times = talk(sys.argv[1], json.load(sys.stdin), sql)
        sql.close()
        size = sum(file.stat().st_size for file in path.parent.iterdir()) / 1e6
    print(json.dumps([size, *(sum(part) / len(part) * 1e3 for part in (times[:20], times[-20:]))]))


main()
