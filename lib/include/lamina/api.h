#pragma once
// LAMINA_API marks what the library exports. All other names of the library are hidden.

/// Mark functions that the library defines, and classes with such functions or with a vtable. Exceptions need the mark,
/// too: a type thrown in one shared library and caught in another must have one identity.
#define LAMINA_API __attribute__((visibility("default")))
