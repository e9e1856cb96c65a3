"""One retriever, alone in a process: the cost of building it, querying it, and adding and deleting one passage.

    python -m benches.peers.retrievers NAME CORPUS FOLDER

Reads {"passages": [[id, title, text] …], "questions": [text …], "asked": n} from CORPUS and prints its measurements as JSON. All
but Haystack's get the terms of our analyzer, so that they differ only in retrieval.
"""

import json
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from taiwa.retrieval.analyzer import Analyzer

K = 10
ANALYZER = Analyzer()
Passages = list[tuple[str, str, str]]


class Retriever(Protocol):
    """The interface that is measured."""

    def find(self, question: str) -> list[str]: ...


class Terms:
    """Return the terms of every passage, title included; computing them is part of building."""

    def __init__(self, passages: Passages) -> None:
        self.passages = passages
        self.terms = [ANALYZER.terms(f"{title}\n{text}") for _, title, text in passages]


class Taiwa:
    def __init__(self, passages: Passages, folder: Path) -> None:
        from taiwa.retrieval import Library
        from taiwa.retrieval.types import Batch

        self.index = Library.open(folder / "library.db").create_empty("bench")
        for start in range(0, len(passages), 1_000):
            self.index.backend.commit(Batch(tuple(map(self._document, passages[start : start + 1_000]))))
        self.index.backend.update_derived()

    @staticmethod
    def _document(passage: tuple[str, str, str]) -> Any:
        from taiwa.retrieval.types import Chunk, Document, FileFacts

        return Document(passage[0], passage[1], FileFacts("", 0, 0, ""), (Chunk(passage[2], 0),))

    def find(self, question: str) -> list[str]:
        return [passage.source for passage in self.index.find(question, K)]

    def add(self, passage: tuple[str, str, str]) -> None:
        from taiwa.retrieval.types import Batch

        self.index.backend.commit(Batch((self._document(passage),)))

    def delete(self, name: str) -> None:
        from taiwa.retrieval.types import Batch

        self.index.backend.commit(Batch(gone=(name,)))


class Tantivy:
    """Typical use of tantivy alone: it stores the text and returns it with each hit."""

    def __init__(self, passages: Passages, folder: Path) -> None:
        import tantivy

        building = tantivy.SchemaBuilder()
        building.add_text_field("id", stored=True, tokenizer_name="raw")
        building.add_text_field("text", stored=True, tokenizer_name="raw", index_option="basic")
        building.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
        self.schema = building.build()
        self.index = tantivy.Index(self.schema, path=str(folder))
        self._write(passages)

    def _write(self, passages: Passages) -> None:
        import tantivy

        writer = self.index.writer(64_000_000, 1)
        for name, title, text in passages:
            terms = " ".join(ANALYZER.terms(f"{title}\n{text}"))
            writer.add_document(tantivy.Document(id=name, text=text[:2_000], terms=terms))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()

    def find(self, question: str) -> list[str]:
        import tantivy

        should = tantivy.Occur.Should
        terms = dict.fromkeys(ANALYZER.asked(question))
        parts = [(should, tantivy.Query.term_query(self.schema, "terms", term, "freq")) for term in terms]
        searcher = self.index.searcher()
        hits = searcher.search(tantivy.Query.boolean_query(parts), K, count=False).hits
        found = [searcher.doc(address) for _, address in hits]
        return [str(document["id"][0]) for document in found if document["text"]]

    def add(self, passage: tuple[str, str, str]) -> None:
        self._write([passage])

    def delete(self, name: str) -> None:
        writer = self.index.writer(64_000_000, 1)
        writer.delete_documents_by_term("id", name)
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()


class Bm25s:
    def __init__(self, passages: Passages, folder: Path) -> None:
        del folder
        import bm25s

        held = Terms(passages)
        self.names = [name for name, _, _ in passages]
        self.texts = [text for _, _, text in passages]
        self.model = bm25s.BM25(k1=1.2, b=0.75)
        self.model.index(held.terms, show_progress=False)

    def find(self, question: str) -> list[str]:
        terms = list(dict.fromkeys(ANALYZER.asked(question)))
        found, scores = self.model.retrieve([terms], k=K, show_progress=False, leave_progress=False)
        pairs = zip(found[0], scores[0], strict=True)
        return [self.names[int(at)] for at, score in pairs if score > 0 and self.texts[int(at)]]


