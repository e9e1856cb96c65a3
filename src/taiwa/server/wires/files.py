"""Files (`/v1/files`): uploaded once by a client, and named by id in messages and vector stores."""

import asyncio
import time
from base64 import b64encode, urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import cast

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.retrieval.index import file_of
from taiwa.server.http_responses import ApiError, error_to_json, invalid
from taiwa.server.indexing import room_for_uploads, uploaded_file
from taiwa.server.request import Fields, name_of, page_for, repository_of
from taiwa.server.wire_interface import DELETE, GET, Route, Wire
from taiwa.server.wires.documents import Documents, keep, once_with_files, read_form, settings_of, with_documents
from taiwa.store.server_records import ServedObject

PURPOSES = ("assistants", "user_data", "vision", "batch", "fine-tune", "evals")
MOST_LISTED = 10_000
FILE_PARTS = frozenset({"image_url", "input_image", "file", "input_file"})
Body = dict[str, Json]


def not_found(name: str) -> ApiError:
    """Return the error for a file that the caller does not have."""
    return ApiError(404, f"file {name[:80]!r} not found", code="not_found", param="file_id")


def place_of(file: str) -> tuple[str, str]:
    """Return the index and the path of a document by its id.

    Raises:
        ApiError: it is not the id of a document.
    """
    text = file.removeprefix("file-")
    try:
        index, _, path = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("/")
    except (Base64Error, ValueError):
        index, path = "", ""
    if not path or not file.startswith("file-"):
        raise not_found(file)
    return index, path


def find_file(request: Request, name: str) -> tuple[Body, Path]:
    """Return an uploaded file of the caller in display form, and the path of its bytes.

    Raises:
        ApiError: the caller has none of that id.
    """
    repository = repository_of(request)
    found = repository.store.served.find(name)
    if found is None or found.kind != "file":
        raise not_found(name)
    return found.body, uploaded_file(settings_of(request), _owner(request), name)


def _owner(request: Request) -> str:
    scope = repository_of(request).scope
    return "" if scope is None else scope.owner


async def upload(request: Request) -> Json:
    """Store a file of any type."""
    form = await read_form(request)
    try:
        items = form.multi_items()
        file = next((each for name, each in items if name == "file" and isinstance(each, UploadFile)), None)
        purpose = Fields({name: each for name, each in items if isinstance(each, str)}).choice("purpose", PURPOSES, "")
        if file is None:
            raise invalid("file", "missing required parameter: 'file'", "missing_required_parameter")
        keep_file = partial(asyncio.to_thread, _keep, request, file, purpose)
        return await once_with_files(request, purpose, [(file.filename or "", file.file)], keep_file)
    finally:
        await form.close()


def _keep(request: Request, file: UploadFile, purpose: str) -> Json:
    given = (file.filename or "").replace("\\", "/").encode(errors="replace").decode()
    name, identifier = PurePosixPath(given).name[-200:] or "file", f"file-{token_hex(12)}"
    settings, owner = settings_of(request), _owner(request)
    try:
        target, room = uploaded_file(settings, owner, identifier), room_for_uploads(settings, owner)
        size = keep(settings, target, name, file.file, room)
    except InputError as problem:
        raise ApiError(413, problem.message, code="request_too_large", param="file") from None
    shown: Body = {
        "id": identifier, "object": "file", "bytes": size, "created_at": int(time.time()), "filename": name,
        "purpose": purpose, "status": "processed", "expires_at": None, "status_details": None,
    }  # fmt: skip
    repository_of(request).store.served.put(ServedObject(identifier, "file", "", None, shown))
    return shown


async def list_all(request: Request) -> Json:
    """List the uploaded files of the caller."""
    purpose = request.query_params.get("purpose")
    found = await asyncio.to_thread(repository_of(request).store.served.of_kind, "file")
    listed: list[Json] = [each.body for each in found if purpose in (None, each.body["purpose"])]
    return page_for(request, listed, MOST_LISTED)


