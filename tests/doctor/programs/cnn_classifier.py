"""An image classifier: two convolutions, cross entropy, accuracy on held-out images.

Fault (double-softmax): the network ends in a softmax, and cross entropy takes another one.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)
BATCH_SIZE = 32
EPOCHS = 3


def make_images(n):
    """Bright bars, upright or lying, in noise."""
    images, labels = 0.3 * torch.randn(n, 1, 12, 12), torch.randint(0, 3, (n,))
    for i, label in enumerate(labels):
        at = torch.randint(2, 10, ()).item()
        if label == 0:
            images[i, 0, at] += 1.5
        elif label == 1:
            images[i, 0, :, at] += 1.5
    return images, labels


class Net(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 3 * 3, 32)
        self.fc2 = nn.Linear(32, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(x.flatten(1))
        x = F.relu(self.fc1(x))
        return self.fc2(x)  # healthy
        # faulty: return F.softmax(self.fc2(x), dim=1)


train_loader = DataLoader(TensorDataset(*make_images(192)), batch_size=BATCH_SIZE, shuffle=True)
test_images, test_labels = make_images(64)

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    model.train()
    running_loss = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)  # cause
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(test_images).argmax(1) == test_labels).float().mean().item()
    print(f"epoch {epoch + 1}: loss {running_loss / len(train_loader):.3f}, test accuracy {accuracy:.2%}")
