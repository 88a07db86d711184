#pragma once
// LAMINA_API marks what the library exports; everything else in it is hidden.

/// For functions defined in the library, and for classes with such members or with a vtable. For exceptions too: a type
/// thrown in one shared library and caught in another must have one identity.
#define LAMINA_API __attribute__((visibility("default")))
