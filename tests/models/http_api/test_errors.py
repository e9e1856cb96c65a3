import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import (
    AuthenticationError,
    ContextLengthError,
    ModelError,
    OverloadedError,
    RateLimitError,
    RefusalError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.models.http_api.errors import error_from_status, error_in_response, quoted, wait_asked
from taiwa.models.http_api.provider_interface import Server

SERVER = Server("OpenAI", "gpt-x")
JSON = {"content-type": "application/json"}


def told(status: int, error: Any, **headers: str) -> ModelError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return error_from_status(status, JSON | named, json.dumps(error).encode(), SERVER)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        # OpenAI
        (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, AuthenticationError),
        (
            403,
            {"error": {"message": "Country not supported", "code": "unsupported_country_region_territory"}},
            AuthenticationError,
        ),
        (
            429,
            {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}},
            RateLimitError,
        ),
        (429, {"error": {"message": "You exceeded your quota", "type": "insufficient_quota"}}, AuthenticationError),
        (500, {"error": {"message": "The server had an error", "type": "server_error"}}, OverloadedError),
        (503, {"error": {"message": "Slow down", "code": "slow_down"}}, OverloadedError),
        (400, {"error": {"message": "flagged", "code": "content_policy_violation"}}, RefusalError),
        (400, {"error": {"message": "bad", "code": "unsupported_parameter", "param": "stop"}}, UnsupportedError),
        # Azure
        (400, {"error": {"message": "filtered", "code": "content_filter", "status": 400}}, RefusalError),
        (400, {"error": {"message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, RefusalError),
        # Anthropic
        (
            401,
            {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
            AuthenticationError,
        ),
        (403, {"type": "error", "error": {"type": "permission_error", "message": "no"}}, AuthenticationError),
        (429, {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, RateLimitError),
        (500, {"type": "error", "error": {"type": "api_error", "message": "Internal"}}, OverloadedError),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, OverloadedError),
        (
            400,
            {"type": "error", "error": {"type": "billing_error", "message": "Your credit balance is too low"}},
            AuthenticationError,
        ),
        (504, {"type": "error", "error": {"type": "timeout_error", "message": "took too long"}}, TimeoutError),
        # OpenRouter, DeepSeek, Google, Mistral
        (402, {"error": {"code": 402, "message": "Insufficient credits"}}, AuthenticationError),
        (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}, AuthenticationError),
        (
            400,
            [{"error": {"code": 400, "message": "API key not valid. Please pass one.", "status": "INVALID_ARGUMENT"}}],
            AuthenticationError,
        ),
        (429, [{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}], RateLimitError),
        (401, {"detail": "Unauthorized"}, AuthenticationError),
        (429, {"object": "error", "message": "Too many", "type": "rate_limited", "code": "1300"}, RateLimitError),
        # llama.cpp while it loads, and a gateway that timed out
        (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, OverloadedError),
        (504, {"error": "upstream"}, OverloadedError),
        (408, {}, TimeoutError),
        (502, {}, OverloadedError),
        (501, {"error": {"message": "not implemented"}}, ModelError),
        (409, {"error": {"message": "conflict"}}, ModelError),
        (418, {"error": {"message": "teapot"}}, ModelError),
    ],
)
def test_a_failure_becomes_the_error_that_says_what_to_do(status: int, error: Any, kind: type[ModelError]) -> None:
    found = told(status, error)

    assert type(found) is kind
    assert found.status == status
    assert "\n" not in found.message


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            400,
            {
                "error": {
                    "message": "This model's maximum context length is 8192 tokens.",
                    "code": "context_length_exceeded",
                }
            },
        ),
        (
            400,
            {
                "message": "This model's maximum context length is 4096 tokens. However, you requested 5000",
                "object": "error",
            },
        ),
        (
            400,
            {
                "error": {
                    "message": "the request exceeds the available context size",
                    "type": "exceed_context_size_error",
                }
            },
        ),
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 210000 tokens > 200000 maximum",
                },
            },
        ),
        (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}),
        (
            400,
            [
                {
                    "error": {
                        "message": "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."
                    }
                }
            ],
        ),
        (413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    ],
)
def test_a_request_that_is_too_long_is_told_in_plain_words(status: int, error: Any) -> None:
    found = told(status, error)

    assert type(found) is ContextLengthError
    assert "the request is longer than the model's context length: 'gpt-x'" in found.message
    assert "keep fewer turns" in found.message


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            404,
            {
                "error": {
                    "message": "The model `gpt-x` does not exist or you do not have access to it.",
                    "code": "model_not_found",
                }
            },
        ),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: gpt-x"}}),
        (404, {"error": {"message": 'model "gpt-x" not found, try pulling it first', "type": "api_error"}}),
        (400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error"}}),
        (
            400,
            {"object": "error", "message": "Invalid model: gpt-x", "type": "invalid_model", "code": "model_not_found"},
        ),
        (400, {"error": {"message": "gpt-x is no such model"}}),
    ],
)
def test_a_missing_model_is_told_by_its_name(status: int, error: Any) -> None:
    found = told(status, error)

    assert type(found) is ModelError
    assert "OpenAI does not have the model 'gpt-x'" in found.message


