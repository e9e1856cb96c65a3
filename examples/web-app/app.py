"""A web application: an order desk with a typed endpoint, a conversation per visitor, and where each value came from.

pip install fastapi uvicorn
uvicorn --app-dir examples/web-app app:app
curl localhost:8000/orders -d '{"text": "Two large oat lattes"}' -H 'Content-Type: application/json'
curl localhost:8000/chats/mina -d '{"text": "Two green teas, please."}' -H 'Content-Type: application/json'
curl localhost:8000/chats/mina/why/items
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import taiwa


class Said(BaseModel):
    text: str


class Order(BaseModel):
    drink: Literal["latte", "espresso", "tea"]
    size: Literal["small", "medium", "large"] = "medium"
    cups: int = 1


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Keep one client for all requests: its connections and its store are shared."""
    async with taiwa.AsyncClient() as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


def opened(request: Request) -> taiwa.AsyncClient:
    """Return the client of the application; a test overrides it."""
    client: taiwa.AsyncClient = request.app.state.client
    return client


Client = Annotated[taiwa.AsyncClient, Depends(opened)]


@app.exception_handler(taiwa.TaiwaError)
async def failed(_: Request, error: Exception) -> JSONResponse:
    """Answer with the one line of an error; a failed turn has left its conversation as it was."""
    assert isinstance(error, taiwa.TaiwaError)
    return JSONResponse({"error": error.message}, 422 if isinstance(error, taiwa.InputError) else 502)


@app.post("/orders")
async def order(said: Said, client: Client) -> list[Order]:
    """Read an order: valid by its type, or an error."""
    return await client.extract(list[Order], said.text)


@app.post("/chats/{name}")
async def chat(name: str, said: Said, client: Client) -> dict[str, Any]:
    """Take one turn of a visitor's conversation."""
    session = await client.session("order", name)
    turn = await session.say(said.text)
    return {"answer": turn.text, "state": turn.state}


@app.get("/chats/{name}/why/{field}")
async def why(name: str, field: str, client: Client) -> dict[str, Any]:
    """Return the turn that set a field, and the words that it came from."""
    if name not in {each.name for each in await client.sessions()}:
        raise HTTPException(404)
    session = await client.session(name=name)
    origin = await session.why(field)
    return {"value": origin.after, "turn": origin.turn, "said": [source.words for source in origin.sources]}
