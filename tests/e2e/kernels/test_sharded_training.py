"""Watching and recording do not change a training with sharded parameters (DTensors of FSDP2)."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """
import torch, torch.distributed as dist
import gradlab as gl
from contextlib import nullcontext
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))

def train(inside):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    for layer in (net[0], net[2], net):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(4, 6)
    with inside(net, optimizer) as seen:
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            optimizer.step()
    return [p.full_tensor().tolist() for p in net.parameters()], seen

plain, _ = train(lambda *_: nullcontext())
recorded, traced = train(lambda *_: gl.tracing())
watched, run = train(gl.watch)
assert plain == recorded == watched
assert traced.sweeps == 3 and traced.trace.nodes
assert run.steps == 3
print(run.trouble)
dist.destroy_process_group()
"""


def test_a_sharded_training_is_the_same():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-2000:])
    assert "the numbers of a DTensor cannot be read" in ran.stdout
    assert "gradlab failed" not in ran.stderr
