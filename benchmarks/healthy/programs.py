"""Healthy public programs, and the changes that make them run here: smaller sizes, made-up data, stand-ins and a seed."""

from __future__ import annotations

from benchmarks.healthy.program import Program

REPOSITORIES = {
    "examples": "pytorch/examples",
    "tutorials": "pytorch/tutorials",
    "nanoGPT": "karpathy/nanoGPT",
    "cleanrl": "vwxyzjn/cleanrl",
    "PyTorch-GAN": "eriklindernoren/PyTorch-GAN",
    "nn-zero-to-hero": "karpathy/nn-zero-to-hero",
    "uvadlc_notebooks": "phlippe/uvadlc_notebooks",
    "pytorch-deep-learning": "mrdbourke/pytorch-deep-learning",
    "machine-learning-book": "rasbt/machine-learning-book",
}

NO_LOG = "torch.utils.tensorboard=>no_log"
SEED = "import torch\n=>import torch; torch.manual_seed({seed})\n"
SEED_TOO = "import torch.nn.functional as F=>import torch.nn.functional as F; torch.manual_seed({seed})"


def cleanrl(name: str, *arguments: str, finds: tuple[str, ...] = (), useless: tuple[str, ...] = ()) -> Program:
    return Program(
        f"cleanrl/cleanrl/{name}.py",
        ("--no-cuda", "--seed", "{seed}", *arguments),
        (NO_LOG,),
        ("cleanrl_utils/buffers.py",),
        finds=finds,
        useless=useless,
    )


def gan(name: str, *arguments: str, images: int = 1024, finds: tuple[str, ...] = (), useless: tuple[str, ...] = ()) -> Program:
    return Program(
        f"PyTorch-GAN/implementations/{name}/{name}.py",
        ("--n_epochs", "8", "--batch_size", "32", *arguments),
        (SEED,),
        images=images,
        finds=finds,
        useless=useless,
    )


def makemore(part: str, *substitutions: str) -> Program:
    return Program(
        f"nn-zero-to-hero/lectures/makemore/makemore_part{part}.ipynb",
        substitutions=(SEED_TOO, *substitutions),
        data={"names.txt": "names"},
    )


TWICE = ("With softmax applied twice",)
TARGETS = ("target",)
PENDULUM = ("--env-id", "Pendulum-v1")

