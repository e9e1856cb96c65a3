"""JSON Schema documents: references and drafts, the keyword table and its traversal, and what schemas have in common."""

from taiwa.json_schema.document import Document, SchemaLocation, join_pointer, resolve_pointer
from taiwa.json_schema.keywords import KEYWORDS, Schema, map_subschemas, subschemas

__all__ = [
    "KEYWORDS",
    "Document",
    "Schema",
    "SchemaLocation",
    "join_pointer",
    "map_subschemas",
    "resolve_pointer",
    "subschemas",
]
