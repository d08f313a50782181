"""A small training to try Rooflight on: a language model learns to copy what it has read.

    python examples/train.py
    rooflight-agent run -- python examples/train.py
    KINETO_USE_DAEMON=1 python examples/train.py --seconds 600      # then: rooflight-agent capture PID

It knows nothing of Rooflight and needs torch alone.
"""

import argparse
import time

import torch
from torch import nn

TOKENS, WIDTH = 256, 128


class Model(nn.Module):
    """Embedding, encoder layers that see only what came before, and a head."""

    def __init__(self, layers: int, length: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(WIDTH, TOKENS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(tokens), mask=self.mask, is_causal=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seconds", type=float, help="train so long, whatever the steps")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = Model(2, args.length).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    # The second half of what it reads repeats the first.
    half = torch.randint(TOKENS, (args.batch, args.length // 2), device=args.device)
    tokens = torch.cat((half, half), dim=1)
    began, step = time.monotonic(), 0
    while step < args.steps if args.seconds is None else time.monotonic() - began < args.seconds:
        optimizer.zero_grad()
        scores = model(tokens)[:, :-1]
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step}  loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
