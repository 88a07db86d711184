#pragma once
// What is decided of a plan before it has memory, in this order, each in the file of its name. See layout.cpp.

#include "layout.h"

namespace lamina::planner {

/// Throws what Plan documents of a graph and options that cannot be planned.
void check(const Nodes&, const Backend&, const Options&);

/// fuse: chains of nodes that the backend takes as one, in running order; who makes and reads each value; which
/// gradients are wanted.
Units fuse(const Nodes&, const Backend&, const Options&);

/// betas: who writes each gradient first, and overwrites; the others add.
void set_betas(Units&);

/// views: which values and gradients lie inside others (Concat, Slice). A value lies in at most one other; every unit
/// that touches it takes a pitch.
void set_views(Units&, const Nodes&, const Backend&, const Options&);

/// pitches: those of what a value or gradient lies in.
void set_pitches(Units&, const Nodes&, const Options&);

/// choices: which algorithms each unit is asked for. Throws UsageError for an algorithm in Options::choice that no unit
/// knows, with the known ones.
void set_choices(Units&, const Nodes&, const Backend&, const Options&);

/// All of these: the units as the backend will be asked for them.
Units make_units(const Nodes&, const Backend&, const Options&);

/// lower: what the backend makes of each unit; of equal ones the same.
void lower(Units&, const Nodes&, Backend&);

/// lifetimes: when every value and gradient is written and read, and which values are dropped and made again.
Lifetimes make_lifetimes(const Units&, const Nodes&, const Options&);

/// aliases: who shares whose memory.
Aliases make_aliases(const Units&, const Lifetimes&, const Nodes&, const Options&);

/// place: an offset for everything in one of the plan's buffers, and how large these are.
void place(PlanLayout&, const Nodes&, const Options&);

}  // namespace lamina::planner
