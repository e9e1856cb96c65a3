import stat
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ConfigError
from taiwa.models.providers import find_prices
from taiwa.settings import NoModelError, Settings, check_own, config_path, load, remove_value, set_value, show
from taiwa.sql import PostgresUrl
from taiwa.yamlfile import Keys, read_settings, remove_setting, set_setting

HOME = {"HOME": "/home/somebody"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "taiwa" / "config.yaml"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_without_any_setting_the_defaults_hold(path: Path) -> None:
    settings = load({}, HOME, path)

    assert settings == Settings(store=Path("/home/somebody/.local/share/taiwa/taiwa.db"), path=path)
    assert {row.origin for row in show(settings)} == {"default"}


def test_an_argument_wins_over_a_variable_over_the_file_over_the_default(path: Path) -> None:
    write(path, "model: from-file\ntimeout: 5\nattempts: 2\n")

    variables = {"TAIWA_TIMEOUT": "7", "TAIWA_MODEL": "from-variable"}
    settings = load({"model": "from-argument", "timeout": None}, HOME | variables, path)

    assert (settings.model, settings.calls.timeout, settings.calls.attempts) == ("from-argument", 7.0, 2)
    assert settings.origins == {"model": "argument", "timeout": "TAIWA_TIMEOUT", "attempts": f"{path}:3"}


def test_mappings_of_several_places_are_joined_key_by_key(path: Path) -> None:
    write(path, "base_urls: {openai: http://file/v1, ollama: http://file:1}\n")

    settings = load(
        {"capabilities": {"m": {"stop": False}}}, HOME | {"TAIWA_BASE_URLS": "{openai: http://variable/v1/}"}, path
    )

    assert settings.models.base_urls == {"openai": "http://variable/v1", "ollama": "http://file:1"}
    assert settings.models.capabilities == {"m": {"stop": False}}


def test_prices_and_limits_are_exact(path: Path) -> None:
    write(path, "max_cost: 0.123456789\nprices:\n  gpt-4.1: {input: 0.1, currency: EUR}\n")

    settings = load({}, HOME, path)

    assert settings.limits.cost == 123_456_789
    assert settings.models.prices == {"gpt-4.1": {"input": Decimal("0.1"), "currency": "EUR"}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# mine\nmodle: x\n", ":2: unknown key 'modle'; did you mean 'model'?"),
        (
            "capabilities:\n  m:\n    stopp: true\n",
            ":3: unknown key 'stopp' at the end of capabilities.m.stopp; did you mean 'stop'?",
        ),
        ("zzz: 1\n", ":1: unknown key 'zzz'; the keys are model, store"),
        ("model: a\nmodel: b\n", ":2: 'model' is set twice"),
        ("timeout: soon\n", ":1: timeout must be a number"),
        ("timeout: 0\n", ":1: timeout must be seconds, more than zero"),
        ("attempts: 0\n", ":1: attempts must be a whole number"),
        ("max_cost: 1e-12\n", ":1: max_cost has more than nine decimal places"),
        ("max_cost: 1e999999\n", ":1: max_cost must be a number"),
        ("model: [a]\n", ":1: a setting cannot be a list"),
        ("model: {a: b}\n", ":1: model is one value"),
        ("base_urls: http://x\n", ":1: base_urls is a mapping"),
        ("base_urls: {x: 'ftp://y'}\n", ":1: base_urls.x must be an address"),
        ("base_urls: {x: 'http://[::1'}\n", ":1: base_urls.x must be an address"),
        ("prices: {a: {b: {c: d}}}\n", ":1: 'prices.a.b' takes a value here"),
        ("just words\n", ":1: settings are written `key: value`"),
        ("\nmodel: 'open\n", ":3: not YAML"),
        ("a: b: c\n", ":1: not YAML"),
        ("[" * 5000, ":1: nested deeper than 20"),
        ("# x\n" * 100_000, "characters are too many"),
    ],
)
def test_an_error_in_the_file_has_its_line_and_a_hint(path: Path, text: str, complaint: str) -> None:
    write(path, text)

    with pytest.raises(ConfigError) as caught:
        load({}, HOME, path)

    assert str(caught.value).startswith(f"{path}{complaint}" if complaint.startswith(":") else str(path))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf8_is_named_with_its_line(path: Path) -> None:
    write(path, "")
    path.write_bytes(b"model: a\nstore: \xff\n")

    with pytest.raises(ConfigError, match=":2: not UTF-8"):
        load({}, HOME, path)


