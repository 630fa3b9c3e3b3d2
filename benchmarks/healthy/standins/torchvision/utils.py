"""Tools of torchvision that do nothing: the images are not needed."""


def save_image(tensor, fp, **options):
    pass


def make_grid(tensor, **options):
    return tensor[0]
