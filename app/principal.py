"""Who asks: a token, a signed-in browser, a browser on this machine, or this machine itself."""

from __future__ import annotations

from dataclasses import dataclass

from app.models import Token
from app.problems import Forbidden
from app.tokens.service import SCOPES


@dataclass(frozen=True)
class Principal:
    """``level`` is the index of the widest scope held; ``project_id`` limits it to one project."""

    kind: str
    level: int
    project_id: str | None = None

    def require(self, scope: str) -> None:
        """Raise :class:`Forbidden` unless ``scope`` is held."""
        if self.level < SCOPES.index(scope):
            raise Forbidden(
                f"this token lacks the scope `{scope}`",
                hint=f"make one by `rooflight-server token create --scope {scope}`",
            )


LOCAL_READER = Principal("local", SCOPES.index("read"))
LOCAL_BROWSER = Principal("browser", SCOPES.index("write"))


def of_token(row: Token, kind: str = "token") -> Principal:
    """The holder of a token."""
    return Principal(kind, max(SCOPES.index(s) for s in row.scopes.split()), row.project_id)
