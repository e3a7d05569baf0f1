"""Data-parallel training with Hugging Face's accelerate, which finds its ranks in the environment.

with_accelerate.py FILE: the main process writes the last loss and the digest of the weights there.
"""

import hashlib
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from ddp import leave
from torch.utils.data import DataLoader, TensorDataset


def main(report: str) -> None:
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
    if accelerator.is_main_process:
        with open(report, "w") as file:
            print(accelerator.num_processes, mean, digest, file=file)
    accelerator.end_training()


if __name__ == "__main__":
    main(sys.argv[1])
    leave()
