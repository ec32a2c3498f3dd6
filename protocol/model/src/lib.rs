//! Architecture as plain data: tensor names, shapes, FLOPs, initial weights. No libtorch.
