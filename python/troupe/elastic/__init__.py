"""Training that goes on in a world of another size: the data's order, batches and gradients. Importing this imports torch.

When a world grows or shrinks, all workers start again with other ranks. Without this package a loader then begins its epoch
anew, or takes up the old rank's samples with the new stride, so that some are seen twice and some never; and each step of
the optimizer is made of more or fewer samples than before. Names and arguments are those of DLRover's `elastic` modules.

- `ElasticDistributedSampler`: torch's DistributedSampler with a place in its epoch that any world can go on from.
- `ElasticDataLoader`: torch's DataLoader whose batch size may change; it counts what was trained on, exactly.
- `ElasticTrainer`: accumulates gradients, so that a step of the optimizer has the same number of samples in any world.

What they log goes to "troupe.elastic".
"""

from .accumulation import GradientState
from .batches import ElasticBatchSampler
from .dataloader import ElasticDataLoader
from .sampler import ElasticDistributedSampler
from .trainer import ElasticLRScheduler, ElasticOptimizer, ElasticTrainer

__all__ = [
    "ElasticBatchSampler",
    "ElasticDataLoader",
    "ElasticDistributedSampler",
    "ElasticLRScheduler",
    "ElasticOptimizer",
    "ElasticTrainer",
    "GradientState",
]
