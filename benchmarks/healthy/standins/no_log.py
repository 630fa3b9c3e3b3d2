"""A stand-in for `torch.utils.tensorboard` that discards all logs."""


class SummaryWriter:
    def __init__(self, *args, **options):
        pass

    def __getattr__(self, name):
        return lambda *args, **options: None
