// A program whose precompiled headers the tests share.
int main() {}