PROGRAMS = (
    Program("examples/regression/main.py", substitutions=(SEED,)),
    Program("examples/mnist/main.py", ("--epochs", "2", "--seed", "{seed}")),
    Program("examples/mnist_rnn/main.py", ("--epochs", "2", "--seed", "{seed}")),
    Program(
        "examples/time_sequence_prediction/train.py",
        ("--steps", "2"),
        (
            "'traindata.pt'=>'traindata.pt', weights_only=False",
            "lr=0.8=>lr=0.8, max_iter=8",
            "future = 1000=>future = 20",
            ":-1]=>:200]",
            "1:]=>1:201]",
        ),
        before=("time_sequence_prediction/generate_sine_wave.py",),
    ),
    Program(
        "examples/word_language_model/main.py",
        ("--epochs", "2", "--seed", "{seed}", "--emsize", "64", "--nhid", "64", "--data", "."),
        beside=("word_language_model/data.py", "word_language_model/model.py"),
        data={"train.txt": "text", "valid.txt": "short text", "test.txt": "short text"},
    ),
    Program("examples/vae/main.py", ("--epochs", "5", "--seed", "{seed}")),
    Program(
        "examples/siamese_network/main.py",
        ("--epochs", "2", "--seed", "{seed}"),
        images=1024,
    ),
    Program("examples/reinforcement_learning/reinforce.py", ("--seed", "{seed}"), ("count(1)=>range(1, 81)",)),
    Program("examples/reinforcement_learning/actor_critic.py", ("--seed", "{seed}"), ("count(1)=>range(1, 81)",)),
    Program("tutorials/beginner_source/basics/optimization_tutorial.py", (), (SEED, "epochs = 10=>epochs = 5")),
    Program("tutorials/beginner_source/examples_nn/polynomial_optim.py", (), (SEED,)),
    Program(
        "nanoGPT/train.py",
        (
            "config/train_shakespeare_char.py",
            *("--device=cpu", "--compile=False", "--eval_interval=50", "--eval_iters=2", "--log_interval=10", "--block_size=64"),
            *("--batch_size=8", "--n_layer=4", "--n_head=4", "--n_embd=64", "--max_iters=100", "--lr_decay_iters=100"),
            *("--dropout=0.0", "--warmup_iters=10"),
        ),
        beside=("model.py", "configurator.py", "config"),
        data={"data/shakespeare_char/input.txt": "text"},
        before=("data/shakespeare_char/prepare.py",),
    ),
    cleanrl("dqn", "--total-timesteps", "4000", "--learning-starts", "500", "--buffer-size", "4000", useless=TARGETS),
    cleanrl("c51", "--total-timesteps", "3000", "--learning-starts", "500", "--buffer-size", "4000", useless=TARGETS),
    cleanrl("ddpg_continuous_action", *PENDULUM, "--total-timesteps", "1000", "--learning-starts", "300", useless=TARGETS),
    cleanrl("td3_continuous_action", *PENDULUM, "--total-timesteps", "1000", "--learning-starts", "300", useless=TARGETS),
    cleanrl(
        "sac_continuous_action",
        *PENDULUM,
        "--total-timesteps",
        "800",
        "--learning-starts",
        "300",
        useless=("to a Python number",),
    ),
    cleanrl("ppo", "--total-timesteps", "4096"),
    cleanrl("ppo_continuous_action", *PENDULUM, "--total-timesteps", "4096"),
    gan("gan"),
    gan("wgan", useless=("sum is exactly 0", "without their history")),
    gan("wgan_gp", useless=("sum is exactly 0", "without their history")),
    gan("dcgan", "--n_epochs", "2", images=512),
    gan("lsgan", "--n_epochs", "2", images=256),
    gan("acgan", "--n_epochs", "2", images=256, finds=TWICE),
    gan("infogan", "--n_epochs", "2", images=192, finds=TWICE),
    makemore("2_mlp", "range(200000)=>range(2000)"),
    makemore("3_bn", "max_steps = 200000=>max_steps = 2000"),
    makemore("4_backprop", "max_steps = 200000=>max_steps = 1000"),
    makemore("5_cnn1", "max_steps = 200000=>max_steps = 1000"),
    Program(
        "uvadlc_notebooks/docs/tutorial_notebooks/tutorial2/Introduction_to_PyTorch.ipynb",
        substitutions=("num_epochs=100=>num_epochs=20", NO_LOG, "tqdm.notebook=>tqdm"),
    ),
    Program(
        "uvadlc_notebooks/docs/tutorial_notebooks/tutorial3/Activation_Functions.ipynb",
        substitutions=(
            "tqdm.notebook=>tqdm",
            "[50000, 10000]=>[1536, 512]",
            "max_epochs=50=>max_epochs=1",
            "urllib.request.urlretrieve=>print",
            "kde=True=>kde=False",
        ),
    ),
    Program(
        "uvadlc_notebooks/docs/tutorial_notebooks/tutorial5/Inception_ResNet_DenseNet.ipynb",
        substitutions=(
            "urllib.request.urlretrieve=>print",
            "[45000, 5000]=>[320, 64]",
            "batch_size=128=>batch_size=32",
            "num_workers=4=>num_workers=0",
            "max_epochs=180=>max_epochs=1",
            "[3,3,3]=>[1,1,1]",
            "[6,6,6,6]=>[2,2,2,2]",
        ),
        images=384,
        sweeps=("fit",),
    ),
    Program("pytorch-deep-learning/00_pytorch_fundamentals.ipynb"),
    Program("pytorch-deep-learning/01_pytorch_workflow.ipynb"),
    Program("pytorch-deep-learning/02_pytorch_classification.ipynb", beside=("helper_functions.py",), useless=("has no effect",)),
    Program(
        "machine-learning-book/ch12/ch12_part2.ipynb",
        substitutions=("torch.load(path)=>torch.load(path, weights_only=False)",),
        finds=TWICE,
        beside=("python_environment_check.py",),
    ),
    Program(
        "machine-learning-book/ch13/ch13_part1.ipynb",
        substitutions=("num_epochs = 200=>num_epochs = 60",),
        beside=("python_environment_check.py",),
    ),
    Program(
        "machine-learning-book/ch13/ch13_part2.ipynb",
        substitutions=("http://archive.ics.uci.edu/ml/machine-learning-databases/auto-mpg/auto-mpg.data=>auto-mpg.data",),
        beside=("python_environment_check.py",),
        data={"auto-mpg.data": "cars"},
    ),
)
