"""Makes PyTorch say that it can use a GPU. Whatever does use one fails, which a rehearsal has to bear."""
import torch

torch.cuda.is_available = lambda: True
