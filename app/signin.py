"""Signing in a browser with a token, where the server is reached from other machines."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.deps import Db, Signing
from app.security import SESSION_COOKIE, SESSION_MAX_AGE_S
from app.tokens import service as tokens

router = APIRouter(include_in_schema=False)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in – Rooflight</title>
<style>:root {{ color-scheme: light dark; font: 13px/1.5 system-ui, sans-serif }}
form {{ max-width: 24rem; margin: 20vh auto; display: grid; gap: 8px; padding: 0 16px }}
input, button {{ font: inherit; padding: 8px }} .worse {{ color: light-dark(#b3261e, #ff9a8f) }}</style>
</head><body><form method="post" action="/signin"><h1>Sign in</h1>
<label for="token">Token (made by <code>rooflight-server token create</code>)</label>
<input id="token" name="token" type="password" autocomplete="off" required autofocus>
{note}<button>Sign in</button></form></body></html>"""
_WRONG = '<p class="worse" role="alert">That token is not valid: unknown, wrong or revoked.</p>'


@router.get("/signin")
async def form() -> Response:
    """The form."""
    return HTMLResponse(_PAGE.format(note=""))


@router.post("/signin")
async def sign_in(request: Request, database: Db, signer: Signing) -> Response:
    """Exchange a token for a signed cookie."""
    sent = parse_qs((await request.body())[:4_096].decode("utf-8", "replace"))
    row = await tokens.verify(database, sent.get("token", [""])[0].strip())
    if row is None:
        return HTMLResponse(_PAGE.format(note=_WRONG), 401)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        SESSION_COOKIE,
        signer.new_session(row.id),
        max_age=SESSION_MAX_AGE_S,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response
