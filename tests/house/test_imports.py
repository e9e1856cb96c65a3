"""Each library may be imported by few packages only. The layers themselves are contracts in pyproject.toml."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.house.source import Source, sources

ALLOWED = {
    "pydantic": ("taiwa.structured",),
    "pydantic_core": ("taiwa.structured",),
    "annotated_types": ("taiwa.structured",),
    "typing_extensions": ("taiwa.structured", "taiwa.sessions"),
    "jsonschema": ("taiwa.structured",),
    "tree_sitter": ("taiwa.structured",),
    "tree_sitter_typescript": ("taiwa.structured",),
    "json_repair": ("taiwa.structured",),
    "pint": ("taiwa.tools",),
    "starlette": ("taiwa.server",),
    "uvicorn": ("taiwa.server",),
    "mcp": ("taiwa.tools", "taiwa.operations.mcp_tools"),
    "anyio": ("taiwa.tools", "taiwa.operations.mcp_tools"),
    "httpx2": ("taiwa.models", "taiwa.operations.otel"),
    "httpcore2": ("taiwa.models.http_api",),
    "sqlite3": ("taiwa.sql",),
    "psycopg": ("taiwa.sql",),
    "psycopg_pool": ("taiwa.sql",),
    "numpy": ("taiwa.constraints", "taiwa.models", "taiwa.retrieval", "taiwa.safetensors_file"),
    "torch": ("taiwa.models",),
    "transformers": ("taiwa.models",),
    "huggingface_hub": ("taiwa.models",),
    "latex2mathml": ("taiwa.operations.markdown_html",),
    "mdit_py_plugins": ("taiwa.operations.markdown_html",),
    "pygments": ("taiwa.operations.markdown_html",),
    "jinja2": ("taiwa.models", "taiwa.server"),
    "xllamacpp": ("taiwa.models",),
    "llguidance": ("taiwa.constraints",),
    "lark": ("taiwa.constraints",),
    "click": ("taiwa.cli",),
    "rich": ("taiwa.cli",),
    "prompt_toolkit": ("taiwa.cli",),
    "matplotlib": ("taiwa.evals",),
    "ray": ("taiwa.evals",),
    "yaml": ("taiwa.yamlfile",),
    "tantivy": ("taiwa.retrieval",),
    "markdown_it": (
        "taiwa.retrieval",
        "taiwa.operations.export",
        "taiwa.cli.display",
        "taiwa.operations.markdown_html",
    ),
    "charset_normalizer": ("taiwa.retrieval",),
    "pypdfium2": ("taiwa.retrieval",),
    "mammoth": ("taiwa.retrieval",),
    "trafilatura": ("taiwa.retrieval",),
    "tokenizers": ("taiwa.retrieval",),
}
"""The packages that may import a library; one that is neither here nor in the standard library may not be imported."""


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def misplaced_imports(source: Source) -> Iterator[str]:
    """Yield imports of libraries outside the packages that may import them."""
    for line, module in source.imports():
        library = module.partition(".")[0]
        if library == "taiwa" or (library in sys.stdlib_module_names and library not in ALLOWED):
            continue
        packages = ALLOWED.get(library, ())
        if not any(within(source.module, allowed) for allowed in packages):
            yield f"{source.module}:{line} imports {module}, which only {' and '.join(packages) or 'no package'} may import"


def loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a statement adds to a fresh interpreter."""
    script = f"import json, sys; before = set(sys.modules); {statement}; print(json.dumps(sorted(set(sys.modules) - before)))"
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    return {name.partition(".")[0] for name in json.loads(shown)}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("taiwa.kernel.messages", "import pydantic"),
        ("taiwa.flows.turn", "from httpx2 import Client"),
        ("taiwa.structureds", "import pydantic"),
        ("taiwa.models.http_api.client", "def f():\n    import sqlite3"),
        ("taiwa.apps.catalog", "import requests"),
        ("taiwa.store.open", "import importlib\nimportlib.import_module('rich.table')"),
    ],
)
def test_an_import_outside_the_allowed_packages_is_found(module: str, text: str) -> None:
    assert list(misplaced_imports(Source(module, text)))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("taiwa.structured", "import pydantic"),
        ("taiwa.structured.output_type", "from pydantic_core import ValidationError"),
        ("taiwa.sql.sqlite", "import sqlite3"),
        ("taiwa.kernel.runtime", "import json\nfrom taiwa.kernel import values"),
    ],
)
def test_an_import_in_an_allowed_package_is_accepted(module: str, text: str) -> None:
    assert not list(misplaced_imports(Source(module, text)))


def test_every_library_is_imported_only_where_it_is_allowed() -> None:
    found = [complaint for source in sources() for complaint in misplaced_imports(source)]

    assert not found, "\n".join(found)


def test_the_kernel_loads_the_standard_library_only() -> None:
    loaded = loaded_by("import taiwa.kernel.runtime")

    assert loaded - sys.stdlib_module_names == {"taiwa"}


def test_importing_taiwa_loads_no_terminal_and_no_http_client() -> None:
    loaded = loaded_by("import taiwa")

    assert not loaded & {"httpx2", "httpcore2", "click", "rich", "prompt_toolkit"}