def test_an_address_without_a_model_server_is_told_apart() -> None:
    found = told(404, {"detail": "Not Found"})

    assert type(found) is ModelError
    assert (
        found.message
        == "OpenAI does not have this path (404): Not Found; check the base URL, which mostly ends in /v1; a server without chat needs --wire completions"
    )


def test_a_page_of_a_gateway_is_named_not_quoted() -> None:
    page = b"<html>\r\n<head><title>502 Bad\r\nGateway</title></head><body><h1>nginx</h1></body></html>"

    found = error_from_status(502, {"content-type": "text/html"}, page, SERVER)

    assert type(found) is OverloadedError
    assert found.message == "OpenAI cannot answer now (502): a web page (502 Bad Gateway)"


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{}", b"\xff\xfe", b"no JSON here", b"<html>", b"[" * 9999, b"123"]
)
def test_any_body_of_a_failure_can_be_read(body: bytes) -> None:
    found = error_from_status(500, {}, body, SERVER)

    assert type(found) is OverloadedError
    assert found.message.startswith("OpenAI cannot answer now (500)")


def test_a_redirect_says_where_to() -> None:
    found = error_from_status(301, {"location": "https://example.org/v1"}, b"", SERVER)

    assert type(found) is ModelError
    assert "https://example.org/v1" in found.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", "date": "Sat, 21 Nov 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 09:00:00 GMT", "date": "Sat, 21 Nov 2026 10:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2004 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    found = told(
        429, {"error": {"message": "slow"}}, **{name.replace("-", "_"): value for name, value in headers.items()}
    )

    assert isinstance(found, RateLimitError)
    assert found.retry_after == seconds
    assert wait_asked(headers) == seconds


@pytest.mark.parametrize(("asked", "written"), [("7", "7 s"), ("0.5", "0.5 s"), ("2300000000", "2,300,000,000 s")])
def test_the_wait_stands_in_the_message(asked: str, written: str) -> None:
    found = told(429, {"error": {"message": "Rate limit reached"}}, retry_after=asked)

    assert found.message == f"OpenAI receives too many requests (429), try again in {written}: Rate limit reached"


def test_a_validation_report_is_told_by_its_first_entry() -> None:
    found = told(422, {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Field required"}, {"msg": "more"}]})

    assert found.message == "OpenAI does not accept the request for 'gpt-x' (422): body.messages.0.role: Field required"


def test_a_validation_report_may_stand_under_message() -> None:
    report = {"object": "error", "message": {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}}

    assert "body.stream_options: Extra inputs" in told(422, report).message


def test_the_error_of_a_router_contains_the_text_of_its_provider() -> None:
    error = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "stop is too long"}}}

    assert told(400, error).message.endswith("Provider returned error: stop is too long")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"code": 429, "message": "slow"}}, RateLimitError),
        ({"error": {"code": "502", "type": "server_error", "message": "down"}}, OverloadedError),
        ({"error": {"message": "x", "type": "overloaded_error"}}, OverloadedError),
        ({"error": "out of memory"}, ModelError),
        ({"message": "no slot", "type": "unavailable_error"}, OverloadedError),
        ("gone", ModelError),
    ],
)
def test_an_error_inside_a_good_answer_is_no_less_an_error(error: Any, kind: type[ModelError]) -> None:
    found = error_in_response(error, SERVER)

    assert type(found) is kind


