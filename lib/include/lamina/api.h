#pragma once
// LAMINA_API marks what the library exports. All other names of the library are hidden.

/// For functions defined in the library, and for classes that have such members or a vtable. Exceptions need it too: a
/// type thrown in one shared library and caught in another must have one identity.
#define LAMINA_API __attribute__((visibility("default")))
