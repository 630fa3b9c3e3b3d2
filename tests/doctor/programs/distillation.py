"""Knowledge distillation: a small student learns from a frozen teacher's soft targets.

Fault (frozen): the loop that freezes the teacher freezes the student.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(10)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 16), nn.ReLU())
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.body(x))


teacher = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
student = Student()

teacher.eval()
# faulty: for param in student.parameters():
for param in teacher.parameters():  # healthy
    param.requires_grad = False

optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
ce_loss = nn.CrossEntropyLoss()
T, alpha = 2.0, 0.7

student.train()
for step in range(30):
    inputs, labels = torch.randn(32, 12), torch.randint(0, 5, (32,))
    optimizer.zero_grad()
    with torch.no_grad():
        teacher_logits = teacher(inputs)
    student_logits = student(inputs)
    soft_targets = F.softmax(teacher_logits / T, dim=-1)
    soft_prob = F.log_softmax(student_logits / T, dim=-1)
    soft_loss = F.kl_div(soft_prob, soft_targets, reduction="batchmean") * T**2
    loss = alpha * soft_loss + (1 - alpha) * ce_loss(student_logits, labels)
    loss.backward()
    optimizer.step()
print("loss", loss.item())
