"""Rendering of chat templates in a child process; see `taiwa.isolation`. A template is a program, and the one in a file is not trusted."""

import json
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from taiwa.isolation import Handler
    from taiwa.kernel.serialization import Json


def start(given: "dict[str, Json]") -> "Handler":
    """Return the handler, which renders `template` with the `names` of special tokens; a question has the messages.

    The functions are those that transformers gives to templates.
    """
    jinja2: Any = import_module("jinja2")
    sandbox: Any = import_module("jinja2.sandbox")
    nodes: Any = import_module("jinja2.nodes")
    extension: Any = import_module("jinja2.ext").Extension

    class Generation(extension):  # type: ignore[misc]
        """Writes the inside of `{% generation %}`, which marks texts of the model for training."""

        tags = frozenset(("generation",))

        def parse(self, parser: Any) -> Any:  # noqa: ANN401  (Jinja2's)
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)

    def refuse(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": _now}

    def render(question: "dict[str, Json]", characters: int) -> "dict[str, Json]":
        try:
            template = environment.from_string(given["template"])
            text = template.render(
                messages=question["messages"],
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **_items(given["names"]),
            )
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            return {"refused": f"{error}"[:characters]}
        except (MemoryError, RecursionError) as error:
            return {"refused": type(error).__name__}
        return {"text": text} if len(text) <= characters else {"refused": f"it writes {len(text):,} characters"}

    return render


def _items(names: "Json") -> "dict[str, Json]":
    return names if isinstance(names, dict) else {}


def _to_json(value: object, *, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:  # noqa: ANN401
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


_now: Callable[[str], str] = lambda form: datetime.now().strftime(form)  # noqa: DTZ005, E731  (templates want the user's date)
