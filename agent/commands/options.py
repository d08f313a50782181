"""Arguments that several commands share."""

from __future__ import annotations

import argparse

from agent import config
from agent.config import Config
from agent.device import CHOICES, is_choice
from agent.push import PATIENCE
from rooflight.client import Client


def add_server(parser: argparse.ArgumentParser) -> None:
    """Where to send, and with which token."""
    parser.add_argument("--server", metavar="URL", help="the Rooflight server [ROOFLIGHT_SERVER]")
    parser.add_argument(
        "--token", help="its token [ROOFLIGHT_TOKEN]; as an argument other users of this host can see it"
    )
    parser.add_argument("--insecure", action="store_true", help="send the token over plain http all the same")
    parser.add_argument("--no-push", action="store_true", help="send nothing")


def add_device(parser: argparse.ArgumentParser, *more: str) -> None:
    """Which device to run on; ``more`` are choices of this command alone."""
    known = ", ".join((*CHOICES, "cuda:N", *more))

    def device(text: str) -> str:
        if is_choice(text) or text in more:
            return text
        raise argparse.ArgumentTypeError(f"{text!r} is none of {known}")

    about = f"{known} (default auto: CUDA when there is one)"
    parser.add_argument("--device", type=device, default="auto", metavar="DEVICE", help=about)


def read_config(args: argparse.Namespace) -> Config:
    """Flags over environment over file."""
    return config.load({name: getattr(args, name, None) for name in config.VARIABLES})


def client(args: argparse.Namespace, settings: Config) -> Client | None:
    """The server to send to, ``None`` when nothing is to be sent."""
    if args.no_push or settings.server is None:
        return None
    return Client(settings.server, settings.token, args.insecure, retry=PATIENCE, ca_file=settings.ca_file)
