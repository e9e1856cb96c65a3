"""Files (`/v1/files`): uploaded once by a client, and named by id in messages and vector stores."""

import asyncio
import time
from base64 import b64encode, urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from secrets import token_hex

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, items_at, text_at
from taiwa.retrieval.index import file_of
from taiwa.server.http_responses import NO_STORE, ApiError, error_to_json, invalid
from taiwa.server.indexing import room_for_uploads, uploaded_file
from taiwa.server.request import Fields, name_of, page_for, repository_of
from taiwa.server.wire_interface import DELETE, GET, Route, Wire
from taiwa.server.wires.documents import documents_of, keep, once_with_files, read_form, settings_of
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


def list_all(request: Request) -> Json:
    """List the uploaded files of the caller."""
    purpose = request.query_params.get("purpose")
    found = repository_of(request).store.served.of_kind("file")
    return page_for(request, [each.body for each in found if purpose in (None, each.body["purpose"])], MOST_LISTED)


def get(request: Request) -> Json:
    """Return the name and size of a file, or of a document that an answer cites."""
    name = name_of(request, "id")
    try:
        return find_file(request, name)[0]
    except ApiError:
        index_name, path = place_of(name)
    with documents_of(request) as documents:
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


def content(request: Request) -> Response:
    """Return the bytes of an uploaded file."""
    name = name_of(request, "id")
    try:
        data = find_file(request, name)[1].read_bytes()
    except FileNotFoundError:
        raise not_found(name) from None
    headers = {"content-disposition": "attachment", **NO_STORE}
    return Response(data, headers=headers, media_type="application/octet-stream")


def delete(request: Request) -> Json:
    """Delete an uploaded file; a vector store keeps its own copy."""
    name = name_of(request, "id")
    find_file(request, name)[1].unlink(missing_ok=True)
    repository_of(request).store.served.delete(name)
    return {"id": name, "object": "file", "deleted": True}


async def with_files(request: Request, body: Fields, name: str) -> Fields:
    """Return a body in whose messages file ids are replaced by data URLs.

    Raises:
        ApiError: the caller has no file of that id. InputError: it is neither an image, a PDF nor text.
    """
    items = [item for item in items_at(body.data, name) if isinstance(item, dict)]
    contents = [content for item in items if isinstance(content := item.get("content"), list)]
    parts = [part for content in contents for part in content if isinstance(part, dict)]
    named = [part for part in parts if text_at(part, "type") in FILE_PARTS and text_at(_holder(part), "file_id")]
    if named:
        await asyncio.to_thread(_fill, request, named)
    return body


def _holder(part: Body) -> Body:
    """Return the object that names the file: the part itself, or one inside it, as in Chat Completions."""
    inner = part.get("file")
    return inner if isinstance(inner, dict) else part


def _fill(request: Request, parts: Sequence[Body]) -> None:
    """Put the data of files in place of their ids."""
    for part in parts:
        holder = _holder(part)
        shown, place = find_file(request, str(holder.pop("file_id")))
        data, name = place.read_bytes() if place.exists() else b"", str(shown["filename"])
        url = f"data:{Attachment.from_bytes(data, name).media_type};base64,{b64encode(data).decode()}"
        holder |= {"image_url": url} if part["type"] == "input_image" else {"file_data": url, "filename": name}


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
