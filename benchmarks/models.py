"""JAX models by name, as flat functions of arrays, to measure whole programs.

In `jax_models/`:

base.py            the class of models, random parameters, optimizer steps
dense.py           multi-layer perceptrons, norms with GELUs, an optimizer alone
convolutional.py   LeNet, ResNet, MobileNetV2, U-Net
transformers.py    GPT-2, BERT, ViT and their blocks
recurrent.py       LSTM, GRU, linear recurrences
"""

from collections.abc import Callable, Mapping

from jax_models import convolutional, dense, recurrent, transformers
from jax_models.base import Model

MODELS: Mapping[str, Callable[[], Model]] = {
    "mlp": dense.mlp,
    "mlp_step": dense.mlp_step,
    "mlp_adam": dense.mlp_adam,
    "norm_gelu": dense.norm_gelu,
    "adam": dense.adam_alone,
    "lenet": convolutional.lenet,
    "lenet_step": convolutional.lenet_step,
    "resnet18": convolutional.resnet18,
    "resnet_step": convolutional.resnet_step,
    "mobilenetv2": convolutional.mobilenetv2,
    "mobilenetv2_step": convolutional.mobilenetv2_step,
    "unet": convolutional.unet,
    "unet_step": convolutional.unet_step,
    "attention": transformers.attention,
    "transformer_block": transformers.transformer_block,
    "gpt2": transformers.gpt2,
    "gpt2_decode": transformers.gpt2_decode,
    "gpt2_step": transformers.gpt2_step,
    "bert": transformers.bert,
    "bert_step": transformers.bert_step,
    "vit": transformers.vit,
    "vit_step": transformers.vit_step,
    "lstm": recurrent.lstm,
    "lstm_step": recurrent.lstm_step,
    "gru": recurrent.gru,
    "recurrence": recurrent.recurrence,
}
