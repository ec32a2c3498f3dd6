//! Shapes, types and places in memory; whole numbers.

use super::{
    call::{Call, Run},
    value::{Torch, Value, one, several},
};
use crate::error::TrainError;
use sojourn_graph::Memory;
use tch::{Kind, Tensor};

/// The function that computes the operator of this name, where it is one of these.
pub(super) fn find(name: &str) -> Option<Run> {
    let run: Run = match name {
        "aten._to_copy.default" => |c| one(copied(c.tensor(0)?, c.kind(1)?, c.memory(3)?)),
        "aten.alias.default" => |c| one(c.tensor(0)?.f_alias()),
        "aten.cat.default" => |c| one(Tensor::f_cat(&c.tensors(0)?, c.whole(1)?)),
        "aten.broadcast_to.default" => |c| one(c.tensor(0)?.f_broadcast_to(&*c.wholes(1)?)),
        "aten.matrix_H.default" => |c| one(c.tensor(0)?.f_matrix_h()),
        "aten.scatter.src" => {
            |c| one(c.tensor(0)?.f_scatter(c.whole(1)?, c.tensor(2)?, c.tensor(3)?))
        }
        "aten.scatter.value" => {
            |c| one(c.tensor(0)?.f_scatter_value(c.whole(1)?, c.tensor(2)?, c.number(3)?))
        }
        "aten.scatter_.value" => {
            |c| one(c.changed(0)?.f_scatter_value_(c.whole(1)?, c.tensor(2)?, c.number(3)?))
        }
        "aten.scatter_add.default" => {
            |c| one(c.tensor(0)?.f_scatter_add(c.whole(1)?, c.tensor(2)?, c.tensor(3)?))
        }
        "aten.chunk.default" => |c| several(c.tensor(0)?.f_chunk(c.whole(1)?, c.whole(2)?)),
        "aten.clone.default" => |c| one(copied(c.tensor(0)?, None, c.memory(1)?)),
        "aten.concat.default" => |c| one(Tensor::f_concat(&c.tensors(0)?, c.whole(1)?)),
        "aten.contiguous.default" => |c| one(ordered(c.tensor(0)?, c.memory(1)?)),
        "aten.detach.default" => |c| one(c.tensor(0)?.f_detach()),
        "aten.diagonal.default" => {
            |c| one(c.tensor(0)?.f_diagonal(c.whole(1)?, c.whole(2)?, c.whole(3)?))
        }
        "aten.expand.default" => |c| one(c.tensor(0)?.f_expand(&*c.wholes(1)?, c.flag(2)?)),
        "aten.expand_as.default" => |c| one(c.tensor(0)?.f_expand_as(c.tensor(1)?)),
        "aten.flatten.using_ints" => |c| one(c.tensor(0)?.f_flatten(c.whole(1)?, c.whole(2)?)),
        "aten.flip.default" => |c| one(c.tensor(0)?.f_flip(&*c.wholes(1)?)),
        "aten.gather.default" => {
            |c| one(c.tensor(0)?.f_gather(c.whole(1)?, c.tensor(2)?, c.flag(3)?))
        }
        "aten.index.Tensor" => index,
        "aten.index_select.default" => {
            |c| one(c.tensor(0)?.f_index_select(c.whole(1)?, c.tensor(2)?))
        }
        "aten.lift_fresh_copy.default" => |c| one(c.tensor(0)?.f_lift_fresh_copy()),
        "aten.movedim.int" => |c| one(c.tensor(0)?.f_movedim_int(c.whole(1)?, c.whole(2)?)),
        "aten.narrow.default" => {
            |c| one(c.tensor(0)?.f_narrow(c.whole(1)?, c.whole(2)?, c.whole(3)?))
        }
        "aten.numpy_T.default" => |c| one(c.tensor(0)?.f_numpy_t()),
        "aten.one_hot.default" => |c| one(c.tensor(0)?.f_one_hot(c.whole(1)?)),
        "aten.permute.default" => |c| one(c.tensor(0)?.f_permute(&*c.wholes(1)?)),
        "aten.repeat.default" => |c| one(c.tensor(0)?.f_repeat(&*c.wholes(1)?)),
        "aten.repeat_interleave.self_int" => |c| {
            one(c.tensor(0)?.f_repeat_interleave_self_int(
                c.whole(1)?,
                c.optional_whole(2)?,
                c.optional_whole(3)?,
            ))
        },
        "aten.reshape.default" => |c| one(c.tensor(0)?.f_reshape(&*c.wholes(1)?)),
        "aten.roll.default" => |c| one(c.tensor(0)?.f_roll(&*c.wholes(1)?, &*c.wholes(2)?)),
        "aten.select.int" => |c| one(c.tensor(0)?.f_select(c.whole(1)?, c.whole(2)?)),
        "aten.slice.Tensor" => |c| {
            one(c.tensor(0)?.f_slice(
                c.whole(1)?,
                c.optional_whole(2)?,
                c.optional_whole(3)?,
                c.whole(4)?,
            ))
        },
        "aten.split.Tensor" => |c| several(c.tensor(0)?.f_split(c.whole(1)?, c.whole(2)?)),
        "aten.split_with_sizes.default" => {
            |c| several(c.tensor(0)?.f_split_with_sizes(&*c.wholes(1)?, c.whole(2)?))
        }
        "aten.squeeze.default" => |c| one(c.tensor(0)?.f_squeeze()),
        "aten.squeeze.dim" => |c| one(c.tensor(0)?.f_squeeze_dim(c.whole(1)?)),
        "aten.squeeze.dims" => |c| one(c.tensor(0)?.f_squeeze_dims(&*c.wholes(1)?)),
        "aten.stack.default" => |c| one(Tensor::f_stack(&c.tensors(0)?, c.whole(1)?)),
        "aten.swapaxes.default" => |c| one(c.tensor(0)?.f_swapaxes(c.whole(1)?, c.whole(2)?)),
        "aten.t.default" => transposed,
        "aten.to.dtype" => |c| one(converted(c, c.kind(1)?, 3)),
        "aten.to.other" => |c| one(converted(c, Some(c.tensor(1)?.f_kind()?), 3)),
        "aten.transpose.int" => |c| one(c.tensor(0)?.f_transpose(c.whole(1)?, c.whole(2)?)),
        "aten.tril.default" => |c| one(c.tensor(0)?.f_tril(c.whole(1)?)),
        "aten.triu.default" => |c| one(c.tensor(0)?.f_triu(c.whole(1)?)),
        "aten.type_as.default" => |c| one(c.tensor(0)?.f_type_as(c.tensor(1)?)),
        "aten.unbind.int" => |c| several(c.tensor(0)?.f_unbind(c.whole(1)?)),
        "aten.unflatten.int" => |c| one(c.tensor(0)?.f_unflatten(c.whole(1)?, &*c.wholes(2)?)),
        "aten.unsqueeze.default" => |c| one(c.tensor(0)?.f_unsqueeze(c.whole(1)?)),
        "aten.view.default" => |c| one(c.tensor(0)?.f_view(&*c.wholes(1)?)),
        "aten.view_as.default" => |c| one(c.tensor(0)?.f_view_as(c.tensor(1)?)),
        "sym.add" => |c| whole(c, i64::checked_add),
        "sym.floordiv" => |c| whole(c, floor_div),
        "sym.mul" => |c| whole(c, i64::checked_mul),
        "sym.size" => size,
        "sym.sub" => |c| whole(c, i64::checked_sub),
        _ => return None,
    };
    Some(run)
}

