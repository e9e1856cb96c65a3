import pytest

from taiwa.apps.catalog import convert_param, convert_params, load_text
from taiwa.conversation.app import Param
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json


@pytest.mark.parametrize(
    ("kind", "typed", "meant"),
    [
        ("str", "3", "3"),
        ("str", "", ""),
        ("str", "a: [b", "a: [b"),
        ("str | int", "3", "3"),
        ("int | null", "3", 3),
        ("int | null", "null", None),
        ("int(1..5)", "5", 5),
        ("float", "0.5", 0.5),
        ("bool", "true", True),
        ('"plain" | "kind"', "kind", "kind"),
        ("list[str]", "[en, ja]", ["en", "ja"]),
        ("list[str]", '["en, gb"]', ["en, gb"]),
        ("{a: int, b?: str}", "{a: 1}", {"a": 1}),
    ],
)
def test_a_value_is_read_as_the_type_of_its_parameter(kind: str, typed: str, meant: Json) -> None:
    given = convert_param(Param("n", kind), typed)

    assert given == meant
    assert type(given) is type(meant)


@pytest.mark.parametrize(
    ("kind", "typed", "message"),
    [
        ("int(1..5)", "6", "the parameter 'n' has the type int(1..5), and 6 does not fit: "),
        ("int", "three", "the parameter 'n' has the type int, and \"three\" does not fit: "),
        ("bool", "yes", "the parameter 'n' has the type bool, and \"yes\" does not fit: "),
        ("list[str]", "en", "the parameter 'n' has the type list[str], and \"en\" does not fit: "),
        ("list[str]", "[en", "the parameter 'n' has the type list[str], and \"[en\" does not fit: "),
        ("int", "", "the parameter 'n' has the type int, and \"\" does not fit: "),
        ("int", "[" * 5000, "the parameter 'n' has the type int, and \"[[[["),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_line(kind: str, typed: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        convert_param(Param("n", kind), typed)

    assert caught.value.message.startswith(message)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 250


def test_parameters_are_read_by_name_and_an_unknown_name_gets_a_suggestion() -> None:
    app = load_text("---\ntaiwa: 1\nparams: { lang: str, most: int }\n---\n{{lang}} {{most}}\n", "a.md", "a")

    assert convert_params(app, {"most": "3"}) == {"most": 3}
    with pytest.raises(InputError, match=r"^the app 'a' has no parameter 'mots'; did you mean 'most'\?$"):
        convert_params(app, {"mots": "3"})
