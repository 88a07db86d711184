#pragma once
// The decisions of a plan before it has memory, in this order. layout.cpp calls these functions. Between choices and
// lifetimes it lets the backend lower the units. Most functions have a file of their name; pitches are in views.cpp.

#include "layout.h"

namespace lamina::planner {

/// Throws what Plan documents for a graph and options that cannot be planned.
void check(const Nodes&, const Backend&, const Options&);

/// fuse: the chains of nodes that the backend takes as one unit, in running order; the producer and the readers of each
/// value; which gradients are wanted.
Units fuse(const Nodes&, const Backend&, const Options&);

/// betas: the first writer of each gradient overwrites it, later writers add to it. A unit adds to all its parameter
/// gradients or to none. If it is the first writer of only some of them, these are set to zero first, and the unit adds
/// to all.
void set_betas(Units&, const Nodes&);

/// betas: which units take over the mask of the ReLU before them. Without Options::fuse no unit does. Nor with
/// Options::keep_values: the caller may then read the gradient of the ReLU's value, which must not be masked.
void set_masks(Units&, const Backend&, const Options&);

/// views: which values and gradients are parts of others (Concat, Slice). A value is a part of at most one other value.
/// Every unit that touches a view must take a pitch.
void set_views(Units&, const Nodes&, const Backend&, const Options&);

/// pitches: a view has the pitch of the tensor that it is a part of.
void set_pitches(Units&, const Nodes&, const Options&);

/// choices: the algorithms that each unit is asked for. Throws UsageError for an algorithm in Options::choice that no
/// unit knows; the message lists the known algorithms.
void set_choices(Units&, const Nodes&, const Backend&, const Options&);

/// Makes all of these decisions. The result is the units as the backend will lower them.
Units make_units(const Nodes&, const Backend&, const Options&);

/// In layout.cpp: the backend's kernels for each unit. Equal units share them.
void lower(Units&, const Nodes&, Backend&);

/// lifetimes: when every value and gradient is written and read, and which values are dropped and recomputed.
Lifetimes make_lifetimes(const Units&, const Nodes&, const Options&);

/// aliases: which values and gradients share memory.
Aliases make_aliases(const Units&, const Lifetimes&, const Nodes&, const Options&);

/// place: the offset of every tensor and block in one of the plan's buffers, and the sizes of the buffers.
void place(PlanLayout&, const Nodes&, const Options&);

}  // namespace lamina::planner
