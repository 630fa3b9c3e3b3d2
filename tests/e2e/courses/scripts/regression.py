"""Linear and softmax regression from scratch: data, batches, model, loss, stochastic gradient descent."""

import random

import torch
import torch.nn.functional as F


def synthetic_data(w, b, num_examples):
    X = torch.normal(0, 1, (num_examples, len(w)))
    y = torch.matmul(X, w) + b
    y += torch.normal(0, 0.01, y.shape)
    return X, y.reshape((-1, 1))


def data_iter(batch_size, features, labels):
    indices = list(range(len(features)))
    random.shuffle(indices)
    for i in range(0, len(features), batch_size):
        batch = torch.tensor(indices[i : min(i + batch_size, len(features))])
        yield features[batch], labels[batch]


def sgd(params, lr, batch_size):
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad / batch_size
            param.grad.zero_()


torch.manual_seed(42)
random.seed(0)
true_w, true_b = torch.tensor([2, -3.4]), 4.2
features, labels = synthetic_data(true_w, true_b, 200)
print("features:", features[0], "\nlabel:", labels[0])
w = torch.normal(0, 0.01, size=(2, 1), requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for epoch in range(3):
    for X, y in data_iter(10, features, labels):
        loss = (torch.matmul(X, w) + b - y.reshape((X @ w).shape)) ** 2 / 2
        loss.sum().backward()
        sgd([w, b], 0.03, 10)
    with torch.no_grad():
        train = ((features @ w + b - labels) ** 2 / 2).mean()
        print(f"epoch {epoch + 1}, loss {float(train):f}"[:24])
print(f"error in estimating w: {(true_w - w.reshape(true_w.shape)).abs().max().item() < 0.05}")

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(X.sum(0, keepdim=True), X.sum(1, keepdim=True))
torch.manual_seed(7)
X = torch.normal(0, 1, (2, 5))
p = torch.exp(X) / torch.exp(X).sum(1, keepdim=True)
print(p, p.sum(1))
y = torch.tensor([0, 2])
y_hat = torch.tensor([[0.1, 0.3, 0.6], [0.3, 0.2, 0.5]])
print(y_hat[[0, 1], y], -torch.log(y_hat[range(len(y_hat)), y]))
print(float((y_hat.argmax(axis=1).type(y.dtype) == y).type(torch.float32).sum()) / len(y))

inputs, targets = torch.randn(60, 4), torch.randint(0, 3, (60,))
inputs += F.one_hot(targets, 3).float() @ torch.randn(3, 4) * 2
W = (torch.randn(4, 3) * 0.1).requires_grad_()
bias = torch.zeros(3, requires_grad=True)
for step in range(40):
    loss = F.cross_entropy(inputs @ W + bias, targets)
    loss.backward()
    with torch.no_grad():
        for parameter in (W, bias):
            parameter -= 0.5 * parameter.grad
            parameter.grad = None
    if step % 10 == 0:
        print(step, f"{loss.item():.3f}")
predicted = (inputs @ W + bias).argmax(dim=1)
print("accuracy", (predicted == targets).float().mean())
print(torch.bincount(predicted, minlength=3), torch.unique(targets), F.softmax(inputs[:2] @ W, dim=1).sum(1))
