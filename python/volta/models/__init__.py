"""Language models and encoders that others have trained, and adapters that train a part of them.

>>> from volta.models import Llm
>>> llm = Llm.load("SmolLM2-135M-Instruct")
>>> for piece in llm.generate("The capital of France is", stream=True):
...     print(piece, end="", flush=True)
"""

from .bert import Bert, Embedder
from .causal_lm import CausalLm
from .llm import Llm
from .lora import Lora

__all__ = ["Bert", "CausalLm", "Embedder", "Llm", "Lora"]
