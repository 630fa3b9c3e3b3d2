"""A stand-in for PyTorch Lightning: the loop of a `Trainer`, on one device and without logs.

The real one needs torchmetrics, which needs all of torchvision.
"""

import random
import sys
from types import SimpleNamespace

import numpy as np
import torch


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the generator that programs use)
    torch.manual_seed(seed)


class LightningModule(torch.nn.Module):
    def save_hyperparameters(self):
        given = sys._getframe(1).f_locals
        self.hparams = SimpleNamespace(**{name: x for name, x in given.items() if name not in ("self", "__class__")})

    def log(self, name, value, **options):
        self.logged.setdefault(name, []).append(float(value))

    @classmethod
    def load_from_checkpoint(cls, trained):
        module = cls(**vars(trained.hparams))
        module.load_state_dict(trained.state_dict())
        return module


class Trainer:
    def __init__(self, max_epochs, **options):
        self.max_epochs = max_epochs
        self.logger, self.checkpoint_callback = SimpleNamespace(), SimpleNamespace(best_model_path=None)

    def fit(self, module, batches, validation):
        module.logged = {}
        optimizers, schedulers = module.configure_optimizers()
        for _ in range(self.max_epochs):
            module.train()
            for number, batch in enumerate(batches):
                loss = module.training_step(batch, number)
                for optimizer in optimizers:
                    optimizer.zero_grad()
                loss.backward()
                for optimizer in optimizers:
                    optimizer.step()
            self._evaluate(module, module.validation_step, validation)
            for scheduler in schedulers:
                scheduler.step()
        self.checkpoint_callback.best_model_path = module

    def test(self, module, batches, verbose=False):
        module.logged = {}
        self._evaluate(module, module.test_step, batches)
        return [{name: sum(values) / len(values) for name, values in module.logged.items()}]

    def _evaluate(self, module, step, batches):
        module.eval()
        with torch.no_grad():
            for number, batch in enumerate(batches):
                step(batch, number)
