// All tests share the precompiled headers of this file.
namespace lamina::test {}
