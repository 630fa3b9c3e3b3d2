"""Kinds of findings that `gl.watch` reports over many steps."""

from __future__ import annotations

from gradlab.explore.doctor.registry import declare

declare(
    "stopped-learning",
    meaning="In a watched training, the gradient of a layer became exactly 0 and stayed 0.",
    why="""
        The weights of the layer no longer change. Usually one step was so large that every unit of a ReLU became negative for all
        examples. Its derivative is 0 there, so no later gradient moves it back.
    """,
    remedy="""
        Look at the batches just before the layer stopped: one often has an outlier. Use a smaller learning rate, clip the
        gradients, or use an activation whose derivative is never 0, such as LeakyReLU.
    """,
    fault="""
        import torch
        from torch import nn

        import gradlab as gl

        torch.manual_seed(0)
        x = torch.rand(400, 4)
        y = x.sum(1, keepdim=True)
        y[200] = -999.0  # the code of a missing value
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1), nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with gl.watch(model, optimizer) as w:
            for step in range(400):
                batch = torch.arange(10) + 10 * step % 400
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x[batch]), y[batch])
                loss.backward()
                optimizer.step()
                w.log(loss)
        print(w.findings)
    """,
    healthy="""
        import torch
        from torch import nn

        import gradlab as gl

        torch.manual_seed(0)
        x = torch.rand(400, 4)
        y = x.sum(1, keepdim=True)
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1), nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with gl.watch(model, optimizer) as w:
            for step in range(400):
                batch = torch.arange(10) + 10 * step % 400
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x[batch]), y[batch])
                loss.backward()
                optimizer.step()
                w.log(loss)
        print(w.findings)
    """,
)

declare(
    "loss-swings",
    meaning="The loss of a watched training does not decrease, and a step changes weights by a tenth of their norm or more.",
    why="""
        Steps of this size jump across the minimum, so the loss does not decrease on average. Usual steps change weights by about
        a thousandth of their norm.
    """,
    remedy="""
        Use a smaller learning rate: divide it by 10 until the loss decreases. If the loss decreased at first, use a scheduler
        that reduces the learning rate during the training.
    """,
    fault="""
        import torch
        from torch import nn

        import gradlab as gl

        torch.manual_seed(0)
        x = torch.randn(64, 6)
        y = torch.sin(x[:, :1])
        model = nn.Sequential(
            nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
        with gl.watch(model, optimizer) as w:
            for step in range(400):
                batch = torch.randint(64, (16,))
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x[batch]), y[batch])
                loss.backward()
                optimizer.step()
                w.log(loss)
        print(w.findings)
    """,
    healthy={"lr=1.0": "lr=0.01"},
)

declare(
    "diverged",
    meaning="The loss of a watched training has grown to more than 10 times its first and 100 times its smallest values.",
    why="""
        With learning rate η, a step of gradient descent multiplies the error along a direction of curvature λ by 1 - ηλ. If ηλ >
        2, the error grows at every step, until the loss overflows.
    """,
    remedy="Use a smaller learning rate, or clip the gradients before each step: `clip_grad_norm_(model.parameters(), 1.0)`.",
    fault="""
        import torch
        from torch import nn

        import gradlab as gl

        torch.manual_seed(0)
        x = torch.randn(64, 6)
        y = x.sum(1, keepdim=True)
        model = nn.Linear(6, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.6)
        with gl.watch(model, optimizer) as w:
            for step in range(80):
                batch = torch.randint(0, 64, (6,))
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x[batch]), y[batch])
                loss.backward()
                optimizer.step()
                w.log(loss)
        print(w.findings)
    """,
    healthy={"lr=0.6": "lr=0.05"},
)
