//! The table of operators: what graphs may call, by schemas in PyTorch's notation.
//!
//! An operator that is added here must be added to the trainer as well (`client/trainer/src/graph`); a test there says so.
//! Whole numbers that PyTorch calls `SymInt` are `int`; parameters that say where a tensor lies or whose chance it has
//! (`device`, `layout`, `pin_memory`, `generator`) are left out, because graphs can't give them. What reads files or memory
//! that isn't its own (`from_file`, `as_strided`, `set_`, `resize_`) never comes in, nor what makes shapes depend on numbers.

use crate::schema::{Operator, parse};
use std::{collections::BTreeMap, sync::LazyLock};

/// The names of all operators that graphs may have, in the order of the alphabet.
pub fn operators() -> impl Iterator<Item = &'static str> {
    TABLE.keys().map(String::as_str)
}

/// The operator of this name.
#[must_use]
pub fn operator(name: &str) -> Option<&'static Operator> {
    TABLE.get(name)
}

/// May this operator's second operand be a number instead of a tensor? PyTorch takes one wherever it makes sense.
pub(crate) fn takes_number(operator: &Operator) -> bool {
    let short = operator.name.strip_prefix("aten.").and_then(|rest| rest.split('.').next());
    short.is_some_and(|short| NUMBER_OR_TENSOR.contains(&short.trim_end_matches('_')))
}

const NUMBER_OR_TENSOR: &[&str] = &[
    "add",
    "sub",
    "subtract",
    "rsub",
    "mul",
    "multiply",
    "div",
    "divide",
    "true_divide",
    "floor_divide",
    "remainder",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "where",
];

static TABLE: LazyLock<BTreeMap<String, Operator>> = LazyLock::new(|| {
    let whole = WHOLE_NUMBERS.iter().filter_map(|text| parse("sym", text));
    let all = SCHEMAS.iter().filter_map(|text| parse("aten", text)).chain(whole);
    all.map(|operator| (operator.name.clone(), operator)).collect()
});

const WHOLE_NUMBERS: &[&str] = &[
    "size(Tensor self, int dim) -> int",
    "add(int self, int other) -> int",
    "sub(int self, int other) -> int",
    "mul(int self, int other) -> int",
    "floordiv(int self, int other) -> int",
];