/// The function for the operator of this name where nothing is ever written through its result: a view is a copy where
/// the tensor's strides want one. Operators give other strides on a GPU than on the CPU, on which the graph was made.
pub(super) fn find_unwritten(name: &str) -> Option<Run> {
    let run: Run = match name {
        "aten.view.default" => |c| one(c.tensor(0)?.f_reshape(&*c.wholes(1)?)),
        "aten.view_as.default" => |c| one(c.tensor(0)?.f_reshape_as(c.tensor(1)?)),
        _ => return None,
    };
    Some(run)
}

/// The transpose of a matrix; what has fewer dimensions stays what it is.
fn transposed(c: &Call<'_>) -> Result<Value, TrainError> {
    let of = c.tensor(0)?;
    if of.dim() < 2 { Ok(Value::Tensor(of.shallow_clone())) } else { one(of.f_transpose(0, 1)) }
}

/// Elements by whole-numbered indices. Those by truth would have a shape that depends on numbers.
fn index(c: &Call<'_>) -> Result<Value, TrainError> {
    let indices = c.optional_tensors(1)?;
    for index in indices.iter().flatten() {
        if !matches!(index.f_kind()?, Kind::Int64 | Kind::Int) {
            return Err(TrainError::Unit("indices must be whole numbers".into()));
        }
    }
    one(c.tensor(0)?.f_index(&indices))
}

/// The same numbers in another order in memory.
fn ordered(of: &Tensor, memory: Memory) -> Torch<Tensor> {
    match memory {
        Memory::Preserve => Ok(of.shallow_clone()),
        Memory::Contiguous => of.f_contiguous(),
        Memory::ChannelsLast => of.f_permute([0, 2, 3, 1])?.f_contiguous()?.f_permute([0, 3, 1, 2]),
    }
}

/// A copy in any case.
fn copied(of: &Tensor, kind: Option<Kind>, memory: Memory) -> Torch<Tensor> {
    let kind = kind.map_or_else(|| of.f_kind(), Ok)?;
    ordered(&of.f_to_dtype(kind, false, true)?, memory)
}

/// The same numbers in another type; a copy only where that or argument `copy` asks for one.
fn converted(c: &Call<'_>, kind: Option<Kind>, copy: usize) -> Torch<Tensor> {
    let (of, copy, memory) = match (c.tensor(0), c.flag(copy), c.memory(copy + 1)) {
        (Ok(of), Ok(copy), Ok(memory)) => (of, copy, memory),
        _ => return Err(tch::TchError::Kind("no such conversion".into())),
    };
    let kind = kind.map_or_else(|| of.f_kind(), Ok)?;
    ordered(&of.f_to_dtype(kind, false, copy)?, memory)
}

/// The length of a dimension, counted from the end where it is below 0.
fn size(c: &Call<'_>) -> Result<Value, TrainError> {
    let (of, dimension) = (c.tensor(0)?, c.whole(1)?);
    let sizes = of.size();
    let at = if dimension < 0 {
        i64::try_from(sizes.len())?.saturating_add(dimension)
    } else {
        dimension
    };
    let found = usize::try_from(at).ok().and_then(|at| sizes.get(at).copied());
    let lacks = || TrainError::Unit(format!("there is no dimension {dimension} of {sizes:?}"));
    Ok(Value::Whole(found.ok_or_else(lacks)?))
}

fn whole(c: &Call<'_>, compute: fn(i64, i64) -> Option<i64>) -> Result<Value, TrainError> {
    let (a, b) = (c.whole(0)?, c.whole(1)?);
    let text = || TrainError::Unit(format!("{a} and {b} give no whole number of 64 bits"));
    Ok(Value::Whole(compute(a, b).ok_or_else(text)?))
}

/// Rounded down, as Python has it.
fn floor_div(a: i64, b: i64) -> Option<i64> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    if rest != 0 && (rest < 0) != (b < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}
