"""The models that tests export: each small, and each with something of its own."""

import torch
from torch import nn
from torch.nn import functional as F

from sojourn import metrics
from sojourn.torch import Task


def classified(logits, y):
    """Sums of loss and accuracy for `logits`, `[rows, classes]`, and `y`, `[rows]`."""
    loss = F.cross_entropy(logits, y, reduction="sum")
    return {"loss": loss, "accuracy": (logits.argmax(1) == y).sum()}


class Classifier(Task):
    """A task whose only module gives logits for `batch.x`."""

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)

    def evaluate(self, batch):
        return classified(self.net(batch.x), batch.y)


class Mlp(Task):
    """The built-in `mlp`, under its tensors' names."""

    def setup(self, c, data):
        sizes = [data.x.shape[0], *c.hidden, data.classes]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def predict(self, batch):
        flow = batch.x
        for layer in self.layers[:-1]:
            flow = F.relu(layer(flow), inplace=True)
        return self.layers[-1](flow)

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.y)

    def evaluate(self, batch):
        return classified(self.predict(batch), batch.y)


class Cnn(Task):
    """The built-in `cnn`, under its tensors' names."""

    def setup(self, c, data):
        channels, height, width = data.x.shape
        layers = []
        for outputs in c.channels:
            layers.append(nn.Conv2d(channels, outputs, 3, padding=1))
            channels, height, width = outputs, height // 2, width // 2
        layers.append(nn.Linear(channels * height * width, data.classes))
        self.layers = nn.ModuleList(layers)

    def predict(self, batch):
        flow = batch.x
        for layer in self.layers[:-1]:
            flow = F.max_pool2d(F.relu(layer(flow), inplace=True), 2)
        return self.layers[-1](flow.flatten(1))

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.y)

    def evaluate(self, batch):
        return classified(self.predict(batch), batch.y)


class Vgg16(Classifier):
    """VGG16 with batch norm, narrow, for images of 32 by 32."""

    PLAN = [1, 1, "pool", 2, 2, "pool", 4, 4, 4, "pool", 8, 8, 8, "pool", 8, 8, 8, "pool"]

    def setup(self, c, data):
        channels, layers = data.x.shape[0], []
        for step in self.PLAN:
            if step == "pool":
                layers.append(nn.MaxPool2d(2))
                continue
            outputs = step * c.width
            layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
            channels = outputs
        layers += [nn.Flatten(), nn.Linear(channels, 16), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(16, data.classes)]
        self.net = nn.Sequential(*layers)


