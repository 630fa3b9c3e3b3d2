"""Transfer learning: a pretrained body is frozen, a new head is trained.

Fault (stale-optimizer): the optimizer is built before the head is replaced.
"""

import copy

import torch
import torch.nn as nn
from torch.optim import lr_scheduler

torch.manual_seed(77)


class Backbone(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
        self.fc = nn.Linear(16, num_classes)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


pretrained = Backbone().state_dict()

model_conv = Backbone()
model_conv.load_state_dict(pretrained)
for param in model_conv.parameters():
    param.requires_grad = False
# faulty: optimizer_conv = torch.optim.SGD(model_conv.fc.parameters(), lr=0.05, momentum=0.9)

# Parameters of newly constructed modules have requires_grad=True by default
num_ftrs = model_conv.fc.in_features
model_conv.fc = nn.Linear(num_ftrs, 2)

criterion = nn.CrossEntropyLoss()
optimizer_conv = torch.optim.SGD(model_conv.fc.parameters(), lr=0.05, momentum=0.9)  # healthy
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_conv, step_size=2, gamma=0.1)


def train_model(model, criterion, optimizer, scheduler, num_epochs=3):
    best_model_wts, best_acc = copy.deepcopy(model.state_dict()), 0.0
    for epoch in range(num_epochs):
        model.train()
        running_corrects = 0
        for _ in range(4):
            labels = torch.randint(0, 2, (16,))
            inputs = torch.randn(16, 3, 8, 8) + labels[:, None, None, None]
            optimizer.zero_grad()
            with torch.set_grad_enabled(True):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = criterion(outputs, labels)
                loss.backward()
                optimizer.step()  # cause
            running_corrects += torch.sum(preds == labels.data)
        scheduler.step()
        epoch_acc = running_corrects.double() / 64
        if epoch_acc > best_acc:
            best_acc, best_model_wts = epoch_acc, copy.deepcopy(model.state_dict())
        print(f"epoch {epoch} Acc: {epoch_acc:.4f}")
    model.load_state_dict(best_model_wts)
    return model


model_conv = train_model(model_conv, criterion, optimizer_conv, exp_lr_scheduler)
