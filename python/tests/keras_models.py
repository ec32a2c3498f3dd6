"""Keras models that tests export."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
from keras import layers


def cnn(c, data):
    """A convolutional network for images `[channels, height, width]`."""
    network = keras.Sequential(
        [
            keras.Input(data.x.shape),
            layers.Permute((2, 3, 1)),
            layers.Conv2D(c.width, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Dropout(c.dropout),
            layers.Flatten(),
            layers.Dense(data.classes, kernel_regularizer=keras.regularizers.L2(0.01)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    return network


def text(c, data):
    """A recurrent network with attention over tokens."""
    tokens = keras.Input(data.x.shape, dtype="int32")
    flow = layers.Embedding(c.vocabulary, c.width)(tokens)
    flow = layers.Bidirectional(layers.GRU(c.width, return_sequences=True, dropout=0.1))(flow)
    flow = layers.LayerNormalization()(flow + layers.MultiHeadAttention(2, c.width, dropout=0.1)(flow, flow))
    flow = layers.Dropout(c.dropout)(layers.GlobalAveragePooling1D()(flow))
    network = keras.Model(tokens, layers.Dense(data.classes, activation="softmax")(flow))
    network.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return network


def regression(c, data):
    """A network for numbers."""
    network = keras.Sequential([layers.Dense(c.width, activation="relu"), layers.Dense(1)])
    network.compile(loss="mse", metrics=["mae"])
    return network


def named(c, data):
    """A network of several inputs: an image of bytes and a number of a city."""
    image = keras.Input(data.image.shape, name="image")
    city = keras.Input(data.city.shape, name="city", dtype="int64")
    flow = layers.Flatten()(layers.Rescaling(1 / 255)(image))
    flow = layers.Concatenate()([flow, layers.Embedding(data.city.values, c.width)(city)])
    network = keras.Model([image, city], layers.Dense(data.y.values)(flow))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile(loss=loss, metrics=["accuracy"])
    return network


def seeded(c, data):
    """A dropout with a seed of its own, which graphs can't have."""
    network = keras.Sequential([keras.Input(data.x.shape), layers.Dropout(0.5, seed=3), layers.Dense(data.classes)])
    network.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return network