def test_yaml_that_multiplies_itself_is_read_in_no_time(path: Path) -> None:
    bomb = "a: &a {x: 1}\n" + "".join(f"b{n}: &b{n} {{p: *b{n - 1}, q: *b{n - 1}}}\n" for n in range(1, 30))
    write(path, bomb.replace("*b0", "*a"))

    with pytest.raises(ConfigError):
        load({}, HOME, path)


def test_an_anchor_that_holds_itself_is_refused(path: Path) -> None:
    write(path, "prices: &p\n  a: *p\n")

    with pytest.raises(ConfigError):
        load({}, HOME, path)


def test_a_password_in_an_address_is_refused_and_not_repeated(path: Path) -> None:
    write(path, "base_urls: {x: 'https://me:canary-key@host/v1'}\n")

    with pytest.raises(ConfigError, match="taiwa keys set") as caught:
        load({}, HOME, path)

    assert "canary" not in str(caught.value)


def test_a_misspelt_variable_is_an_error_and_a_strange_one_is_none(path: Path) -> None:
    assert load({}, HOME | {"TAIWA_UNRELATED_TO_US": "1", "TAIWA_MODEL": ""}, path).model is None

    with pytest.raises(ConfigError, match="unknown variable TAIWA_MODLE; did you mean TAIWA_MODEL"):
        load({}, HOME | {"TAIWA_MODLE": "x"}, path)


def test_an_unknown_argument_is_an_error(path: Path) -> None:
    with pytest.raises(ConfigError, match="argument: unknown key 'modell'; did you mean 'model'"):
        load({"modell": "x"}, HOME, path)


def test_the_config_file_lies_where_the_standard_says() -> None:
    assert config_path(HOME) == Path("/home/somebody/.config/taiwa/config.yaml")
    assert config_path(HOME | {"XDG_CONFIG_HOME": "/etc/x"}) == Path("/etc/x/taiwa/config.yaml")
    assert config_path(HOME | {"XDG_CONFIG_HOME": "relative"}) == Path("/home/somebody/.config/taiwa/config.yaml")
    assert config_path(HOME | {"TAIWA_CONFIG": "/my/own.yaml"}) == Path("/my/own.yaml")
    assert load({}, HOME | {"XDG_DATA_HOME": "/d"}, Path("/none")).store == Path("/d/taiwa/taiwa.db")


def test_without_a_model_none_is_chosen(path: Path) -> None:
    with pytest.raises(NoModelError, match="no model is set; use -m NAME or TAIWA_MODEL=NAME, or fetch a small one"):
        load({}, HOME, path).chosen_model()
    assert load({"model": "openai:gpt-5"}, HOME, path).chosen_model() == "openai:gpt-5"


def test_setting_a_value_keeps_comments_order_and_everything_else(path: Path) -> None:
    write(path, "# mine\nmodel: a  # the best\nprices:\n  # dear\n  m:\n    input: 1 # dollars\n\n# the end\n")

    set_value(path, "prices.m.output", "2.50")
    set_value(path, "model", "http://127.0.0.1:8080/v1#b")
    set_value(path, "capabilities.openai:gpt-4.1.stop", "false")

    assert path.read_text() == (
        "# mine\nmodel: http://127.0.0.1:8080/v1#b  # the best\nprices:\n  # dear\n  m:\n    input: 1 # dollars\n"
        "    output: 2.50\ncapabilities:\n  openai:gpt-4.1:\n    stop: false\n\n# the end\n"
    )
    assert load({}, HOME, path).models.capabilities == {"openai:gpt-4.1": {"stop": False}}


def test_a_taken_out_value_leaves_no_empty_section(path: Path) -> None:
    set_value(path, "model", "a")
    set_value(path, "capabilities.openai:gpt-4.1.stop", "false")

    remove_value(path, "capabilities.openai:gpt-4.1.stop")

    assert path.read_text() == "model: a\n"
    with pytest.raises(ConfigError, match="store is not set there"):
        remove_value(path, "store")


def test_all_that_is_set_for_one_name_is_taken_out_at_once(path: Path) -> None:
    write(path, "prices:\n  gpt-4.1: {input: 1, output: 2}\n  other: {input: 3}\n")

    remove_value(path, "prices.gpt-4.1")

    assert load({}, HOME, path).models.prices == {"other": {"input": Decimal(3)}}


def test_every_shown_value_can_be_set_again_and_shows_the_same(path: Path) -> None:
    write(path, "model: m\nmax_cost: 0.05\ncapabilities: {m: {stop: no}}\nprices: {m: {input: 0.10, currency: EUR}}\n")
    rows = show(load({}, HOME, path))

    for row in rows:
        if row.origin != "default":
            set_value(path, row.key, row.value)

    assert [(row.key, row.value) for row in show(load({}, HOME, path))] == [(row.key, row.value) for row in rows]