class Bottleneck(nn.Module):
    """A residual block of version 1.5: the stride is in the middle convolution."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        skip = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        x += skip
        return self.relu(x)


class Resnet50(Classifier):
    """ResNet-50 v1.5, narrow."""

    def setup(self, c, data):
        layers = [nn.Conv2d(data.x.shape[0], c.width, 7, 2, 3, bias=False), nn.BatchNorm2d(c.width), nn.ReLU(inplace=True)]
        layers.append(nn.MaxPool2d(3, 2, 1))
        inputs = c.width
        for stage, blocks in enumerate([3, 4, 6, 3]):
            width = c.width << stage
            for block in range(blocks):
                layers.append(Bottleneck(inputs, width, 2 if stage > 0 and block == 0 else 1))
                inputs = 4 * width
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, data.classes)]
        self.net = nn.Sequential(*layers)


class Recurrent(Task):
    """Two layers of an LSTM or GRU, both ways, over tokens `[rows, length]`."""

    def setup(self, c, data):
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[c.kind]
        self.embedding = nn.Embedding(c.vocabulary, c.width)
        self.recurrent = kind(c.width, c.width, 2, batch_first=True, dropout=c.dropout, bidirectional=True)
        self.head = nn.Linear(2 * c.width, data.classes)

    def predict(self, batch):
        outputs, _ = self.recurrent(self.embedding(batch.x.long()))
        return self.head(outputs[:, -1])

    def loss(self, batch):
        return F.cross_entropy(self.predict(batch), batch.y)

    def evaluate(self, batch):
        return classified(self.predict(batch), batch.y)


class LanguageModel(Task):
    """A transformer that predicts the next token; the head's weights are the embedding's."""

    def setup(self, c, data):
        (length,) = data.x.shape
        self.embedding = nn.Embedding(c.vocabulary, c.width)
        self.places = nn.Parameter(torch.zeros(1, length - 1, c.width))
        layer = nn.TransformerEncoderLayer(
            c.width, 2, 2 * c.width, c.dropout, batch_first=True, norm_first=True, activation="gelu"
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(c.width, c.vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length - 1), persistent=False)

    def logits(self, tokens):
        """`[rows, length - 1, vocabulary]` for `tokens`, `[rows, length - 1]`."""
        flow = self.encoder(self.embedding(tokens) + self.places, mask=self.mask, is_causal=True)
        return self.head(flow)

    def loss(self, batch):
        tokens = batch.x.long()
        return F.cross_entropy(self.logits(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    def predict(self, batch):
        return self.logits(batch.x.long()[:, 1:])[:, -1]


class Vae(Task):
    """A variational auto-encoder of images, with noise from `randn_like`, and a running mean of what it encodes."""

    def setup(self, c, data):
        channels, side, _ = data.x.shape
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, c.width, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(c.width * side**2 // 4, 2 * c.hidden)
        )
        self.decoder = nn.Sequential(
            nn.Linear(c.hidden, c.width * side**2 // 4), nn.ReLU(), nn.Unflatten(1, (c.width, side // 2, side // 2)),
            nn.ConvTranspose2d(c.width, channels, 4, 2, 1), nn.Sigmoid(),
        )
        self.register_buffer("center", torch.zeros(c.hidden))

    def loss(self, batch):
        mean, log_var = self.encoder(batch.x).chunk(2, 1)
        if self.training:
            with torch.no_grad():
                self.center.mul_(0.9).add_(mean.mean(0), alpha=0.1)
        hidden = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        error = F.binary_cross_entropy(self.decoder(hidden), batch.x, reduction="sum")
        divergence = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum()
        return (error + divergence) / batch.rows

    def predict(self, batch):
        mean, _ = self.encoder(batch.x).chunk(2, 1)
        return self.decoder(mean)


class Captioner(Task):
    """A convolutional network's features go first into an LSTM that writes a text.

    A row is an image of `3 x side x side` numbers, then `length` tokens.
    """

    def setup(self, c, data):
        self.image = (3, c.side, c.side)
        self.cnn = nn.Sequential(
            nn.Conv2d(3, c.width, 3, 2, 1), nn.BatchNorm2d(c.width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(c.width, c.width),
        )
        self.embedding = nn.Embedding(c.vocabulary, c.width, padding_idx=0)
        self.lstm = nn.LSTM(c.width, c.width, batch_first=True)
        self.head = nn.Linear(c.width, c.vocabulary)
        self.register_buffer("weights", torch.linspace(0.5, 1.5, c.vocabulary), persistent=False)

    def logits(self, x):
        """`[rows, length, vocabulary]`, and the tokens, `[rows, length]`."""
        pixels = 3 * self.image[1] ** 2
        tokens = x[:, pixels:].long()
        features = self.cnn(x[:, :pixels].unflatten(1, self.image))
        flow = torch.cat([features[:, None], self.embedding(tokens[:, :-1])], 1)
        return self.head(self.lstm(flow)[0]), tokens

    def loss(self, batch):
        logits, tokens = self.logits(batch.x)
        return F.cross_entropy(logits.transpose(1, 2), tokens, self.weights)

    def predict(self, batch):
        return self.logits(batch.x)[0]


class Gan(Task):
    """Two networks against each other."""

    stages = ["discriminator", "generator"]

    def setup(self, c, data):
        (features,) = data.x.shape
        self.noise = c.noise
        self.generator = nn.Sequential(nn.Linear(c.noise, c.width), nn.ReLU(), nn.Linear(c.width, features))
        self.discriminator = nn.Sequential(nn.Linear(features, c.width), nn.LeakyReLU(0.2), nn.Linear(c.width, 1))

    def fake(self, batch):
        """Made-up rows, `[rows, features]`."""
        return self.generator(torch.randn(batch.rows, self.noise))

    def loss_discriminator(self, batch):
        real = self.discriminator(batch.x)
        fake = self.discriminator(self.fake(batch).detach())
        ones, zeros = torch.ones_like(real), torch.zeros_like(fake)
        return F.binary_cross_entropy_with_logits(real, ones) + F.binary_cross_entropy_with_logits(fake, zeros)

    def loss_generator(self, batch):
        fake = self.discriminator(self.fake(batch))
        return F.binary_cross_entropy_with_logits(fake, torch.ones_like(fake))


class Counted(Task):
    """A classifier that gives both arrays."""

    def setup(self, c, data):
        self.net = nn.Linear(4, 3)

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)

    def evaluate(self, batch):
        logits = self.net(batch.x)
        first = logits.softmax(1)[:, 0]
        return {
            "loss": F.cross_entropy(logits, batch.y, reduction="sum"),
            "pairs": metrics.confusion(logits.argmax(1), batch.y, 3),
            "scores": metrics.score_histogram(first, batch.y == 0, bins=50),
        }


def image(channels, side, classes=10):
    """Images with a class each."""
    return {"x": {"dtype": "F32", "shape": [channels, side, side]}, "y": {"dtype": "I64", "shape": []}, "classes": classes}


def flat(numbers, classes=10):
    """Rows of `numbers` numbers with a class each."""
    return {"x": {"dtype": "F32", "shape": [numbers]}, "y": {"dtype": "I64", "shape": []}, "classes": classes}


# Each fixture's class, values of a trial, data, and how its `x` is made: the first number of each row that is a token,
# and the number of tokens that there are.
FIXTURES = {
    "mlp": (Mlp, {"hidden": [32, 16]}, flat(20), None),
    "cnn": (Cnn, {"channels": [4, 8]}, image(1, 8), None),
    "vgg16": (Vgg16, {"width": 2}, image(3, 32), None),
    "resnet50": (Resnet50, {"width": 1}, image(3, 32), None),
    "lstm": (Recurrent, {"kind": "lstm", "vocabulary": 50, "width": 16, "dropout": 0.2}, flat(12, 5), (0, 50)),
    "gru": (Recurrent, {"kind": "gru", "vocabulary": 50, "width": 16, "dropout": 0.2}, flat(12, 5), (0, 50)),
    "language_model": (LanguageModel, {"vocabulary": 50, "width": 16, "dropout": 0.1}, flat(13), (0, 50)),
    "vae": (Vae, {"width": 4, "hidden": 8}, image(1, 12), None),
    "captioner": (Captioner, {"side": 8, "vocabulary": 30, "width": 16}, flat(3 * 64 + 6), (3 * 64, 30)),
    "gan": (Gan, {"noise": 8, "width": 16}, flat(10), None),
    "counted": (Counted, {}, flat(4, 3), None),
}
