"""A stand-in for `torch.utils.tensorboard`: what is logged is looked at by nobody."""


class SummaryWriter:
    def __init__(self, *args, **options):
        pass

    def __getattr__(self, name):
        return lambda *args, **options: None