def test_a_written_file_is_its_owners_alone(path: Path) -> None:
    set_value(path, "model", "a")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["config.yaml"]


def test_a_link_to_a_file_kept_elsewhere_stays_a_link(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.yaml"
    write(elsewhere, "model: a\n")
    path.parent.mkdir()
    path.symlink_to(elsewhere)

    set_value(path, "model", "b")

    assert path.is_symlink()
    assert elsewhere.read_text() == "model: b\n"


@pytest.mark.parametrize(
    ("key", "value"), [("modle", "x"), ("timeout", "-1"), ("model", "two\nlines"), ("model", "\ud800")]
)
def test_a_wrong_value_is_refused_before_the_file_is_touched(path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError):
        set_value(path, key, value)

    assert not path.exists()


def test_a_file_that_only_a_person_can_edit_is_left_alone(path: Path) -> None:
    text = "capabilities:\n  b:\n    ? stop\n    : true\n"
    write(path, text)

    with pytest.raises(ConfigError, match="edit it by hand"):
        set_value(path, "capabilities.b.tools", "true")

    assert path.read_text() == text


names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)
words = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=12).filter(str.strip)
trees = st.dictionaries(st.tuples(names) | st.tuples(names, names) | st.tuples(names, names, names), words, max_size=6)


@given(trees, st.booleans())
def test_what_is_put_is_read_and_what_is_removed_is_gone(tree: dict[Keys, str], flow: bool) -> None:
    text = "{}\n" if flow else "# nothing yet\n"
    expected: dict[Keys, str] = {}
    for keys, value in tree.items():
        text = set_setting(text, keys, value, "file")
        expected = {old: was for old, was in expected.items() if old[: len(keys)] != keys and keys[: len(old)] != old}
        expected[keys] = value

        assert {found: leaf.text for found, leaf in read_settings(text, "file").items()} == expected

    for keys in expected:
        text = remove_setting(text, keys, "file")
    assert read_settings(text, "file") == {}


def test_a_store_may_be_on_a_server_and_its_password_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    set_value(path, "store", "postgresql://ann:zeugma@db/talks")

    settings = load({}, {}, path)

    assert settings.store == PostgresUrl.parse("postgresql://ann:zeugma@db/talks")
    assert "postgresql://ann@db/talks" in [row.value for row in show(settings)]
    assert "zeugma" not in repr(settings) + repr(show(settings))


def test_a_store_in_memory_is_not_a_file_of_this_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TAIWA_STORE: store must be a file or postgresql://USER@HOST/DATABASE"):
        load({}, {"TAIWA_STORE": ":memory:"}, tmp_path / "config.yaml")


def test_an_address_that_is_none_is_refused_without_being_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TAIWA_STORE: store is not a PostgreSQL URL; expected") as caught:
        load({}, {"TAIWA_STORE": "postgresql://ann:zeu/gma@db/talks"}, tmp_path / "config.yaml")

    assert "zeu" not in caught.value.message


@pytest.mark.parametrize("quote", ["", '"', "'"])
@pytest.mark.parametrize(
    "model",
    [
        "http://127.0.0.1:9811/v1#m",
        "http://127.0.0.1:9811/v1#qwen2.5: x",
        "https://[::1]:8080/v1#a.b.c",
        "gpt-4.1*",
        "vllm:127.0.0.1:8000#m.gguf",
    ],
)
def test_a_model_whose_name_has_dots_or_is_an_address_has_prices_of_its_own(path: Path, model: str, quote: str) -> None:
    set_value(path, f"prices.{quote}{model}{quote}.input", "1")
    set_value(path, f"prices.{model}.output", "2")
    set_value(path, f"aliases.{quote}a.b{quote}", model)

    settings = load({}, {}, path)

    assert settings.models.prices == {model: {"input": Decimal(1), "output": Decimal(2)}}
    assert find_prices(settings.models.prices, model) is not None
    assert settings.models.aliases == {"a.b": model}
    remove_value(path, f"prices.{quote}{model}{quote}.output")
    assert load({}, {}, path).models.prices == {model: {"input": Decimal(1)}}
    remove_value(path, f"prices.{quote}{model}{quote}")
    assert load({}, {}, path).models.prices == {}


@pytest.mark.parametrize(("mode", "is_own"), [(0o700, True), (0o755, True), (0o775, False), (0o703, False)])
def test_what_other_users_can_change_is_not_ones_own(tmp_path: Path, mode: int, is_own: bool) -> None:
    tmp_path.chmod(mode)

    if is_own:
        check_own(tmp_path)
    else:
        with pytest.raises(PermissionError, match="other users can change"):
            check_own(tmp_path)