CANARIES = [
    "sk-canary-0123456789abcdefABCDEF",
    "sk-ant-api03-canary",
    "gsk_Canary0123456789",
    "AIzaSyCanary0123456789",
    "hf_Canary0123456789",
    "Bearer canary-token",
    "sk-proj-****************abcd",
    "abcd1234*********wxyz",
    "0123456789abcdef0123456789abcdef",
]


@pytest.mark.parametrize("key", CANARIES)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_key_that_a_server_repeats_never_reaches_the_error(status: int, key: str) -> None:
    found = told(status, {"error": {"message": f"Incorrect key provided: {key}. Find yours at the site.", "type": key}})

    assert key not in json.dumps(found.record())


def test_names_of_models_are_no_keys() -> None:
    words = "use claude-haiku-4-5-20251001, gpt-4o-mini-2024-07-18 or mistralai/mistral-small-3.2-24b-instruct"

    assert quoted(words) == words


@given(st.text())
def test_a_quoted_text_is_one_short_printable_line(text: str) -> None:
    line = quoted(text * 50)

    assert len(line) <= 300
    assert line.isprintable()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["error", "message", "detail", "code", "type", "status", "msg", "loc", "metadata", "raw", "param"]), inner)), st.integers(300, 599))  # fmt: skip
def test_no_body_makes_the_reading_fail(body: Any, status: int) -> None:
    found = told(status, body)

    assert isinstance(found, ModelError)
    assert "\n" not in found.message


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Invalid schema for response_format 'Order': 'oneOf' is not permitted.", "response_format"),
        ("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", None),
        ("JSON schema error at #/properties/a: cannot resolve $ref #/$defs/b", None),
        ("Failed to initialize samplers: failed to parse grammar", None),
        ("The provided JSON schema contains features not supported by xgrammar.", None),
        ("output_config.format.schema: For 'integer' type, properties maximum, minimum are not supported", None),
        ("Bad value", "response_format.json_schema"),
    ],
)
def test_a_schema_that_a_server_does_not_take_is_something_it_cannot_do(message: str, param: str | None) -> None:
    error = told(400, {"error": {"message": message, "type": "invalid_request_error", "param": param}})

    assert isinstance(error, UnsupportedError)
    assert error.capability == "json_schema"
    assert "does not take this schema for 'gpt-x' (400)" in str(error)


def test_a_server_that_fails_while_it_speaks_of_a_schema_is_still_a_server_that_fails() -> None:
    assert isinstance(told(500, {"error": {"message": "JSON schema error", "type": "server_error"}}), OverloadedError)


@pytest.mark.parametrize(
    "text",
    [
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        "continue_final_message is not supported with this chat template",
    ],
)
def test_a_server_that_does_not_continue_an_answer_lacks_a_capability(text: str) -> None:
    body = json.dumps({"error": {"type": "invalid_request_error", "message": text}}).encode()

    error = error_from_status(400, {}, body, Server("Anthropic", "claude"))

    assert isinstance(error, UnsupportedError)
    assert error.capability == "prefix"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "registry.ollama.ai/library/gemma2:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (404, "No endpoints found that support tool use. To learn more about provider routing, see the documentation."),
        (422, "body.tools: Extra inputs are not permitted"),
        (400, "Function calling: tools are not supported for this model"),
    ],
)
def test_a_server_that_calls_no_tools_lacks_a_capability(status: int, text: str) -> None:
    error = told(status, {"error": {"message": text}})

    assert isinstance(error, UnsupportedError)
    assert error.capability == "tools"


@pytest.mark.parametrize(
    "text", ["Invalid schema for function 'look_up': 'int' is not valid", "tool_call_id c1 not found in tool calls"]
)
def test_what_is_wrong_with_one_tool_is_not_a_missing_capability(text: str) -> None:
    error = told(400, {"error": {"message": text, "param": "tools[0].function"}})

    assert getattr(error, "capability", "") != "tools"
