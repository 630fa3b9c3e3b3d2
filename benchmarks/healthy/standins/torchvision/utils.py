"""Of torchvision's tools: images that nobody looks at are neither laid out nor written."""


def save_image(tensor, fp, **options):
    pass


def make_grid(tensor, **options):
    return tensor[0]
