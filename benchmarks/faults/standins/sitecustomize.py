"""Python imports this module when it starts: programs for Keras of 2015 to 2021 then run on Keras 3 with PyTorch."""

from old_keras import install

install()
