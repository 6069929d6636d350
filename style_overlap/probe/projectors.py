"""Two linear projectors, one a version, into a space where texts of one content meet.

Trained with the symmetric CLIP loss on frozen features: in a batch, each text must be told its
own counterpart among all others, both ways, by cosine similarity times a learned scale
(1 / temperature). Linear, so that what is found was in the features; early-stopped on validation
contents of its own, so that it is found in texts that the projectors have not seen.

Training starts from whitened features and their canonical directions (``whitening``): these follow
a rotation of the features, so that a rotation changes no result, and the loss finds from there
what it would take thousands of steps to find from random weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F  # noqa: N812

from style_overlap.errors import UsageError
from style_overlap.probe.pairs import Features, Pairs
from style_overlap.probe.precision import full_precision
from style_overlap.probe.retrieval import Retrieval, retrieve
from style_overlap.probe.whitening import Whitening, paired_axes

MAX_LOG_SCALE = math.log(100)
"""CLIP's bound on the log of the scale."""

_FIRST_LOG_SCALE = math.log(1 / 0.07)  # CLIP's


@dataclass(frozen=True)
class Settings:
    """How projectors are trained.

    Attributes:
        dim: dimensions of the shared space.
        epochs: at most so many.
        batch: pairs in a batch, at most: each text's negatives.
        lr: learning rate of Adam.
        patience: epochs in a row without a better validation score after which to stop.
        ridge: of the whitening, see ``whitening.Whitening``. Of the h of a MiniLM (d = 384) after
            three epochs at alpha 0, with 320, 640 and 1,280 training contents, 0.1 found .41, .65
            and .76 of 563 held-out ones, 1 found .61, .70 and .79, and 10 found .62, .72 and .77.
    """

    dim: int = 256
    epochs: int = 100
    batch: int = 512
    lr: float = 3e-3
    patience: int = 10
    ridge: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot train."""
        least = {"dim": 1, "epochs": 0, "batch": 2, "patience": 1}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise UsageError(f"{name} is {getattr(self, name)}: expected at least {value}")
        for name in ("lr", "ridge"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name)}: expected more than 0")


@dataclass(frozen=True, eq=False)
class Projector:
    """x -> (x - mean) @ weight in fp32; mean has shape (d,), weight (d, p)."""

    mean: torch.Tensor
    weight: torch.Tensor

    def __call__(self, features: Features) -> torch.Tensor:
        """Project features of shape (n, d) to shape (n, p)."""
        x = torch.as_tensor(features).to(self.mean)
        with torch.no_grad(), full_precision(x.device):
            return (x - self.mean) @ self.weight


@dataclass(frozen=True, eq=False)
class Projectors:
    """Two projectors that were trained together.

    Attributes:
        a: projector of the first version.
        b: projector of the second.
        log_scale: learned log of the scale, at most ln 100.
        best_epoch: the epoch, from 1, whose weights these are; 0 if nothing could be trained.
        losses: training and validation loss of every epoch that was trained.
        constant: versions whose features are constant: ``a``, ``b`` or ``ab``. They project to
            zero, which retrieval scores as chance.
    """

    a: Projector
    b: Projector
    log_scale: float
    best_epoch: int
    losses: list[tuple[float, float]] = field(repr=False)
    constant: str = ""

    def retrieve(self, pairs: Pairs) -> Retrieval | None:
        """Retrieval among the projections of held-out pairs."""
        return retrieve(self.a(pairs.a), self.b(pairs.b), groups=pairs.groups)


def fit(
    train: Pairs, validation: Pairs, *, seed: int, settings: Settings | None = None
) -> Projectors:
    """Train a pair of projectors.

    Everything is fp32 and has gradients, whatever the caller's autocast or gradient mode, and no
    global random state is touched: a probe in the middle of a training run does not change it.

    Args:
        train: pairs to learn from. Other texts of a text's group are no negatives of it.
        validation: pairs for early stopping.
        seed: of the batches; the first weights follow from the features.

    Raises:
        UsageError: versions of other dimensions in validation, fewer than two contents in either,
            or a loss that is not finite.
    """
    chosen = settings or Settings()
    for what, pairs in (("training", train), ("validation", validation)):
        if pairs.n_groups < 2:
            raise UsageError(
                f"{len(pairs)} {what} texts with {pairs.n_groups} contents: projectors need two"
            )
    with _plain_fp32(train.a.device):
        white_a, white_b = Whitening.of(train.a, chosen.ridge), Whitening.of(train.b, chosen.ridge)
        constant = ("a" if white_a.is_constant else "") + ("b" if white_b.is_constant else "")
        weights, best, losses = _train(
            Pairs(white_a(train.a), white_b(train.b), train.groups),
            Pairs(white_a(validation.a), white_b(validation.b), validation.groups),
            seed,
            replace(chosen, epochs=0) if constant else chosen,
        )
        return Projectors(
            a=Projector(white_a.mean, white_a.transform @ weights.a),
            b=Projector(white_b.mean, white_b.transform @ weights.b),
            log_scale=float(weights.log_scale),
            best_epoch=best,
            losses=losses,
            constant=constant,
        )


@contextmanager
def _plain_fp32(device: torch.device) -> Iterator[None]:
    """Full precision and gradients, also within the caller's inference mode."""
    with torch.inference_mode(False), torch.enable_grad(), full_precision(device):
        yield