#[rustfmt::skip]
const SCHEMAS: &[&str] = &[
    // Layers.
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    r#"conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding="valid", int[1] dilation=1, int groups=1) -> Tensor"#,
    r#"conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str padding="valid", int[2] dilation=1, int groups=1) -> Tensor"#,
    "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
    "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
    "matmul(Tensor self, Tensor other) -> Tensor",
    "mm(Tensor self, Tensor mat2) -> Tensor",
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "mv(Tensor self, Tensor vec) -> Tensor",
    "dot(Tensor self, Tensor tensor) -> Tensor",
    "outer(Tensor self, Tensor vec2) -> Tensor",
    "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(b!)? running_mean, Tensor(c!)? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(b!)? running_mean, Tensor(c!)? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
    "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    "dropout(Tensor(a) input, float p, bool train) -> Tensor(a)",
    "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
    "feature_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)",
    "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    "adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
    "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
    "upsample_nearest2d.vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor",
    "upsample_bilinear2d.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
    r#"pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor"#,
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    // Activations.
    "relu(Tensor self) -> Tensor",
    "relu_(Tensor(a!) self) -> Tensor(a!)",
    "relu6(Tensor self) -> Tensor",
    "relu6_(Tensor(a!) self) -> Tensor(a!)",
    r#"gelu(Tensor self, *, str approximate="none") -> Tensor"#,
    "silu(Tensor self) -> Tensor",
    "silu_(Tensor(a!) self) -> Tensor(a!)",
    "mish(Tensor self) -> Tensor",
    "hardswish(Tensor self) -> Tensor",
    "hardswish_(Tensor(a!) self) -> Tensor(a!)",
    "hardsigmoid(Tensor self) -> Tensor",
    "sigmoid(Tensor self) -> Tensor",
    "sigmoid_(Tensor(a!) self) -> Tensor(a!)",
    "tanh(Tensor self) -> Tensor",
    "tanh_(Tensor(a!) self) -> Tensor(a!)",
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    "leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
    "selu(Tensor self) -> Tensor",
    "selu_(Tensor(a!) self) -> Tensor(a!)",
    "celu(Tensor self, Scalar alpha=1.) -> Tensor",
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    "hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)",
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    "log_sigmoid(Tensor self) -> Tensor",
    "prelu(Tensor self, Tensor weight) -> Tensor",
    "glu(Tensor self, int dim=-1) -> Tensor",
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    // Losses.
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.) -> Tensor",
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    // Arithmetic.
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    "mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    "multiply.Tensor(Tensor self, Tensor other) -> Tensor",
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    "div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    "divide.Tensor(Tensor self, Tensor other) -> Tensor",
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    "true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    "pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
    "neg(Tensor self) -> Tensor",
    "abs(Tensor self) -> Tensor",
    "absolute(Tensor self) -> Tensor",
    "sign(Tensor self) -> Tensor",
    "exp(Tensor self) -> Tensor",
    "exp_(Tensor(a!) self) -> Tensor(a!)",
    "expm1(Tensor self) -> Tensor",
    "log(Tensor self) -> Tensor",
    "log2(Tensor self) -> Tensor",
    "log10(Tensor self) -> Tensor",
    "log1p(Tensor self) -> Tensor",
    "sqrt(Tensor self) -> Tensor",
    "sqrt_(Tensor(a!) self) -> Tensor(a!)",
    "rsqrt(Tensor self) -> Tensor",
    "rsqrt_(Tensor(a!) self) -> Tensor(a!)",
    "square(Tensor self) -> Tensor",
    "reciprocal(Tensor self) -> Tensor",
    "sin(Tensor self) -> Tensor",
    "cos(Tensor self) -> Tensor",
    "tan(Tensor self) -> Tensor",
    "erf(Tensor self) -> Tensor",
    "floor(Tensor self) -> Tensor",
    "ceil(Tensor self) -> Tensor",
    "round(Tensor self) -> Tensor",
    "trunc(Tensor self) -> Tensor",
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    "clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    "clamp_min(Tensor self, Scalar min) -> Tensor",
    "clamp_max(Tensor self, Scalar max) -> Tensor",
    "maximum(Tensor self, Tensor other) -> Tensor",
    "minimum(Tensor self, Tensor other) -> Tensor",
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    "atan2(Tensor self, Tensor other) -> Tensor",
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    "zero_(Tensor(a!) self) -> Tensor(a!)",
    // Comparisons.
    "eq.Tensor(Tensor self, Tensor other) -> Tensor",
    "eq.Scalar(Tensor self, Scalar other) -> Tensor",
    "ne.Tensor(Tensor self, Tensor other) -> Tensor",
    "ne.Scalar(Tensor self, Scalar other) -> Tensor",
    "lt.Tensor(Tensor self, Tensor other) -> Tensor",
    "lt.Scalar(Tensor self, Scalar other) -> Tensor",
    "le.Tensor(Tensor self, Tensor other) -> Tensor",
    "le.Scalar(Tensor self, Scalar other) -> Tensor",
    "gt.Tensor(Tensor self, Tensor other) -> Tensor",
    "gt.Scalar(Tensor self, Scalar other) -> Tensor",
    "ge.Tensor(Tensor self, Tensor other) -> Tensor",
    "ge.Scalar(Tensor self, Scalar other) -> Tensor",
    "logical_and(Tensor self, Tensor other) -> Tensor",
    "logical_or(Tensor self, Tensor other) -> Tensor",
    "logical_not(Tensor self) -> Tensor",
    "logical_xor(Tensor self, Tensor other) -> Tensor",
    "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
    "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
    "bitwise_not(Tensor self) -> Tensor",
    "isnan(Tensor self) -> Tensor",
    "isinf(Tensor self) -> Tensor",
    "isfinite(Tensor self) -> Tensor",
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    "masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    // Shapes.
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    "concat(Tensor[] tensors, int dim=0) -> Tensor",
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    "split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]",
    "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
    "chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]",
    "unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]",
    "view(Tensor(a) self, int[] size) -> Tensor(a)",
    "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    "unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)",
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "t(Tensor(a) self) -> Tensor(a)",
    "numpy_T(Tensor(a) self) -> Tensor(a)",
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    "squeeze(Tensor(a) self) -> Tensor(a)",
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
    "slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    "repeat(Tensor self, int[] repeats) -> Tensor",
    "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    "flip(Tensor self, int[] dims) -> Tensor",
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    "detach(Tensor(a) self) -> Tensor(a)",
    "alias(Tensor(a) self) -> Tensor(a)",
    "lift_fresh_copy(Tensor self) -> Tensor",
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    "type_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    "_to_copy(Tensor self, *, ScalarType? dtype=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    "tril(Tensor self, int diagonal=0) -> Tensor",
    "triu(Tensor self, int diagonal=0) -> Tensor",
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    // Reductions.
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "var(Tensor self, bool unbiased=True) -> Tensor",
    "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    "std(Tensor self, bool unbiased=True) -> Tensor",
    "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
    "max(Tensor self) -> Tensor",
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    "max.other(Tensor self, Tensor other) -> Tensor",
    "min(Tensor self) -> Tensor",
    "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
    "min.other(Tensor self, Tensor other) -> Tensor",
    "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    "any(Tensor self) -> Tensor",
    "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    "all(Tensor self) -> Tensor",
    "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)",
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor, Tensor)",
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    // Makers.
    "zeros(int[] size, *, ScalarType? dtype=None) -> Tensor",
    "ones(int[] size, *, ScalarType? dtype=None) -> Tensor",
    "full(int[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor",
    "arange(Scalar end, *, ScalarType? dtype=None) -> Tensor",
    "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None) -> Tensor",
    "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None) -> Tensor",
    "zeros_like(Tensor self, *, ScalarType? dtype=None, MemoryFormat? memory_format=None) -> Tensor",
    "ones_like(Tensor self, *, ScalarType? dtype=None, MemoryFormat? memory_format=None) -> Tensor",
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, MemoryFormat? memory_format=None) -> Tensor",
    "rand_like(Tensor self, *, ScalarType? dtype=None, MemoryFormat? memory_format=None) -> Tensor",
    "randn_like(Tensor self, *, ScalarType? dtype=None, MemoryFormat? memory_format=None) -> Tensor",
    "rand(int[] size, *, ScalarType? dtype=None) -> Tensor",
    "randn(int[] size, *, ScalarType? dtype=None) -> Tensor",
    "bernoulli(Tensor self) -> Tensor",
    "bernoulli.p(Tensor self, float p) -> Tensor",
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None) -> Tensor",
    "eye(int n, *, ScalarType? dtype=None) -> Tensor",
    "new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor",
    "new_ones(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor",
    "new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_read_and_none_is_there_twice() {
        for text in SCHEMAS {
            assert!(parse("aten", text).is_some(), "{text}");
        }
        assert_eq!(TABLE.len(), SCHEMAS.len() + WHOLE_NUMBERS.len());
    }

    #[test]
    fn what_reaches_beyond_its_arguments_is_not_there() {
        let never = [
            "from_file",
            "as_strided",
            "set_",
            "resize",
            "item",
            "_local_scalar_dense",
            "nonzero",
            "masked_select",
            "unique",
            "to_sparse",
            "copy_sparse",
            "share",
            "storage",
            "data_ptr",
            "_unsafe",
            "save",
            "load",
        ];
        for name in operators() {
            let short = name.split('.').nth(1).unwrap();
            assert!(!never.iter().any(|word| short.starts_with(word)), "{name}");
        }
        for operator in TABLE.values() {
            for parameter in &operator.parameters {
                let name = parameter.name.as_str();
                let foreign = ["generator", "device", "layout", "pin_memory", "out", "filename"];
                assert!(!foreign.contains(&name), "{}: {name}", operator.name);
            }
        }
    }
}
