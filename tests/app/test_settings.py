"""Settings, the database's address, the key of cookies, and texts and times from outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from app.models.base import UtcDateTime
from app.settings import Settings
from app.text import clean, clean_all
from app.times import iso, parse


def test_every_setting_has_its_help() -> None:
    assert [n for n, f in Settings.model_fields.items() if not f.description] == []


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROOFLIGHT_DATA", str(tmp_path))
    monkeypatch.setenv("ROOFLIGHT_UPLOAD_BYTES", "1000")
    settings = Settings()
    assert (settings.data, settings.upload_bytes) == (tmp_path, 1000)
    assert settings.url.render_as_string() == f"sqlite:///{tmp_path}/rooflight.db"


def test_a_price_list_that_is_empty_in_the_environment_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFLIGHT_PRICES", "")
    assert Settings().prices is None
    monkeypatch.setenv("ROOFLIGHT_PRICES", "mine.csv")
    assert Settings().prices == Path("mine.csv")


def test_the_database_is_sqlite_or_postgresql() -> None:
    assert Settings(database="postgresql://u:p@h/d").url.drivername == "postgresql+psycopg"
    with pytest.raises(ValueError, match="mysql"):
        _ = Settings(database="mysql://h/d").url


@pytest.mark.parametrize(
    ("host", "exposed"), [("127.0.0.1", False), ("::1", False), ("0.0.0.0", True), ("10.0.0.5", True)]
)
def test_what_is_not_loopback_is_exposed(host: str, exposed: bool) -> None:
    assert Settings(host=host).exposed is exposed


def test_the_key_of_cookies_is_made_once_and_private(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    key = settings.signing_key()
    assert len(key) >= 43  # 32 random bytes in base64
    assert settings.signing_key() == key
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert Settings(data=tmp_path, secret="given").signing_key() == "given"


def test_text_is_kept_but_for_what_no_database_holds() -> None:
    assert clean("a\0b <i>\u202e\U0001f600\n") == "ab <i>\u202e\U0001f600\n"
    assert clean("\ud800") == "\\ud800"
    assert clean_all({"k\0": ["v\0", 1, None]}) == {"k": ["v", 1, None]}


def test_times_are_utc_and_say_so() -> None:
    assert iso(parse("2026-03-29T03:30:00+02:00")) == "2026-03-29T01:30:00.000000Z"
    with pytest.raises(ValueError, match="time zone"):
        parse("2026-03-29T03:30:00")
    kind = UtcDateTime()
    with pytest.raises(ValueError, match="offset"):
        kind.process_bind_param(datetime(2026, 3, 29), None)  # type: ignore[arg-type]  # noqa: DTZ001
    local = datetime(2026, 3, 29, 3, 30, tzinfo=timezone(timedelta(hours=2)))
    assert kind.process_bind_param(local, None) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # type: ignore[arg-type]
