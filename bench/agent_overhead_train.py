"""The training of bench/agent_overhead.py: on order it takes so many steps, and tells the CPU time of them.

It knows nothing of Rooflight.  A line with a number of steps is answered by a line with nanoseconds of CPU,
of all threads of this process; the end of the input ends it.
"""

import sys
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
# Small enough for the caches: the memory of a busy machine is noise.
model = torch.nn.Sequential(
    torch.nn.Linear(256, 512),
    torch.nn.ReLU(),
    torch.nn.Linear(512, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
inputs, targets = torch.randn(512, 256), torch.randint(10, (512,))
print("ready", flush=True)
for line in sys.stdin:
    began = time.process_time_ns()
    for _ in range(int(line)):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    print(time.process_time_ns() - began, flush=True)
