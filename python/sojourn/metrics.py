"""Arrays that `evaluate` may give beside numbers, from which the server makes metrics.

    def evaluate(self, batch):
        logits = self.net(batch.x)
        return {
            "loss": F.cross_entropy(logits, batch.y, reduction="sum"),
            "pairs": metrics.confusion(logits.argmax(1), batch.y, 10),
        }

They are added up over batches and shards like other sums. `[metrics]` of the job file says what they become:
`f1 = { of = "pairs", as = "macro_f1" }`.
"""

import torch


def confusion(predicted, labels, classes):
    """The confusion matrix of some rows, `[classes, classes]`: a line for each label, a column for each predicted class.

    `predicted` and `labels` are tensors of one shape, of classes from 0. Where either is another number, such as -100, nothing
    is counted.
    """
    return pairs(labels, classes, predicted, classes)


def score_histogram(scores, labels, bins=1000):
    """How many rows have which score, `[2, bins]`: rows with the label 0, then rows with the label 1.

    `scores` and `labels` are tensors of one shape. Scores are from 0 to 1 and go to the nearest of `bins` values, 0 and 1 among
    them; those beyond go to the last. The area under the ROC curve that follows is exact up to the order of rows of one bin,
    of which each pair counts half.
    """
    if bins < 2:
        raise ValueError(f"score_histogram needs 2 bins, not {bins}")
    nearest = (scores.detach().clamp(0, 1) * (bins - 1)).round()
    return pairs(labels, 2, nearest, bins)


def pairs(lines, height, columns, width):
    """How many places have which two numbers, `[height, width]`: `lines` has the first, `columns` the second."""
    return one_of(lines, height).t() @ one_of(columns, width)


def one_of(numbers, count):
    """`[places, count]`: 1 in the column that is the place's number, else 0."""
    return (numbers.detach().flatten().unsqueeze(1) == torch.arange(count, device=numbers.device)).float()
