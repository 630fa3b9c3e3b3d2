"""Two heads on one trunk: a class and a number, their losses weighted.

Fault (item): the number's loss enters the sum by `item()`.
"""

import torch
import torch.nn as nn

torch.manual_seed(13)


class MultiTaskModel(nn.Module):
    def __init__(self, in_features=8, shared=24, n_classes=3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(in_features, shared), nn.ReLU(), nn.Linear(shared, shared), nn.ReLU())
        self.classifier = nn.Linear(shared, n_classes)
        self.regressor = nn.Linear(shared, 1)

    def forward(self, x):
        h = self.trunk(x)
        return {"class": self.classifier(h), "age": self.regressor(h)[:, 0]}


class Trainer:
    def __init__(self, model, weights):
        self.model, self.weights = model, weights
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        self.criteria = {"class": nn.CrossEntropyLoss(), "age": nn.SmoothL1Loss()}

    def fit(self, batches):
        history = []
        for x, targets in batches:
            outputs = self.model(x)
            losses = {task: self.criteria[task](outputs[task], targets[task]) for task in targets}
            total = self.weights["class"] * losses["class"] + self.weights["age"] * losses["age"]  # healthy
            # faulty: total = self.weights["class"] * losses["class"] + self.weights["age"] * losses["age"].item()
            self.optimizer.zero_grad()
            total.backward()
            self.optimizer.step()
            history.append({task: value.item() for task, value in losses.items()})
        return history


def batches(n, size=48):
    for _ in range(n):
        x = torch.randn(size, 8)
        yield x, {"class": x[:, :3].argmax(1), "age": x[:, 3] - 0.5 * x[:, 4]}


trainer = Trainer(MultiTaskModel(), {"class": 1.0, "age": 0.5})
history = trainer.fit(batches(30))
print(history[0], history[-1])
