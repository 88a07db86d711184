// What is precompiled for this file, all tests share.
namespace lamina::test {}
