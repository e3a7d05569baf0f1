#!/usr/bin/env python3
"""The same training with Hugging Face's accelerate, which finds its ranks in the environment.

    pip install -r demo/requirements-accelerate.txt
    torchrun       --standalone --nproc-per-node 2 demo/train_accelerate.py
    actor-launcher --standalone --nproc-per-node 2 demo/train_accelerate.py

Both print the same loss and the same digest of the weights.
"""

import hashlib

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(0)
    data = TensorDataset(torch.rand(128, 16), torch.rand(128, 1))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(
        model, optimizer, DataLoader(data, batch_size=8, shuffle=True)
    )
    for _ in range(2):
        for source, target in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(source), target)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    mean = accelerator.gather(loss.detach().reshape(1)).mean().item()
    state = sorted(accelerator.unwrap_model(model).state_dict().items())
    digest = hashlib.sha256(b"".join(t.numpy().tobytes() for _, t in state)).hexdigest()
    accelerator.print(accelerator.num_processes, mean, digest)
    accelerator.end_training()


if __name__ == "__main__":
    main()