async def get(request: Request) -> Json:
    """Return the name and size of a file, or of a document that an answer cites."""
    name = name_of(request, "id")
    try:
        return (await asyncio.to_thread(find_file, request, name))[0]
    except ApiError:
        index_name, path = place_of(name)

    def read(documents: Documents) -> Json:
        index = documents.index(index_name)
        for each in index.documents(documents.principals(index)):
            if each.path == path:
                return {
                    "id": file_of(path, index.name)[0], "object": "file", "bytes": each.known.size,
                    "created_at": each.known.at_us // 1_000_000, "filename": path, "purpose": "user_data",
                    "status": "error" if each.known.problem else "processed", "expires_at": None,
                    "status_details": each.known.problem or None,
                }  # fmt: skip
        raise not_found(path)

    return await with_documents(request, read)


async def content(request: Request) -> Response:
    """Return the bytes of an uploaded file."""
    name = name_of(request, "id")

    def read() -> bytes:
        try:
            return find_file(request, name)[1].read_bytes()
        except FileNotFoundError:
            raise not_found(name) from None

    headers = {"content-disposition": "attachment", "cache-control": "no-store"}
    return Response(await asyncio.to_thread(read), headers=headers, media_type="application/octet-stream")


async def delete(request: Request) -> Json:
    """Delete an uploaded file; a vector store keeps its own copy."""
    name = name_of(request, "id")

    def remove() -> None:
        find_file(request, name)[1].unlink(missing_ok=True)
        repository_of(request).store.served.delete(name)

    await asyncio.to_thread(remove)
    return {"id": name, "object": "file", "deleted": True}


async def with_files(request: Request, body: Fields, name: str) -> Fields:
    """Return a body in whose messages file ids are replaced by data URLs.

    Raises:
        ApiError: the caller has no file of that id. InputError: it is neither an image, a PDF nor text.
    """
    listed = body.data.get(name)
    items = listed if isinstance(listed, list) else []
    with_parts = [item for item in items if isinstance(item, dict) and isinstance(item.get("content"), list)]
    if not any("file_id" in _holder(part) for item in with_parts for part in _parts(item)):
        return body

    def url_of(identifier: str) -> tuple[str, str]:
        shown, place = find_file(request, identifier)
        data = place.read_bytes() if place.exists() else b""
        attachment = Attachment.from_bytes(data, str(shown["filename"]))
        return f"data:{attachment.media_type};base64,{b64encode(data).decode()}", str(shown["filename"])

    def resolve() -> Fields:
        return Fields({**body.data, name: [_resolved(item, url_of) for item in items]}, body.path)

    return await asyncio.to_thread(resolve)


def _parts(item: Json) -> list[Body]:
    content = item.get("content") if isinstance(item, dict) else None
    found = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [part for part in found if str(part.get("type")) in FILE_PARTS]


def _holder(part: Body) -> Body:
    """Return the object that names the file: the part itself, or one inside it, as in Chat Completions."""
    inner = part.get("file")
    return inner if isinstance(inner, dict) else part


def _resolved(item: Json, url_of: Callable[[str], tuple[str, str]]) -> Json:
    if not _parts(item):
        return item
    whole = cast("Body", item)
    return {**whole, "content": [_with_data(part, url_of) for part in cast("list[Json]", whole["content"])]}


def _with_data(part: Json, url_of: Callable[[str], tuple[str, str]]) -> Json:
    if not isinstance(part, dict) or part.get("type") not in FILE_PARTS:
        return part
    holder = _holder(part)
    identifier = holder.get("file_id")
    if not isinstance(identifier, str):
        return part
    url, name = url_of(identifier)
    rest = {key: each for key, each in holder.items() if key != "file_id"}
    if part["type"] == "input_image":
        return {**rest, "image_url": url}
    given: Body = {**rest, "file_data": url, "filename": name}
    return given if holder is part else {**part, "file": given}


HERE = "/v1/files/{id}"
wire = Wire(
    "files",
    (
        Route("/v1/files", upload, takes_files=True),
        Route("/v1/files", list_all, GET),
        Route(HERE, get, GET),
        Route(HERE, delete, DELETE),
        Route(f"{HERE}/content", content, GET),
    ),
    error_to_json,
)