class RankBm25:
    def __init__(self, passages: Passages, folder: Path) -> None:
        del folder
        from rank_bm25 import BM25Okapi

        self.names = [name for name, _, _ in passages]
        self.model = BM25Okapi(Terms(passages).terms, k1=1.2, b=0.75)

    def find(self, question: str) -> list[str]:
        return list(self.model.get_top_n(list(dict.fromkeys(ANALYZER.asked(question))), self.names, n=K))


class Fts5:
    def __init__(self, passages: Passages, folder: Path) -> None:
        self.sql = sqlite3.connect(folder / "fts.db", isolation_level=None)
        self.sql.execute("PRAGMA journal_mode = WAL")
        self.sql.execute("CREATE TABLE passage(seq INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT)")
        self.sql.execute("CREATE VIRTUAL TABLE words USING fts5(terms, tokenize = 'ascii')")
        self.sql.execute("BEGIN")
        for passage in passages:
            self._put(passage)
        self.sql.execute("COMMIT")

    def _put(self, passage: tuple[str, str, str]) -> None:
        name, title, text = passage
        row = self.sql.execute("INSERT INTO passage(id, text) VALUES(?, ?)", (name, text)).lastrowid
        terms = " ".join(ANALYZER.terms(f"{title}\n{text}"))
        self.sql.execute("INSERT INTO words(rowid, terms) VALUES(?, ?)", (row, terms))

    def find(self, question: str) -> list[str]:
        terms = " OR ".join(f'"{term}"' for term in dict.fromkeys(ANALYZER.asked(question)))
        select = (
            "SELECT id, text FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?) AS found"
            " JOIN passage ON passage.seq = found.rowid"
        )
        return [name for name, _ in self.sql.execute(select, (terms, K))] if terms else []

    def add(self, passage: tuple[str, str, str]) -> None:
        self.sql.execute("BEGIN")
        self._put(passage)
        self.sql.execute("COMMIT")

    def delete(self, name: str) -> None:
        self.sql.execute("BEGIN")
        self.sql.execute("DELETE FROM words WHERE rowid = (SELECT seq FROM passage WHERE id = ?)", (name,))
        self.sql.execute("DELETE FROM passage WHERE id = ?", (name,))
        self.sql.execute("COMMIT")


class Haystack:
    """Set up as its documentation shows: it tokenises the texts itself."""

    def __init__(self, passages: Passages, folder: Path) -> None:
        del folder
        from haystack import Document
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self.store = InMemoryDocumentStore()
        self.store.write_documents([Document(id=name, content=f"{title}\n{text}") for name, title, text in passages])
        self.retriever = InMemoryBM25Retriever(document_store=self.store, top_k=K)

    def find(self, question: str) -> list[str]:
        return [document.id for document in self.retriever.run(query=question)["documents"]]

    def add(self, passage: tuple[str, str, str]) -> None:
        from haystack import Document

        self.store.write_documents([Document(id=passage[0], content=f"{passage[1]}\n{passage[2]}")])

    def delete(self, name: str) -> None:
        self.store.delete_documents([name])


NAMES: dict[str, Callable[[Passages, Path], Any]] = {
    "taiwa": Taiwa, "tantivy": Tantivy, "bm25s": Bm25s, "fts5": Fts5, "rank_bm25": RankBm25, "haystack": Haystack,
}  # fmt: skip


def resident() -> int:
    return int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[0]) * 1024


def milliseconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e3


def once(one: Any, number: int) -> dict[str, float]:
    """Add one passage and check that it is found, delete it and check that it is gone."""
    name, word = f"added{number}", f"zyxw{number}vut"
    added = milliseconds(lambda: (one.add((name, "", f"a passage about {word}")), one.find(word)))
    assert one.find(word) == [name]
    deleted = milliseconds(lambda: (one.delete(name), one.find(word)))
    assert name not in one.find(word)
    return {"add": added, "delete": deleted}


def main(name: str, corpus: str, folder: str) -> None:
    given = json.loads(Path(corpus).read_text(encoding="utf-8"))
    passages: Passages = [tuple(passage) for passage in given["passages"]]
    questions: list[str] = given["questions"]
    ANALYZER.terms("warm words")
    before, start = resident(), time.process_time()
    one = NAMES[name](passages, Path(folder))
    build = time.process_time() - start
    asked = questions[: given["asked"]]
    for question in asked[:5]:
        one.find(question)
    taken = [milliseconds(lambda question=question: one.find(question)) for question in asked]
    changes = [once(one, number) for number in range(5)] if hasattr(one, "add") and given["change"] else []
    found = [one.find(question) for question in questions] if given["quality"] else []
    megabytes = (resident() - before) / 1e6
    print(json.dumps({"build": build, "taken": taken, "megabytes": megabytes, "changes": changes, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:4])