@dataclass(frozen=True, eq=False)
class _Weights:
    a: torch.Tensor
    b: torch.Tensor
    log_scale: torch.Tensor

    def copy(self) -> _Weights:
        return _Weights(*(x.detach().clone() for x in (self.a, self.b, self.log_scale)))


def _train(
    train: Pairs, validation: Pairs, seed: int, settings: Settings
) -> tuple[_Weights, int, list[tuple[float, float]]]:
    """Best weights, their epoch, and every epoch's training and validation loss."""
    first = paired_axes(train.a, train.b, settings.dim)
    log_scale = torch.tensor(_FIRST_LOG_SCALE, device=train.a.device)
    weights = _Weights(*(x.requires_grad_() for x in (*first, log_scale)))
    optimiser = torch.optim.Adam([weights.a, weights.b, weights.log_scale], lr=settings.lr)
    order = torch.Generator().manual_seed(seed)
    groups = torch.from_numpy(train.groups).to(train.a.device)
    val_groups = torch.from_numpy(validation.groups).to(train.a.device)
    n_batches = math.ceil(len(train) / settings.batch)
    best, best_score, kept = 0, (-math.inf, -math.inf), weights.copy()
    losses: list[tuple[float, float]] = []
    for epoch in range(1, settings.epochs + 1):
        summed = 0.0
        shuffled = torch.randperm(len(train), generator=order).to(train.a.device)
        for rows in shuffled.tensor_split(n_batches):
            loss = clip_loss(
                train.a[rows] @ weights.a,
                train.b[rows] @ weights.b,
                weights.log_scale,
                groups[rows],
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                weights.log_scale.clamp_(max=MAX_LOG_SCALE)
            summed += loss.item() * len(rows)
        with torch.no_grad():
            a, b = validation.a @ weights.a, validation.b @ weights.b
            val_loss = clip_loss(a, b, weights.log_scale, val_groups).item()
            losses.append((summed / len(train), val_loss))
            if not all(map(math.isfinite, losses[-1])):
                raise UsageError(
                    f"the projectors' loss is {losses[-1]} in epoch {epoch} at lr={settings.lr}: "
                    "give a smaller one"
                )
            found = retrieve(a, b, groups=validation.groups)
        score = (found.top1 if found else 0.0, -val_loss)
        if score > best_score:
            best, best_score, kept = epoch, score, weights.copy()
        elif epoch - best >= settings.patience:
            break
    return kept, best, losses


def clip_loss(
    a: torch.Tensor, b: torch.Tensor, log_scale: torch.Tensor, groups: torch.Tensor
) -> torch.Tensor:
    """Symmetric CLIP loss: cross-entropy of each text's counterpart, both ways, averaged.

    Args:
        a: projected texts of one version, shape (n, p).
        b: their counterparts, shape (n, p).
        log_scale: log of the factor of the cosines, a scalar.
        groups: content group of each row, shape (n,); others of the group are no negatives.
    """
    logits = log_scale.exp() * F.normalize(a, dim=1) @ F.normalize(b, dim=1).T
    same = groups[:, None] == groups[None, :]
    same.fill_diagonal_(False)
    logits = logits.masked_fill(same, -math.inf)
    target = torch.arange(len(a), device=a.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
